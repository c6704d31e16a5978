/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/estimate.h"

#include <math.h>
#include <string.h>

const char *const s4d_term_names[S4D_TERMS] = {
    [S4D_TERM_GEMM] = "gemm",           [S4D_TERM_KERNELS] = "kernels",
    [S4D_TERM_GATHER_Z] = "AG,z",       [S4D_TERM_SCATTER_Z] = "RS,z",
    [S4D_TERM_REDUCE_Y] = "AR,y",       [S4D_TERM_REDUCE_X] = "AR,x",
    [S4D_TERM_REDUCE_DATA] = "AR,data", [S4D_TERM_OTHER] = "other",
};

struct making {
    struct s4d_batch_passes *passes;
    const struct s4d_estimator *e;
    const struct s4d_counts *c;
    const struct s4d_grid *grid;
    const struct s4d_options *options;
    struct s4d_program view; /* of c->one, on this grid: what kernels ask a program for */
};

static int z_of(const struct making *k)
{
    return k->grid->size[S4D_Z];
}

/* --- kernels -------------------------------------------------------------------------------- */

static bool on_gradients(const struct s4d_program *p, const struct s4d_op *op, const char *flat)
{
    return strcmp(p->storages[p->tensors[op->operand[0].tensor].storage].name, flat) == 0;
}

/* Of an op that is there once an iteration: how much longer its operands are than in the counts. */
static double once_factor(const struct making *k, const struct s4d_op *op)
{
    int layers = k->e->model->num_layers, z0 = k->c->one.grid.size[S4D_Z];
    for (int sharded = 0; sharded < 2; sharded++)
        if (on_gradients(&k->c->one, op, sharded ? "gradient" : "gradient.replicated"))
            return (double)s4d_flat_elements(k->c, sharded, layers, z_of(k)) /
                   (double)s4d_flat_elements(k->c, sharded, 1, z0);
    return 1;
}

/* Gradient shards added up: all of the op's bytes shrink with z. */
static bool is_shard_op(const struct s4d_op *op)
{
    return (op->kind == S4D_OP_ADD || op->kind == S4D_OP_CAST) &&
           op->label.phase == S4D_PHASE_BACKWARD;
}

static void scale_bytes(struct s4d_op *op, double factor)
{
    op->bytes_read = (int64_t)((double)op->bytes_read * factor);
    op->bytes_written = (int64_t)((double)op->bytes_written * factor);
}

static double kernel_s(const struct making *k, struct s4d_op *op)
{
    struct s4d_kernels kernels = {.machine = k->e->machine};
    if (op->label.micro_batch < 0)
        scale_bytes(op, once_factor(k, op));
    else if (is_shard_op(op))
        scale_bytes(op, (double)k->c->one.grid.size[S4D_Z] / z_of(k));
    double t_s = s4d_kernel_time_s(&kernels, &k->view, op);
    return k->e->rates ? t_s / k->e->rates->op_class[s4d_op_kinds[op->kind].op_class] : t_s;
}

static void add_kernel(const struct making *k, struct s4d_pass *pass, struct s4d_estimate *sum,
                       struct s4d_op *op, double times)
{
    double t_s = kernel_s(k, op);
    bool gemm = op->kind == S4D_OP_GEMM;
    sum->term_s[gemm ? S4D_TERM_GEMM : S4D_TERM_KERNELS] += times * t_s;
    if (!pass)
        return;
    *(gemm ? &pass->gemm_s : &pass->kernel_s) += t_s;
    if (gemm && op->c.gemm.transpose_a)
        pass->weight_gradient_s += t_s;
}

/* --- collectives ---------------------------------------------------------------------------- */

