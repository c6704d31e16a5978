/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside, made safe to show in a message. */
#ifndef S4D_SUPPORT_QUOTE_H
#define S4D_SUPPORT_QUOTE_H

#include <stddef.h>
#include <stdio.h>

enum { S4D_QUOTED = 72 };
struct s4d_quoted {
    char text[S4D_QUOTED];
};

/* 'text' with its quotes; control characters and bytes outside ASCII become '?', and what is longer
 * than about 60 characters is cut with "...". Use: s4d_quote(text).text, within one expression. */
struct s4d_quoted s4d_quote(const char *text);

/* Bytes of the character at `text` that a name must not bring into a line for people: a control
 * character (also of Latin-1: a terminal obeys it), or one that turns the direction of the text
 * around it. 0: it is none. `text` is UTF-8. */
size_t s4d_unprintable(const char *text);
/* The text as part of one line: '?' for each of these. */
void s4d_print_line(const char *text, FILE *out);
/* The same of a text of several lines: '\n' ends each. */
void s4d_print_lines(const char *text, FILE *out);

#endif
