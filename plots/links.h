/* SPDX-License-Identifier: Apache-2.0 */
/* The table of links that scale4d simulate --links writes: read, summed up by kind, and drawn as a
 * heat map.
 *
 * A link's name is a place and a part: "n12.nic3.out" is part nic3.out of place n12. Places of one
 * sort (n for nodes, group, leaf, ...) are a panel: a column a place, a row a part. */
#ifndef S4D_PLOTS_LINKS_H
#define S4D_PLOTS_LINKS_H

#include <stdio.h>

#include "support/error.h"
#include "support/lines.h"

enum { S4D_LINKS_LINE_MAX = 64 << 10 }; /* bytes; the second line may be a long command line */

struct s4d_links_row {
    char *link, *kind, *sort, *part; /* "n12.nic3.out", "nic-out", "n", "nic3.out" */
    int place;                       /* 12; 0 for a name without number */
    double capacity_Bps, bytes, busy_s, mean_use, peak_use;
};

struct s4d_links_table {
    struct s4d_links_row *row;
    int n, cap;
    char *about; /* the last line of the head, without "# "; or "" */
};

/* 0, or -1 (exit 65) with file:line: no such file, other columns, a number that is none or cannot
 * be. Free with s4d_links_free, also after a failure. */
int s4d_links_read(struct s4d_links_table *t, const char *file, struct s4d_error *err);
/* The same of lines that are open. */
int s4d_links_parse(struct s4d_links_table *t, struct s4d_lines *in, struct s4d_error *err);
void s4d_links_free(struct s4d_links_table *t);

/* One line a kind of links, in the order of the file: how many, how many of them are used, bytes,
 * mean and largest use. */
void s4d_links_print(const struct s4d_links_table *t, FILE *out);

enum s4d_links_value { S4D_LINKS_MEAN, S4D_LINKS_PEAK };
extern const char *const s4d_links_values[]; /* "mean", "peak", NULL */

/* Writes STEM.tsv (a block a panel: place, row, value in %, part) and STEM.gp, and draws STEM.png,
 * .svg and .pdf with it. 0, or -1: cannot be written (74), gnuplot is missing or fails (69). */
int s4d_links_draw(const struct s4d_links_table *t, enum s4d_links_value value, const char *stem,
                   struct s4d_error *err);

#endif