static const struct s4d_wire *wire_of(const struct making *k, enum s4d_stream stream)
{
    struct s4d_wires *w = k->e->wires;
    const struct s4d_grid *g = k->grid;
    int inner = 1;
    switch (stream) {
    case S4D_STREAM_X:
        return s4d_wires_axis(w, g, S4D_X);
    case S4D_STREAM_Y:
        return s4d_wires_axis(w, g, S4D_Y);
    case S4D_STREAM_DATA:
        return s4d_wires_axis(w, g, S4D_DATA);
    case S4D_STREAM_X_Y_Z:
        return s4d_wires_find(w, 1, g->size[S4D_X] * g->size[S4D_Y] * g->size[S4D_Z]);
    case S4D_STREAM_Z_DATA:
        for (int i = 0; g->order[i] != S4D_Z && g->order[i] != S4D_DATA; i++)
            inner *= g->size[g->order[i]];
        return s4d_wires_find(w, inner, g->size[S4D_Z] * g->size[S4D_DATA]);
    default:
        return s4d_wires_axis(w, g, S4D_Z);
    }
}

static enum s4d_term term_of(enum s4d_stream stream)
{
    switch (stream) {
    case S4D_STREAM_X:
        return S4D_TERM_REDUCE_X;
    case S4D_STREAM_Y:
        return S4D_TERM_REDUCE_Y;
    case S4D_STREAM_Z_GATHER:
        return S4D_TERM_GATHER_Z;
    case S4D_STREAM_Z_SCATTER:
        return S4D_TERM_SCATTER_Z;
    case S4D_STREAM_DATA:
        return S4D_TERM_REDUCE_DATA;
    default:
        return S4D_TERM_OTHER;
    }
}

/* As nccl-tests counts them, of the real grid. */
static double collective_bytes(const struct making *k, const struct s4d_op *op)
{
    double element = s4d_type_bytes[op->c.collective.type], count = (double)op->c.collective.count;
    if (op->stream == S4D_STREAM_Z_GATHER || op->stream == S4D_STREAM_Z_SCATTER) {
        const struct s4d_param *q = &k->c->one.params[s4d_collective_param(k->c, op)];
        return (double)z_of(k) * (double)s4d_shard_elements(k->c, q, z_of(k)) * element;
    }
    if (op->stream == S4D_STREAM_X_Y_Z)
        return count * element * k->grid->size[S4D_X] * k->grid->size[S4D_Y] * z_of(k);
    if (op->label.micro_batch >= 0)
        return count * element;
    bool bucket =
        op->stream == S4D_STREAM_DATA && k->options->gradient_reduce == S4D_REDUCE_BUCKETS;
    double shrink = (double)k->c->one.grid.size[S4D_Z] / z_of(k);
    return count * element * (bucket ? shrink : once_factor(k, op));
}

/* A product's output, summed over ranks. */
static bool reduces_a_product(const struct s4d_program *p, int at)
{
    int tensor = p->ops[at].operand[0].tensor;
    for (int i = at - 1; i >= 0; i--)
        if (p->ops[i].stream == S4D_STREAM_COMPUTE)
            return p->ops[i].kind == S4D_OP_GEMM && p->ops[i].operand[2].tensor == tensor;
    return false;
}

static void add_collective(const struct making *k, struct s4d_pass *pass, struct s4d_estimate *sum,
                           int at, const struct s4d_op *op, double times)
{
    const struct s4d_wire *wire = wire_of(k, op->stream);
    double t_s = s4d_wire_time_s(k->e->wires, wire, op->kind, collective_bytes(k, op));
    if (k->e->rates)
        t_s /= k->e->rates->stream[op->stream];
    sum->term_s[term_of(op->stream)] += times * t_s;
    if (!pass)
        return;
    if (wire && wire->across_nodes)
        pass->network_s += t_s;
    if (op->stream == S4D_STREAM_Z_GATHER) {
        pass->first_gather_s = pass->gather_s > 0 ? pass->first_gather_s : t_s;
        pass->gather_s += t_s;
    } else if (op->stream == S4D_STREAM_Z_SCATTER) {
        pass->scatter_s += t_s;
    } else if (op->label.phase == S4D_PHASE_BACKWARD && k->options->overlap.oar &&
               reduces_a_product(&k->c->one, at)) {
        pass->beside_s += t_s;
    } else {
        pass->blocking_s += t_s;
    }
}

/* --- passes --------------------------------------------------------------------------------- */

