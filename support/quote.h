/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside, made safe to show in a message. */
#ifndef S4D_SUPPORT_QUOTE_H
#define S4D_SUPPORT_QUOTE_H

enum { S4D_QUOTED = 72 };
struct s4d_quoted {
    char text[S4D_QUOTED];
};

/* 'text' with its quotes; control characters and bytes outside ASCII become '?', and what is longer
 * than about 60 characters is cut with "...". Use: s4d_quote(text).text, within one expression. */
struct s4d_quoted s4d_quote(const char *text);

#endif
