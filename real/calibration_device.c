/* SPDX-License-Identifier: Apache-2.0 */
/* A machine's device, from measurements of ops that each rank ran by itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/calibration_parts.h"
#include "real/peak.h"
#include "support/memory.h"

static enum s4d_op_class class_of(enum s4d_op_kind kind)
{
    return s4d_op_kinds[kind].op_class;
}

/* Seconds of the op without the launch; never nothing: where an op is hardly more than its launch a
 * twentieth is assumed, so that no rate is infinite. */
static double work_s(const struct s4d_calibration *c, const struct s4d_calibrated_op *op)
{
    double t_s = op->probed.t.median;
    return fmax(t_s - c->launch.t.median, 0.05 * t_s);
}

static double gemm_rate(const struct s4d_calibration *c, const struct s4d_calibrated_op *op)
{
    return 2 * (double)op->c.gemm.m * (double)op->c.gemm.n * (double)op->c.gemm.k / work_s(c, op);
}

static int make_gemm(const struct s4d_calibration *c, struct s4d_device *d, struct s4d_error *err)
{
    struct s4d_gemm_table *t = &d->gemm;
    double best = 0;
    int noisy = 0;
    t->row = s4d_calloc((size_t)c->n_ops + 1, sizeof *t->row);
    for (int i = 0; i < c->n_ops; i++) {
        const struct s4d_calibrated_op *op = &c->op[i];
        if (op->kind != S4D_OP_GEMM)
            continue;
        t->row[t->n++] =
            (struct s4d_gemm_row){(int)op->c.gemm.m,      (int)op->c.gemm.n,      (int)op->c.gemm.k,
                                  op->c.gemm.transpose_a, op->c.gemm.transpose_b, gemm_rate(c, op)};
        best = fmax(best, gemm_rate(c, op));
        noisy += op->probed.noisy;
    }
    if (t->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, "", "no matrix product was measured");
    t->tag = S4D_TAG_MEASURED;
    t->source = s4d_calibration_source(c, "shapes of the workload", t->n, noisy);
    d->gemm_flops_per_s = s4d_quantity_measured(c, best, "the best of the shapes below", false);
    d->peak_measured_flops_per_s =
        s4d_quantity_measured(c, best, "the best of the shapes below", false);
    struct s4d_peak peak = s4d_advertised_peak(c->device, c->precision, c->tf32);
    d->peak_flops_per_s =
        peak.flops_per_s > 0
            ? s4d_quantity_of(peak.flops_per_s, S4D_TAG_SECONDARY, peak.source)
            : s4d_quantity_of(best, S4D_TAG_ASSUMED,
                              "nothing is advertised of this device that is known here: "
                              "the best matrix product measured");
    d->gemm_output_Bps = s4d_quantity_of(INFINITY, S4D_TAG_ASSUMED, "the table of shapes holds it");
    return 0;
}

/* The points of a curve, with ascending x; equal ones are averaged in log y. */
struct points {
    struct point {
        double x, y;
    } * v;
    int n, cap, noisy;
};

static int by_x(const void *a, const void *b)
{
    double x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;
    return x < y ? -1 : x > y;
}

static void make_curve(struct points *p, struct s4d_curve *curve)
{
    qsort(p->v, (size_t)p->n, sizeof *p->v, by_x);
    *curve = (struct s4d_curve){.tag = S4D_TAG_MEASURED};
    curve->x = s4d_calloc((size_t)p->n + 1, sizeof *curve->x);
    curve->y = s4d_calloc((size_t)p->n + 1, sizeof *curve->y);
    for (int i = 0, end; i < p->n; i = end) {
        double sum = 0;
        for (end = i; end < p->n && p->v[end].x == p->v[i].x; end++)
            sum += log(p->v[end].y);
        curve->x[curve->n] = p->v[i].x;
        curve->y[curve->n++] = exp(sum / (end - i));
    }
    free(p->v);
    *p = (struct points){0};
}

static void add_point(struct points *p, double x, double y, bool noisy)
{
    s4d_push(p->v, p->n, p->cap, (struct point){x, y});
    p->noisy += noisy;
}

static double attention_rate(const struct s4d_calibration *c, const struct s4d_calibrated_op *op,
                             bool backward)
{
    double s = (double)op->c.attention.seq;
    double flops = 4.0 * (double)op->c.attention.batch * (double)op->c.attention.heads * s * s *
                   (double)op->c.attention.head_dim;
    flops *= (op->c.attention.causal ? 0.5 : 1) * (backward ? 2.5 : 1); /* sim/kernel.h */
    return flops / work_s(c, op);
}

/* A row a head size, mask and pass: the rate by sequence length. */
static void make_attention(const struct s4d_calibration *c, struct s4d_device *d)
{
    d->attention = s4d_calloc((size_t)c->n_ops + 1, sizeof *d->attention);
    for (int i = 0; i < c->n_ops; i++) {
        const struct s4d_calibrated_op *first = &c->op[i];
        bool backward = first->kind == S4D_OP_ATTENTION_BACKWARD, seen = false;
        if (class_of(first->kind) != S4D_CLASS_ATTENTION)
            continue;
        for (int j = 0; j < d->n_attention; j++)
            seen = seen || (d->attention[j].head_dim == first->c.attention.head_dim &&
                            d->attention[j].causal == first->c.attention.causal &&
                            d->attention[j].backward == backward);
        if (seen)
            continue;
        struct s4d_attention_row *row = &d->attention[d->n_attention++];
        struct points points = {0};
        row->head_dim = (int)first->c.attention.head_dim;
        row->causal = first->c.attention.causal;
        row->backward = backward;
        for (int j = i; j < c->n_ops; j++)
            if (c->op[j].kind == first->kind &&
                c->op[j].c.attention.head_dim == first->c.attention.head_dim &&
                c->op[j].c.attention.causal == first->c.attention.causal)
                add_point(&points, (double)c->op[j].c.attention.seq,
                          attention_rate(c, &c->op[j], backward), c->op[j].probed.noisy);
        char *source =
            s4d_calibration_source(c, "attentions of the workload", points.n, points.noisy);
        make_curve(&points, &row->flops_per_s);
        row->flops_per_s.source = source;
    }
}