static struct s4d_pass *pass_of(struct s4d_batch_passes *passes, const struct s4d_op *op)
{
    struct s4d_pass *row = op->label.layer < 0 ? passes->outside : passes->layer;
    return op->label.phase == S4D_PHASE_FORWARD     ? &row[S4D_PASS_FORWARD]
           : op->label.phase == S4D_PHASE_RECOMPUTE ? &row[S4D_PASS_RECOMPUTE]
                                                    : &row[S4D_PASS_BACKWARD];
}

/* Kernels that do the same work whatever z and data are. */
static bool is_common(const struct s4d_op *op)
{
    enum s4d_op_class c = s4d_op_kinds[op->kind].op_class;
    return c != S4D_CLASS_COLLECTIVE && op->label.micro_batch >= 0 && !is_shard_op(op);
}

static void add_op(struct making *k, int at)
{
    struct s4d_op op = s4d_counts_op(k->c, at, k->options->micro_batch);
    bool once = op.label.micro_batch < 0;
    struct s4d_pass *pass = once ? NULL : pass_of(k->passes, &op);
    struct s4d_estimate *sum = once ? &k->passes->once : &k->passes->micro_batch;
    double times = op.label.layer < 0 ? 1 : k->e->model->num_layers;
    switch (s4d_op_kinds[op.kind].op_class) {
    case S4D_CLASS_COLLECTIVE:
        add_collective(k, pass, sum, at, &op, times);
        break;
    case S4D_CLASS_COPY: /* of the next iteration's tokens, beside everything */
    case S4D_CLASS_HOST:
        break;
    default:
        add_kernel(k, pass, sum, &op, times);
        break;
    }
}

/* The second of the two micro-batches stands for all: it adds to the gradients. */
static void add_ops(struct s4d_batch_passes *passes, const struct s4d_estimator *e,
                    const struct s4d_counts *c, const struct s4d_grid *grid,
                    const struct s4d_options *options, bool common)
{
    struct making k = {passes, e, c, grid, options, .view = c->one};
    k.view.grid = *grid;
    for (int i = 0; i < c->one.n_ops; i++)
        if (c->one.ops[i].label.micro_batch != 0 && is_common(&c->one.ops[i]) == common)
            add_op(&k, i);
}

void s4d_passes_common(struct s4d_batch_passes *passes, const struct s4d_estimator *e,
                       const struct s4d_counts *c, const struct s4d_grid *grid,
                       const struct s4d_options *options)
{
    *passes = (struct s4d_batch_passes){.gradient_s = 0};
    add_ops(passes, e, c, grid, options, true);
}

void s4d_passes_complete(struct s4d_batch_passes *passes, const struct s4d_estimator *e,
                         const struct s4d_counts *c, const struct s4d_grid *grid,
                         const struct s4d_options *options)
{
    add_ops(passes, e, c, grid, options, false);
    passes->gradient_s = passes->once.term_s[S4D_TERM_REDUCE_DATA];
}

/* --- the iteration -------------------------------------------------------------------------- */

/* Computing, slowed while collectives run beside it. */
static double slowed_s(const struct s4d_machine *m, double compute_s, double beside_s,
                       bool across_nodes)
{
    struct s4d_kernels kernels = {.machine = m};
    double rate = s4d_kernel_rate_beside(&kernels, across_nodes);
    double overlapped_s = fmin(compute_s, beside_s);
    return compute_s + overlapped_s * (1 - rate);
}

/* One pass through one layer: gathers as early as the options allow. `gathers`: whether its
 * weights are gathered at all. */
static double pass_s(const struct s4d_machine *m, const struct s4d_pass *p,
                     enum s4d_prefetch prefetch, const struct s4d_overlap *o, bool gathers)
{
    double gather_s = gathers ? p->gather_s : 0, ahead_s = gather_s;
    if (prefetch == S4D_PREFETCH_NONE)
        ahead_s = 0;
    else if (prefetch == S4D_PREFETCH_WITHIN_LAYER)
        ahead_s = gathers ? p->gather_s - p->first_gather_s : 0;
    double behind_s = ahead_s + (o->ors ? p->scatter_s : 0);
    double serial_s = gather_s - ahead_s + (o->ors ? 0 : p->scatter_s);
    double exposed_s = fmax(0, p->beside_s - p->weight_gradient_s);
    double compute_s =
        slowed_s(m, p->gemm_s + p->kernel_s, behind_s + p->beside_s - exposed_s, p->network_s > 0);
    double network_s = p->network_s - (gathers ? 0 : p->gather_s);
    return serial_s +
           fmax(compute_s + p->blocking_s + exposed_s, fmax(behind_s, network_s - serial_s));
}

