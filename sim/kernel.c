/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/nearest.h"
#include "support/quote.h"

typedef double (*rule)(const struct s4d_device *d, const struct s4d_machine *m,
                       const struct s4d_program *p, const struct s4d_op *op);

static double traffic_s(const struct s4d_device *d, const struct s4d_op *op)
{
    double bytes = (double)op->bytes_read + (double)op->bytes_written;
    return bytes / (d->memory_bandwidth_Bps.value * s4d_curve_value(&d->memory_efficiency, bytes));
}

/* Shepard's interpolation of log rate in log2 (m, n, k); a shape of the table has its own. */
static double table_rate(const struct s4d_gemm_table *t, const struct s4d_op *op)
{
    double sum[2] = {0, 0}, weights[2] = {0, 0}; /* all rows, rows of the same transposes */
    for (int i = 0; i < t->n; i++) {
        const struct s4d_gemm_row *r = &t->row[i];
        double m = log2((double)op->c.gemm.m / r->m), n = log2((double)op->c.gemm.n / r->n),
               k = log2((double)op->c.gemm.k / r->k), square = m * m + n * n + k * k;
        bool same =
            r->transpose_a == op->c.gemm.transpose_a && r->transpose_b == op->c.gemm.transpose_b;
        if (same && square == 0)
            return r->flops_per_s;
        double weight = 1 / fmax(square, 1e-12);
        for (int j = 0; j <= same; j++) {
            sum[j] += weight * log(r->flops_per_s);
            weights[j] += weight;
        }
    }
    int j = weights[1] > 0;
    return exp(sum[j] / weights[j]);
}

static double gemm_s(const struct s4d_device *d, const struct s4d_machine *m,
                     const struct s4d_program *p, const struct s4d_op *op)
{
    (void)m;
    double mn = (double)op->c.gemm.m * (double)op->c.gemm.n;
    if (d->gemm.n > 0)
        return d->launch_s.value + 2 * mn * (double)op->c.gemm.k / table_rate(&d->gemm, op);
    double output_B = mn * s4d_type_bytes[p->tensors[op->operand[2].tensor].type];
    double compute_s = 2 * mn * (double)op->c.gemm.k / d->gemm_flops_per_s.value +
                       output_B / d->gemm_output_Bps.value;
    return d->launch_s.value + fmax(compute_s, traffic_s(d, op));
}

/* How far a measured row is from what is asked for: causal or not counts before the head size. */
static double distance(const struct s4d_attention_row *row, const struct s4d_op *op)
{
    double size = fabs(log2((double)op->c.attention.head_dim / row->head_dim));
    return (row->causal == op->c.attention.causal ? 0 : 64) + size;
}

static double attention_rate(const struct s4d_device *d, const struct s4d_op *op, bool backward)
{
    const struct s4d_attention_row *best = NULL;
    for (int i = 0; i < d->n_attention; i++) {
        const struct s4d_attention_row *row = &d->attention[i];
        if (row->backward == backward && (!best || distance(row, op) < distance(best, op)))
            best = row;
    }
    if (!best)
        return d->gemm_flops_per_s.value;
    return s4d_curve_value(&best->flops_per_s, (double)op->c.attention.seq);
}

static double attention_s(const struct s4d_device *d, const struct s4d_machine *m,
                          const struct s4d_program *p, const struct s4d_op *op)
{
    (void)m;
    (void)p;
    bool backward = op->kind == S4D_OP_ATTENTION_BACKWARD;
    double seq = (double)op->c.attention.seq;
    double flops = 4.0 * (double)op->c.attention.batch * (double)op->c.attention.heads * seq * seq *
                   (double)op->c.attention.head_dim;
    flops *= (op->c.attention.causal ? 0.5 : 1) * (backward ? 2.5 : 1);
    double compute_s = flops / attention_rate(d, op, backward);
    return d->launch_s.value + fmax(compute_s, traffic_s(d, op));
}

