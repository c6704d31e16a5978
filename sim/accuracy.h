/* SPDX-License-Identifier: Apache-2.0 */
/* What a comparison of the models with measurements needs of them: one measured group of ranks
 * simulated, with all or a part of what was fitted; a fit of the GEMM model. */
#ifndef S4D_SIM_ACCURACY_H
#define S4D_SIM_ACCURACY_H

#include "sim/collective/measure.h"

/* What stays of the machine's efficiency tables. */
enum { S4D_KEEP_ALL = -1, S4D_KEEP_NONE = 0 }; /* or the one group size that does */

struct s4d_accuracy_group {
    const char *machine;                   /* as s4d_machine_load takes it */
    enum s4d_op_kind op;                   /* of s4d_collective_op */
    const struct s4d_algorithm *algorithm; /* NULL: the library's choice */
    int ranks, ranks_per_node;
    const double *bytes; /* n sizes as nccl-tests counts them */
    int n;
    int keep;
};

/* Simulates one group of ranks on an otherwise idle machine; results: n. Creates an engine in this
 * process. 0, or -1: no such machine, another number of ranks a node (65), or as
 * s4d_measure_collective. */
int s4d_accuracy_simulate(const struct s4d_accuracy_group *g, struct s4d_measured *results,
                          struct s4d_error *err);

/* Leaves in the efficiency tables only the rows of this group size, or none (S4D_KEEP_NONE). */
void s4d_efficiency_keep(struct s4d_machine *m, int keep);
/* The group sizes that the operation's table has for groups of this sort, ascending, into ranks (at
 * most max). Returns how many there are. */
int s4d_efficiency_ranks(const struct s4d_machine *m, enum s4d_op_kind op, bool in_node, int *ranks,
                         int max);

/* The op as nccl-tests spells it ("all_gather"); S4D_COLLECTIVE_OPS: none. */
enum s4d_op_kind s4d_collective_op(const char *name);

/* t = launch + 2 m n k / rate + 2 m n / output, least squares of relative error. */
struct s4d_gemm_point {
    double m, n, k, time_s;
};
struct s4d_gemm_fit {
    double launch_s, flops_per_s, output_Bps; /* a term that vanishes: INFINITY */
};
/* n >= 3 points. 0, or -1: they do not tell the three terms apart. */
int s4d_gemm_fit(const struct s4d_gemm_point *p, int n, struct s4d_gemm_fit *fit);
double s4d_gemm_fit_s(const struct s4d_gemm_fit *fit, const struct s4d_gemm_point *p);

#endif