/* Recompute and backward of a layer follow one another and are one pass for what runs beside. */
static struct s4d_pass sum_of(const struct s4d_pass *a, const struct s4d_pass *b)
{
    return (struct s4d_pass){
        .gemm_s = a->gemm_s + b->gemm_s,
        .kernel_s = a->kernel_s + b->kernel_s,
        .weight_gradient_s = a->weight_gradient_s + b->weight_gradient_s,
        .blocking_s = a->blocking_s + b->blocking_s,
        .beside_s = a->beside_s + b->beside_s,
        .gather_s = a->gather_s + b->gather_s,
        .first_gather_s = a->gather_s > 0 ? a->first_gather_s : b->first_gather_s,
        .scatter_s = a->scatter_s + b->scatter_s,
        .network_s = a->network_s + b->network_s,
    };
}

struct s4d_estimate s4d_estimate_make(const struct s4d_batch_passes *passes,
                                      const struct s4d_estimator *e, const struct s4d_grid *grid,
                                      const struct s4d_options *o)
{
    const struct s4d_machine *m = e->machine;
    double batches = (double)o->global_batch /
                     ((double)grid->size[S4D_Z] * grid->size[S4D_DATA] * o->micro_batch);
    int cached = grid->size[S4D_Z] > 1 ? o->cached_layers : 0,
        other = e->model->num_layers - cached;
    const struct s4d_pass *f = &passes->layer[S4D_PASS_FORWARD];
    struct s4d_pass back =
        sum_of(&passes->layer[S4D_PASS_RECOMPUTE], &passes->layer[S4D_PASS_BACKWARD]);
    struct s4d_pass ends =
        sum_of(&passes->outside[S4D_PASS_FORWARD], &passes->outside[S4D_PASS_BACKWARD]);
    enum s4d_prefetch ahead = o->overlap.oag_forward, behind = o->overlap.oag_backward;
    double gathered_s = pass_s(m, f, ahead, &o->overlap, true),
           kept_s = pass_s(m, f, ahead, &o->overlap, false);
    double micro_batch_s = other * (gathered_s + pass_s(m, &back, behind, &o->overlap, true)) +
                           cached * (kept_s + pass_s(m, &back, behind, &o->overlap, false)) +
                           pass_s(m, &ends, ahead, &o->overlap, true);
    /* Scattered shards are awaited at the micro-batch's end: the embedding's is the last. */
    if (o->overlap.ors)
        micro_batch_s += passes->outside[S4D_PASS_BACKWARD].scatter_s;
    struct s4d_estimate r = {.total_s = batches * micro_batch_s + cached * (gathered_s - kept_s)};
    for (int t = 0; t < S4D_TERMS; t++)
        r.term_s[t] = batches * passes->micro_batch.term_s[t] + passes->once.term_s[t];
    r.term_s[S4D_TERM_GATHER_Z] -= cached * (batches * (f->gather_s + back.gather_s) - f->gather_s);
    for (int t = 0; t < S4D_TERMS; t++)
        if (t != S4D_TERM_REDUCE_DATA)
            r.total_s += passes->once.term_s[t];
    bool buckets = o->gradient_reduce == S4D_REDUCE_BUCKETS;
    double last_s = e->model->num_layers * (back.gemm_s + back.kernel_s);
    r.total_s += buckets ? fmax(0, passes->gradient_s - last_s) : passes->gradient_s;
    return r;
}

/* --- the published model -------------------------------------------------------------------- */

/* Bytes and calls of each operation of the fully connected layers, once, of the whole model. */
struct volume {
    double bytes[S4D_TERMS], calls[S4D_TERMS];
};

static void add_volume(struct volume *v, enum s4d_term term, double bytes, double times)
{
    v->bytes[term] += times * bytes;
    v->calls[term] += times;
}