static double memory_s(const struct s4d_device *d, const struct s4d_machine *m,
                       const struct s4d_program *p, const struct s4d_op *op)
{
    (void)m;
    (void)p;
    double bytes = (double)op->bytes_read + (double)op->bytes_written;
    for (int i = 0; i < d->n_kernels; i++)
        if (strcmp(d->kernel[i].kind, s4d_op_kinds[op->kind].name) == 0)
            return d->launch_s.value + bytes / s4d_curve_value(&d->kernel[i].bandwidth_Bps, bytes);
    return d->launch_s.value + traffic_s(d, op);
}

static double copy_s(const struct s4d_device *d, const struct s4d_machine *m,
                     const struct s4d_program *p, const struct s4d_op *op)
{
    const struct s4d_tensor *t = &p->tensors[op->operand[0].tensor];
    double bytes = (double)s4d_tensor_elements(t) * s4d_type_bytes[t->type];
    return d->launch_s.value + bytes / m->node.host_bandwidth_Bps.value;
}

static double host_s(const struct s4d_device *d, const struct s4d_machine *m,
                     const struct s4d_program *p, const struct s4d_op *op)
{
    (void)d;
    (void)m;
    (void)p;
    (void)op;
    return 0;
}

static const rule rules[] = {
    [S4D_CLASS_GEMM] = gemm_s, [S4D_CLASS_ATTENTION] = attention_s, [S4D_CLASS_KERNEL] = memory_s,
    [S4D_CLASS_COPY] = copy_s, [S4D_CLASS_HOST] = host_s,
};

static int check_kinds(const struct s4d_machine *m, struct s4d_error *err)
{
    const char *names[S4D_OP_KINDS];
    int n = 0;
    for (int kind = 0; kind < S4D_OP_KINDS; kind++)
        if (s4d_op_kinds[kind].op_class == S4D_CLASS_KERNEL)
            names[n++] = s4d_op_kinds[kind].name;
    for (int i = 0; i < m->device.n_kernels; i++) {
        const char *kind = m->device.kernel[i].kind;
        bool known = false;
        for (int j = 0; j < n && !known; j++)
            known = strcmp(names[j], kind) == 0;
        if (known)
            continue;
        s4d_fail(err, S4D_EXIT_DATA, m->file, "device: kernels: unknown kind %s",
                 s4d_quote(kind).text);
        return s4d_hint_nearest(err, kind, names, n);
    }
    return 0;
}

int s4d_kernels_check(const struct s4d_kernels *k, const struct s4d_options *options,
                      struct s4d_error *err)
{
    const struct s4d_device *d = &k->machine->device;
    char types[40], type[8];
    snprintf(types, sizeof types, " %s ", d->compute_types);
    snprintf(type, sizeof type, " %s ", s4d_type_names[options->precision]);
    if (d->compute_types[0] == '\0' || strstr(types, type))
        return check_kinds(k->machine, err);
    s4d_fail(err, S4D_EXIT_DATA, "--precision", "machine %s has rates for %s only, found %s",
             k->machine->name, d->compute_types, s4d_type_names[options->precision]);
    return s4d_hint(err, "a machine file with that type's rates is needed");
}

/* How many times longer a device computes with all devices in use of its node computing. */
static double sharing(const struct s4d_machine *m, const struct s4d_program *p)
{
    int ranks = s4d_grid_ranks(&p->grid),
        in_use = ranks < m->node.devices ? ranks : m->node.devices;
    double units = m->node.compute_units.value;
    return units > 0 && in_use > units ? in_use / units : 1;
}

double s4d_kernel_time_s(const struct s4d_kernels *k, const struct s4d_program *p,
                         const struct s4d_op *op)
{
    enum s4d_op_class op_class = s4d_op_kinds[op->kind].op_class;
    S4D_ASSERT(!s4d_communicates(op->kind), "%s is no kernel", s4d_op_kinds[op->kind].name);
    double time_s = rules[op_class](&k->machine->device, k->machine, p, op);
    return op_class == S4D_CLASS_COPY ? time_s : time_s * sharing(k->machine, p);
}

double s4d_kernel_rate_beside(const struct s4d_kernels *k, bool across_nodes)
{
    const struct s4d_device *d = &k->machine->device;
    return across_nodes ? d->rate_beside_across_nodes.value : d->rate_beside_in_node.value;
}
