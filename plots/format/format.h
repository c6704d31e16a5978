/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of other programs that results are written in: a row each, a file each. */
#ifndef S4D_PLOTS_FORMAT_FORMAT_H
#define S4D_PLOTS_FORMAT_FORMAT_H

#include <stdio.h>

#include "plots/format/outcome.h"

struct s4d_format {
    const char *name, *writes; /* writes: for --help, and who reads it */
    /* 0, or -1 with *err: 65, nothing that the format could hold. The caller looks after `out`. */
    int (*write)(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err);
    /* Into files below a folder, as the reader wants them (74 where they cannot be); NULL: it is
     * one file. */
    int (*write_folder)(const struct s4d_outcomes *outcomes, const char *folder,
                        struct s4d_error *err);
};
extern const struct s4d_format s4d_formats[]; /* ends with a row without a name */
extern const char *const s4d_format_names[];  /* for an option's choices */

/* --output: a file, or for a format with folders one; NULL: standard output. 0, or -1 with *err
 * (74: it cannot be written; then there is no half file, and the old one stays). */
int s4d_format_write(const struct s4d_format *format, const struct s4d_outcomes *outcomes,
                     const char *output, struct s4d_error *err);

/* The rows' functions. */
int s4d_write_reframe(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err);
int s4d_write_reframe_folder(const struct s4d_outcomes *outcomes, const char *folder,
                             struct s4d_error *err);
int s4d_write_bigger_is_better(const struct s4d_outcomes *outcomes, FILE *out,
                               struct s4d_error *err);
int s4d_write_smaller_is_better(const struct s4d_outcomes *outcomes, FILE *out,
                                struct s4d_error *err);
int s4d_write_junit(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err);
int s4d_write_summary(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err);

/* Text for XML and HTML, between tags or in double quotes: & < > " and ' as entities, characters
 * that XML has no place for, and those that turn the direction of text, as U+FFFD. */
void s4d_write_escaped(FILE *out, const char *text);

#endif
