/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is there whole or as it was, whenever the process ends: written beside, as
 * FILE.partial, to the disk, and renamed.
 *
 * A symbolic link stays: what it points at is replaced, beside itself and so on its own file
 * system. A file keeps its permissions. What is no ordinary file (a pipe, /dev/null) is written as
 * it is; so is a descriptor of our own (/dev/stdout, a shell's >(...)), behind what it has. */
#ifndef S4D_SUPPORT_REPLACE_H
#define S4D_SUPPORT_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

struct s4d_replacement {
    FILE *out;     /* to be written; closed by s4d_replace_close */
    char *name;    /* as it was given, for messages */
    char *file;    /* behind all links */
    char *partial; /* NULL: file is written itself */
};

/* What a name leads to, behind all symbolic links; it need not be there. Caller frees; NULL, with
 * errno, where the links are a circle. */
char *s4d_link_target(const char *file);
/* Whether such a target is replaced; else it is written as it is. */
bool s4d_is_replaced(const char *target);

/* To write behind what is there: a file, made where there is none (for reading, too, and whatever
 * links lead to it), a pipe, a device, or a descriptor of our own. -1 with errno. Caller closes. */
int s4d_open_at_end(const char *file);

/* FILE.partial is locked: one that a killed process left is written anew, that of a living one is
 * waited for, a second at most. 0, or -1 (exit 74), and nothing is to be closed. */
int s4d_replace_open(struct s4d_replacement *r, const char *file, struct s4d_error *err);
/* rc: 0, or what writing it came to, with *err filled: then the file is as it was. Returns rc, or
 * -1 (exit 74). */
int s4d_replace_close(struct s4d_replacement *r, int rc, struct s4d_error *err);

#endif
