/* SPDX-License-Identifier: Apache-2.0 */
/* After the last micro-batch: gradients summed over the replicas, clipped, and applied by AdamW on
 * the rank's own shard.
 *
 * The norm's parts are gathered and added in rank order in fp32, so every rank gets the same bits;
 * each parameter counts once. */
#include "schedule/builder.h"

static int flat_view(struct s4d_builder *b, const char *name, int storage, enum s4d_type type,
                     int64_t first, int64_t last)
{
    return s4d_add_tensor(b, name, storage, type, first, 1, last - first);
}

/* The wire type is the accumulate type, or the compute type: then the gradient is cast there and
 * back. */
void s4d_emit_gradient_all_reduce(struct s4d_builder *b, int64_t first, int64_t last)
{
    enum s4d_type acc = s4d_accumulate_type(b), wire = (enum s4d_type)b->options->gradient_type;
    if (b->grid->size[S4D_DATA] == 1 || first == last)
        return;
    int gradient = flat_view(b, "gradient", b->gradient[0], acc, first, last);
    if (wire != s4d_compute_type(b) || wire == acc) {
        s4d_all_reduce(b, S4D_AXIS(S4D_DATA), gradient, S4D_SUM);
        return;
    }
    int message = s4d_new(b, "gradient.message", S4D_ROLE_MESSAGE, wire, 1, last - first);
    S4D_COMPUTE(b, S4D_OP_CAST, gradient, message);
    s4d_all_reduce(b, S4D_AXIS(S4D_DATA), message, S4D_SUM);
    S4D_COMPUTE(b, S4D_OP_CAST, message, gradient);
}

/* One run of a flat buffer whose parameters count and decay alike. */
struct run {
    int flat; /* 0 sharded, 1 replicated */
    int64_t first, last;
    s4d_axes replicated;
    bool decay;
};

enum { MAX_RUNS = 8 };
static int list_runs(const struct s4d_builder *b, struct run runs[MAX_RUNS])
{
    int n = 0;
    runs[n++] = (struct run){.flat = 0, .last = b->sharded_elements, .decay = true};
    for (int64_t at = 0; at < b->replicated_elements;) {
        const struct s4d_param *q = NULL;
        for (int i = 0; i < b->p->n_params && !q; i++)
            if (!b->p->params[i].sharded_z && b->p->params[i].flat_offset == at)
                q = &b->p->params[i];
        S4D_ASSERT(q, "a gap in the replicated parameters at %lld", (long long)at);
        struct run *last = &runs[n - 1];
        if (last->flat == 0 || last->replicated != q->replicated || last->decay != q->decay) {
            S4D_ASSERT(n < MAX_RUNS, "too many kinds of replicated parameters");
            runs[n++] = (struct run){
                .flat = 1, .first = at, .replicated = q->replicated, .decay = q->decay};
        }
        at += q->shard_elements;
        runs[n - 1].last = at;
    }
    return n;
}

/* count on the rank at coordinate 0 of every replicated axis of {x, y, z}, nothing on the others.
 */
static struct s4d_expr counted_once(const struct run *run)
{
    int64_t count = run->last - run->first;
    struct s4d_expr e = s4d_constant(count);
    for (int axis = S4D_X; axis <= S4D_Z; axis++)
        if (run->replicated & S4D_AXIS(axis))
            e.stride[axis] = -count;
    e.limit = count;
    return e;
}

