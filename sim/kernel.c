/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef double (*rule)(const struct s4d_device *d, const struct s4d_machine *m,
                       const struct s4d_program *p, const struct s4d_op *op);

static double traffic_s(const struct s4d_device *d, const struct s4d_op *op)
{
    double bytes = (double)op->bytes_read + (double)op->bytes_written;
    return bytes / (d->memory_bandwidth_Bps.value * s4d_curve_value(&d->memory_efficiency, bytes));
}

static double gemm_s(const struct s4d_device *d, const struct s4d_machine *m,
                     const struct s4d_program *p, const struct s4d_op *op)
{
    (void)m;
    double mn = (double)op->c.gemm.m * (double)op->c.gemm.n;
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

int s4d_kernels_check(const struct s4d_kernels *k, const struct s4d_options *options,
                      struct s4d_error *err)
{
    const struct s4d_device *d = &k->machine->device;
    char types[40], type[8];
    snprintf(types, sizeof types, " %s ", d->compute_types);
    snprintf(type, sizeof type, " %s ", s4d_type_names[options->precision]);
    if (d->compute_types[0] == '\0' || strstr(types, type))
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, "--precision", "machine %s has rates for %s only, found %s",
             k->machine->name, d->compute_types, s4d_type_names[options->precision]);
    return s4d_hint(err, "a machine file with that type's rates is needed");
}

double s4d_kernel_time_s(const struct s4d_kernels *k, const struct s4d_program *p,
                         const struct s4d_op *op)
{
    enum s4d_op_class op_class = s4d_op_kinds[op->kind].op_class;
    S4D_ASSERT(op_class != S4D_CLASS_COLLECTIVE, "%s is no kernel", s4d_op_kinds[op->kind].name);
    return rules[op_class](&k->machine->device, k->machine, p, op);
}

double s4d_kernel_rate_beside(const struct s4d_kernels *k, bool across_nodes)
{
    const struct s4d_device *d = &k->machine->device;
    return across_nodes ? d->rate_beside_across_nodes.value : d->rate_beside_in_node.value;
}
