/* SPDX-License-Identifier: Apache-2.0 */
/* Measured bus bandwidths beside simulated ones: reading the measurements, errors, a table, a
 * report, plots.
 *
 * Columns of the file: machine,library,op,ranks,ranks_per_node,total_MiB,busbw_GBps,outlier,note,
 * source. op as nccl-tests spells it, sizes and bus bandwidth as it counts them. library may end
 * with an algorithm in parentheses, which the run was forced to. outlier: yes or no. */
#ifndef S4D_PLOTS_ACCURACY_H
#define S4D_PLOTS_ACCURACY_H

#include <stdbool.h>
#include <stdio.h>

#include "support/error.h"

struct s4d_accuracy_row {
    char *machine, *library, *op, *note, *source;
    int ranks, ranks_per_node;
    double bytes, measured_Bps;
    bool outlier;

    /* The rest is the caller's to fill in. */
    double simulated_Bps; /* with the machine file as it is */
    double constants_Bps; /* without its efficiency tables */
    double held_out_Bps;  /* with the tables' rows of fit_ranks alone; NAN: not simulated */
    int fit_ranks;        /* group size that stays when others are held out; 0: no table, or of one
                             group size alone */
    bool input;           /* the machine file's table has this group size: no check */
    char how[96];         /* what the checked simulation consisted of */
};

struct s4d_accuracy_list {
    struct s4d_accuracy_row *v;
    int n, cap;
};

/* Rows of one machine, library and operation stay together, in the order of the file. 0, or -1
 * (exit 65) with file:line. */
int s4d_accuracy_read(struct s4d_accuracy_list *list, const char *file, struct s4d_error *err);
void s4d_accuracy_free(struct s4d_accuracy_list *list);

/* The row behind the last of the series (machine, library, operation) that row `from` begins. */
int s4d_accuracy_series(const struct s4d_accuracy_list *list, int from);
/* The same of a group size within it. */
int s4d_accuracy_group(const struct s4d_accuracy_list *list, int from);

/* What is checked, in B/s: the simulation with nothing of this group size in it. NAN: an outlier,
 * or an input that nothing else was fitted on. */
double s4d_accuracy_checked(const struct s4d_accuracy_row *row);
/* 100 (simulated / measured - 1) of it, in %; NAN. */
double s4d_accuracy_error(const struct s4d_accuracy_row *row);

/* A measured rate of one kernel. */
struct s4d_accuracy_kernel {
    char *series, *label, *note; /* series: "dgx-h100 gemm" */
    double measured, simulated;  /* FLOP/s; simulated: with the machine file */
    double held_out;             /* with this one held out; NAN: not checked */
};
struct s4d_accuracy_kernels {
    struct s4d_accuracy_kernel *v;
    int n, cap;
};
void s4d_accuracy_kernels_free(struct s4d_accuracy_kernels *list);

/* A line a series: rows, mean and largest |error|, those of large sizes, without tables. */
void s4d_accuracy_print(const struct s4d_accuracy_list *list,
                        const struct s4d_accuracy_kernels *kernels, FILE *out);
/* FOLDER/report.md. reasons: a CSV of machine,library,op,reason. 0, or -1 (exit 65 or 74). */
int s4d_accuracy_report(const struct s4d_accuracy_list *list,
                        const struct s4d_accuracy_kernels *kernels, const char *reasons,
                        const char *folder, struct s4d_error *err);
/* FOLDER/data.tsv: every row; FOLDER/NAME.tsv of the series that row `from` begins: a block a group
 * size for gnuplot, its title first, then MiB, measured, measured outliers, as checked, by the
 * machine file, without tables (GB/s). name as s4d_accuracy_name writes it. 0, or -1 (exit 74). */
int s4d_accuracy_data(const struct s4d_accuracy_list *list, const char *file,
                      struct s4d_error *err);
int s4d_accuracy_blocks(const struct s4d_accuracy_list *list, int from, const char *file,
                        struct s4d_error *err);
char *s4d_accuracy_name(const struct s4d_accuracy_row *row); /* "dgx-h100-nccl-nvls-all_reduce" */

#endif