static int emit_norm(struct s4d_builder *b, const struct run *runs, int n)
{
    enum s4d_type acc = s4d_accumulate_type(b);
    const s4d_axes axes = S4D_AXIS(S4D_X) | S4D_AXIS(S4D_Y) | S4D_AXIS(S4D_Z);
    int members = s4d_group_size(b->grid, axes);
    int parts = s4d_new(b, "norm.parts", S4D_ROLE_WORKSPACE, acc, 1, 2);
    b->label.name = "gradient norm";
    for (int i = 0; i < n; i++) {
        int gradient =
            flat_view(b, "gradient", b->gradient[runs[i].flat], acc, runs[i].first, runs[i].last);
        struct s4d_op *op = S4D_COMPUTE(b, S4D_OP_SQUARED_NORM, gradient, b->p->loss_scale, parts);
        op->c.norm2.valid = counted_once(&runs[i]);
        op->c.norm2.accumulate = i > 0;
        op->operand[2].access = i > 0 ? S4D_ACCUMULATE : S4D_WRITE;
    }
    if (members > 1) {
        int all = s4d_new(b, "norm.gathered", S4D_ROLE_WORKSPACE, acc, members, 2);
        s4d_all_gather(b, S4D_STREAM_X_Y_Z, parts, all);
        parts = all;
    }
    int clip = s4d_scalar(b, "clip");
    struct s4d_op *op =
        S4D_COMPUTE(b, S4D_OP_CLIP_FACTOR, parts, b->p->grad_norm, b->p->found_inf, clip);
    op->c.clip.clip_norm = b->options->clip_norm;
    return clip;
}

static void emit_adamw(struct s4d_builder *b, const struct run *run, int clip)
{
    struct s4d_program *p = b->p;
    enum s4d_type acc = s4d_accumulate_type(b), compute = s4d_compute_type(b);
    int f = run->flat;
    int gradient = flat_view(b, "gradient", b->gradient[f], acc, run->first, run->last);
    int m = flat_view(b, "moment1", b->moment1[f], acc, run->first, run->last);
    int v = flat_view(b, "moment2", b->moment2[f], acc, run->first, run->last);
    int master = flat_view(b, "master", b->master[f], acc, run->first, run->last);
    int working = f == 0 && compute != acc
                      ? flat_view(b, "working", b->working, compute, run->first, run->last)
                      : -1;
    struct s4d_op *op = S4D_COMPUTE(b, S4D_OP_ADAMW, gradient, p->loss_scale, clip, p->found_inf,
                                    p->lr, p->step, m, v, master, working);
    op->c.adamw.beta1 = b->options->beta1;
    op->c.adamw.beta2 = b->options->beta2;
    op->c.adamw.epsilon = b->options->adam_epsilon;
    op->c.adamw.weight_decay = run->decay ? b->options->weight_decay : 0;
}

/* The mean loss over the global batch, for the record. */
static void emit_loss(struct s4d_builder *b)
{
    b->label.name = "loss";
    s4d_all_reduce(b, S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA), b->loss_sum, S4D_SUM);
    S4D_COMPUTE(b, S4D_OP_LOSS_MEAN, b->loss_sum, b->p->denominator, b->p->loss);
}

void s4d_emit_optimizer(struct s4d_builder *b)
{
    struct run runs[MAX_RUNS];
    int n = list_runs(b, runs);
    enum s4d_type acc = s4d_accumulate_type(b);
    b->label = (struct s4d_label){
        .phase = S4D_PHASE_GRADIENT, .layer = -1, .micro_batch = -1, .name = "gradient"};
    if (b->options->gradient_reduce == S4D_REDUCE_AT_END)
        s4d_emit_gradient_all_reduce(b, 0, b->sharded_elements);
    s4d_all_reduce(
        b, S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA),
        flat_view(b, "gradient.replicated", b->gradient[1], acc, 0, b->replicated_elements),
        S4D_SUM);
    emit_loss(b);
    b->label.phase = S4D_PHASE_OPTIMIZER;
    bool scaled = b->options->loss_scaling, normed = scaled || b->options->clip_norm > 0;
    int clip = normed ? emit_norm(b, runs, n) : -1;
    b->label.name = "adamw";
    S4D_COMPUTE(b, S4D_OP_STEP, b->p->found_inf, b->p->step);
    for (int i = 0; i < n; i++)
        emit_adamw(b, &runs[i], clip);
    if (scaled)
        S4D_COMPUTE(b, S4D_OP_SCALE_UPDATE, b->p->found_inf, b->p->loss_scale,
                    s4d_scalar(b, "good steps"))
            ->c.scale.interval = 2000; /* PyTorch's GradScaler growth interval */
}
