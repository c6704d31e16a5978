/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/accuracy.h"

#include <math.h>
#include <string.h>

void s4d_efficiency_keep(struct s4d_machine *m, int keep)
{
    for (int i = 0; i < m->library.n_tables; i++) {
        struct s4d_efficiency_table *t = &m->library.table[i];
        int kept = 0;
        for (int j = 0; j < t->n; j++)
            if (t->row[j].ranks == keep)
                t->row[kept++] = t->row[j];
        t->n = kept;
    }
}

int s4d_efficiency_ranks(const struct s4d_machine *m, enum s4d_op_kind op, bool in_node, int *ranks,
                         int max)
{
    int n = 0;
    for (int i = 0; i < m->library.n_tables; i++) {
        const struct s4d_efficiency_table *t = &m->library.table[i];
        for (int j = 0; j < t->n && strcmp(t->op, s4d_collective_name(op)) == 0; j++) {
            const struct s4d_efficiency_row *row = &t->row[j];
            int at = 0;
            while (at < n && ranks[at] < row->ranks)
                at++;
            if ((row->ranks == row->ranks_per_node) != in_node || n == max ||
                (at < n && ranks[at] == row->ranks))
                continue;
            memmove(ranks + at + 1, ranks + at, (size_t)(n - at) * sizeof *ranks);
            ranks[at] = row->ranks;
            n++;
        }
    }
    return n;
}

enum s4d_op_kind s4d_collective_op(const char *name)
{
    for (int op = 0; op < S4D_COLLECTIVE_OPS; op++) {
        const char *known = s4d_collective_name(op);
        bool collective = op >= S4D_OP_KINDS || s4d_op_kinds[op].op_class == S4D_CLASS_COLLECTIVE;
        size_t i = 0;
        while (known[i] != '\0' && (known[i] == '-' ? '_' : known[i]) == name[i])
            i++;
        if (collective && known[i] == '\0' && name[i] == '\0')
            return op;
    }
    return (enum s4d_op_kind)S4D_COLLECTIVE_OPS;
}

int s4d_accuracy_simulate(const struct s4d_accuracy_group *g, struct s4d_measured *results,
                          struct s4d_error *err)
{
    struct s4d_machine machine;
    struct s4d_measured_system system;
    if (s4d_machine_load(&machine, g->machine, NULL, 0, err))
        return -1;
    if (g->keep != S4D_KEEP_ALL)
        s4d_efficiency_keep(&machine, g->keep);
    struct s4d_measurement m = {.machine = &machine,
                                .op = g->op,
                                .grid = s4d_grid_make(1, 1, g->ranks, 1),
                                .stream = S4D_STREAM_Z_GATHER,
                                .algorithm = g->algorithm,
                                .fold = true};
    int rc = s4d_measure_collective(&m, g->bytes, g->n, results, &system, err);
    if (rc == 0 && system.group_members_per_node != g->ranks_per_node)
        rc =
            s4d_fail(err, S4D_EXIT_DATA, g->machine, "places %d of %d ranks on a node, expected %d",
                     system.group_members_per_node, g->ranks, g->ranks_per_node);
    s4d_machine_free(&machine);
    return rc;
}

/* Of a linear system of three, by Cramer's rule. */
static double determinant(const double a[3][3])
{
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
           a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

int s4d_gemm_fit(const struct s4d_gemm_point *p, int n, struct s4d_gemm_fit *fit)
{
    double a[3][3] = {{0}}, b[3] = {0}, x[3];
    for (int i = 0; i < n; i++) {
        /* Of sizes near one: GFLOP and MB. */
        double term[3] = {1, 2e-9 * p[i].m * p[i].n * p[i].k, 2e-6 * p[i].m * p[i].n};
        for (int r = 0; r < 3; r++) {
            for (int c = 0; c < 3; c++)
                a[r][c] += term[r] * term[c] / (p[i].time_s * p[i].time_s);
            b[r] += term[r] / p[i].time_s;
        }
    }
    double whole = determinant(a);
    if (!(fabs(whole) > 1e-12 * fabs(a[0][0] * a[1][1] * a[2][2])))
        return -1;
    for (int c = 0; c < 3; c++) {
        double of[3][3];
        memcpy(of, a, sizeof of);
        for (int r = 0; r < 3; r++)
            of[r][c] = b[r];
        x[c] = determinant(of) / whole;
    }
    fit->launch_s = fmax(x[0], 0);
    fit->flops_per_s = x[1] > 0 ? 1e9 / x[1] : INFINITY;
    fit->output_Bps = x[2] > 0 ? 1e6 / x[2] : INFINITY;
    return 0;
}

double s4d_gemm_fit_s(const struct s4d_gemm_fit *fit, const struct s4d_gemm_point *p)
{
    return fit->launch_s + 2 * p->m * p->n * p->k / fit->flops_per_s +
           2 * p->m * p->n / fit->output_Bps;
}