static struct volume volumes(const struct making *k)
{
    struct volume v = {.bytes = {0}};
    const struct s4d_program *p = &k->c->one;
    double batches = (double)k->options->global_batch /
                     ((double)z_of(k) * k->grid->size[S4D_DATA] * k->options->micro_batch);
    bool lookup = true; /* gathers before the first layer are the embedding's, no such layer */
    for (int i = 0; i < p->n_ops; i++) {
        struct s4d_op op = s4d_counts_op(k->c, i, k->options->micro_batch);
        double layers = op.label.layer < 0 ? 1 : k->e->model->num_layers;
        if (op.label.micro_batch != 0)
            continue;
        if (op.kind == S4D_OP_GEMM)
            lookup = false;
        if (op.stream == S4D_STREAM_Z_GATHER && op.label.phase == S4D_PHASE_FORWARD &&
            (op.label.layer >= 0 || !lookup))
            add_volume(&v, S4D_TERM_GATHER_Z, collective_bytes(k, &op), layers);
        if (op.kind == S4D_OP_ALL_REDUCE && op.label.phase != S4D_PHASE_RECOMPUTE &&
            reduces_a_product(p, i)) {
            add_volume(&v, term_of(op.stream), batches * collective_bytes(k, &op), layers);
        }
    }
    v.bytes[S4D_TERM_SCATTER_Z] = v.bytes[S4D_TERM_GATHER_Z];
    v.calls[S4D_TERM_SCATTER_Z] = v.calls[S4D_TERM_GATHER_Z];
    v.bytes[S4D_TERM_REDUCE_DATA] = v.bytes[S4D_TERM_GATHER_Z] / z_of(k) *
                                    s4d_type_bytes[k->options->gradient_type] /
                                    s4d_type_bytes[k->options->precision];
    v.calls[S4D_TERM_REDUCE_DATA] = 1;
    return v;
}

static double linked_s(const struct s4d_estimator *e, const struct s4d_grid *grid,
                       enum s4d_axis axis, enum s4d_op_kind kind, double bytes, double calls)
{
    const struct s4d_wire *w = s4d_wires_axis(e->wires, grid, axis);
    if (!w)
        return 0;
    double hop_s =
        w->across_nodes ? e->machine->fabric.latency_s.value : e->machine->node.latency_s.value;
    double steps = kind == S4D_OP_ALL_REDUCE ? 2 : 1;
    return s4d_bus_factor(kind, w->members) * bytes / w->bus_Bps +
           steps * calls * w->members * hop_s;
}

struct s4d_estimate s4d_estimate_published(const struct s4d_estimator *e,
                                           const struct s4d_counts *c, const struct s4d_grid *grid,
                                           const struct s4d_options *options,
                                           const struct s4d_published_machine *table)
{
    static const struct {
        enum s4d_axis axis;
        enum s4d_op_kind kind;
    } ops[S4D_TERMS] = {
        [S4D_TERM_GATHER_Z] = {S4D_Z, S4D_OP_ALL_GATHER},
        [S4D_TERM_SCATTER_Z] = {S4D_Z, S4D_OP_REDUCE_SCATTER},
        [S4D_TERM_REDUCE_Y] = {S4D_Y, S4D_OP_ALL_REDUCE},
        [S4D_TERM_REDUCE_X] = {S4D_X, S4D_OP_ALL_REDUCE},
        [S4D_TERM_REDUCE_DATA] = {S4D_DATA, S4D_OP_ALL_REDUCE},
    };
    struct making k = {NULL, e, c, grid, options, .view = c->one};
    struct volume v = volumes(&k);
    struct s4d_estimate r = {.total_s = 0};
    for (int t = S4D_TERM_GATHER_Z; t <= S4D_TERM_REDUCE_DATA; t++) {
        r.term_s[t] = table ? s4d_published_time_s(table, grid, ops[t].axis, ops[t].kind,
                                                   v.bytes[t], v.calls[t])
                            : linked_s(e, grid, ops[t].axis, ops[t].kind, v.bytes[t], v.calls[t]);
        r.total_s += r.term_s[t];
    }
    return r;
}
