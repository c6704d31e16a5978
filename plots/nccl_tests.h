/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what nccl-tests and rccl-tests measured: the table they print, or the JSON of `-J`; and
 * what `scale4d-run collective` and `scale4d collective` print, tables and records. */
#ifndef S4D_PLOTS_NCCL_TESTS_H
#define S4D_PLOTS_NCCL_TESTS_H

#include <stddef.h>

#include "support/error.h"

struct s4d_nccl_tests_row {
    double bytes, time_s; /* size as nccl-tests counts it; out of place, else in place */
    double bus_factor;    /* its bus over its algorithm bandwidth; 0: too few digits to tell */
};

struct s4d_nccl_tests {
    char op[32];        /* "all_reduce", as scale4d spells it; "": not said */
    int ranks;          /* 0: not said */
    int ranks_per_node; /* 0: not said, or not the same on all nodes */
    const char *format; /* "a table of nccl-tests", for people */
    struct s4d_nccl_tests_row *row;
    int n, cap;
};

/* Reads a file. 0, or -1 (exit 65) with file:line: no such file, neither a table nor JSON, a column
 * that is not known, a row that lacks some, a file without its end, a size or time that cannot be,
 * groups side by side, no row. Free with s4d_nccl_tests_free, also after a failure. */
int s4d_nccl_tests_read(struct s4d_nccl_tests *t, const char *file, struct s4d_error *err);
/* The same of n bytes and a '\0' behind them, which it changes; file for messages. */
int s4d_nccl_tests_parse(struct s4d_nccl_tests *t, char *text, size_t n, const char *file,
                         struct s4d_error *err);
void s4d_nccl_tests_free(struct s4d_nccl_tests *t);

/* Whether the file is of this operation and this group: what it says itself, and the ratio of its
 * two bandwidths (expected: bus factor of op and ranks). 0, or -1 (exit 65). */
int s4d_nccl_tests_check(const struct s4d_nccl_tests *t, const char *file, const char *op,
                         int ranks, double bus_factor, struct s4d_error *err);

/* For the parser's two halves. */
int s4d_nccl_tests_table(struct s4d_nccl_tests *t, char *text, const char *file,
                         struct s4d_error *err);
int s4d_nccl_tests_json(struct s4d_nccl_tests *t, const char *text, size_t n, const char *file,
                        struct s4d_error *err);
/* One row more, in bytes, us, GB/s. 0, or -1 (exit 65). */
int s4d_nccl_tests_add(struct s4d_nccl_tests *t, double bytes, double time_us, double algbw,
                       double busbw, const char *where, struct s4d_error *err);
/* The operation of a program's name: "./build/alltoall_perf" is all_to_all. */
void s4d_nccl_tests_program(struct s4d_nccl_tests *t, const char *program);

#endif