static void points_of_kind(const struct s4d_calibration *c, enum s4d_op_kind kind,
                           struct points *points)
{
    for (int i = 0; i < c->n_ops; i++)
        if (c->op[i].kind == kind && c->op[i].bytes > 0)
            add_point(points, (double)c->op[i].bytes, (double)c->op[i].bytes / work_s(c, &c->op[i]),
                      c->op[i].probed.noisy);
}

static void make_kernels(const struct s4d_calibration *c, struct s4d_device *d)
{
    d->kernel = s4d_calloc(S4D_OP_KINDS, sizeof *d->kernel);
    for (int kind = 0; kind < S4D_OP_KINDS; kind++) {
        struct points points = {0};
        if (class_of((enum s4d_op_kind)kind) != S4D_CLASS_KERNEL)
            continue;
        points_of_kind(c, (enum s4d_op_kind)kind, &points);
        if (points.n == 0)
            continue;
        struct s4d_kernel_row *row = &d->kernel[d->n_kernels++];
        char *source = s4d_calibration_source(c, "sizes", points.n, points.noisy);
        snprintf(row->kind, sizeof row->kind, "%s", s4d_op_kinds[kind].name);
        make_curve(&points, &row->bandwidth_Bps);
        row->bandwidth_Bps.source = source;
    }
}

/* Copies of the device, for kinds that were not measured; to and from host memory, the largest. */
static int make_memory(const struct s4d_calibration *c, struct s4d_machine *m,
                       struct s4d_error *err)
{
    struct s4d_device *d = &m->device;
    struct points points = {0}, host = {0};
    double best = 0;
    points_of_kind(c, S4D_OP_COPY, &points);
    points_of_kind(c, S4D_OP_HOST_TO_DEVICE, &host);
    if (points.n == 0 || host.n == 0) {
        free(points.v);
        free(host.v);
        return s4d_fail(err, S4D_EXIT_DATA, "", "no copy was measured");
    }
    char *source = s4d_calibration_source(c, "copies", points.n, points.noisy);
    struct s4d_curve to_device;
    make_curve(&host, &to_device);
    make_curve(&points, &d->memory_efficiency);
    d->memory_efficiency.source = source;
    for (int i = 0; i < d->memory_efficiency.n; i++)
        best = fmax(best, d->memory_efficiency.y[i]);
    for (int i = 0; i < d->memory_efficiency.n; i++)
        d->memory_efficiency.y[i] /= best;
    d->memory_bandwidth_Bps =
        s4d_quantity_measured(c, best, "the fastest copy, bytes read and written", false);
    m->node.host_bandwidth_Bps = s4d_quantity_measured(c, to_device.y[to_device.n - 1],
                                                       "the largest copy to the device", false);
    free(to_device.x);
    free(to_device.y);
    return 0;
}

int s4d_calibration_device(const struct s4d_calibration *c, struct s4d_machine *m,
                           struct s4d_error *err)
{
    struct s4d_device *d = &m->device;
    bool alone = c->ranks == 1;
    snprintf(d->name, sizeof d->name, "%s", c->device);
    snprintf(d->compute_types, sizeof d->compute_types, "%s", s4d_type_names[c->precision]);
    d->launch_s =
        s4d_quantity_measured(c, c->launch.t.median, "a copy of 4 bytes", c->launch.noisy);
    d->memory_bytes =
        c->device_bytes > 0
            ? s4d_quantity_measured(c, c->device_bytes, "as the device says", false)
            : s4d_quantity_measured(c, c->memory_bytes / s4d_calibration_node_ranks(c),
                                    "a rank's share of the memory", false);
    d->memory_reserve_bytes =
        c->device_bytes > 0
            ? s4d_quantity_of(1.5e9, S4D_TAG_ASSUMED,
                              "context, communicators, workspaces: not measured")
            : s4d_quantity_of(0, S4D_TAG_ASSUMED, "buffers of MPI were not measured");
    d->rate_beside_in_node =
        alone ? s4d_quantity_of(1, S4D_TAG_ASSUMED, "one rank has no collectives")
              : s4d_quantity_measured(c, c->beside.t.median,
                                      "rate of matrix products beside an all-reduce of all ranks",
                                      c->beside.noisy);
    d->rate_beside_across_nodes = s4d_quantity_of(
        d->rate_beside_in_node.value, S4D_TAG_ASSUMED,
        s4d_calibration_nodes(c) > 1 ? "as measured beside an all-reduce of all ranks"
                                     : "as in the node; there is one");
    if (make_gemm(c, d, err) || make_memory(c, m, err))
        return -1;
    make_attention(c, d);
    make_kernels(c, d);
    return 0;
}
