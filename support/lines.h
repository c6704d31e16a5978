/* SPDX-License-Identifier: Apache-2.0 */
/* A text file line by line: of any size, or a pipe, in the memory of its longest line.
 *
 *     struct s4d_lines lines;
 *     int rc = s4d_lines_open(&lines, file, S4D_FILE_MAX, err), got = 0;
 *     while (rc == 0 && (got = s4d_lines_next(&lines, err)) > 0)
 *         rc = use(lines.line, lines.n, lines.where, err);
 *     s4d_lines_close(&lines);
 *     return rc ? rc : got;
 */
#ifndef S4D_SUPPORT_LINES_H
#define S4D_SUPPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "support/error.h"

struct s4d_lines {
    char where[512];  /* "file:7", of this line; "standard input:7" */
    const char *name; /* borrowed; "standard input" of "-" */
    char *line;       /* this line without its "\n" or "\r\n", and a '\0'; may be written into */
    size_t n;         /* its bytes */
    long number;      /* of this line, from 1; at the end how many there were */
    bool ended;       /* it had its "\n": only the last of a file may have none */
    bool broken;      /* the file cannot be read on */
    FILE *in;         /* from here on for lines.c alone */
    size_t cap, most;
    bool own;
};

/* file: "-" is standard input. most: the longest line, in bytes. 0, or -1 (exit 65): no such file,
 * a folder, unreadable. Close also after a failure. */
int s4d_lines_open(struct s4d_lines *lines, const char *file, size_t most, struct s4d_error *err);
/* The same of a stream that is open, and stays so; name: for messages. */
void s4d_lines_of(struct s4d_lines *lines, FILE *in, const char *name, size_t most);
/* 1: `line` is the next one; 0: there is none. -1 (exit 65, file:line): the line holds a zero byte
 * (it is there, and the next call goes on behind it); or, and then `broken` is set and no line is
 * there, it is longer than `most` or the file cannot be read. */
int s4d_lines_next(struct s4d_lines *lines, struct s4d_error *err);
/* Whether this line has nothing but spaces. */
bool s4d_lines_blank(const struct s4d_lines *lines);
void s4d_lines_close(struct s4d_lines *lines);

#endif
