/* SPDX-License-Identifier: Apache-2.0 */
/* The iteration: tokens in, every micro-batch forward and backward through the layers, gradients,
 * optimizer.
 *
 * Read this file and schedule/layers/linear.c to learn the 4D algorithm. */
#include "schedule/build.h"

#include <limits.h>
#include <math.h>

#include "schedule/layer.h"

/* A transformer layer: x1 = x + attention(norm1(x)); x2 = x1 + mlp(norm2(x1)). */
struct block {
    struct s4d_layer norm1, attention, norm2, mlp;
};

struct stack {
    struct s4d_layer embedding, positions, norm, head;
    struct block *blocks;
    int *inputs; /* of each block, kept for recompute */
};

static const struct s4d_hf_family *family_of(const struct s4d_model *m)
{
    return s4d_layer_kind_find(m->attention)->family;
}

static struct s4d_layer make_layer(struct s4d_builder *b, const char *kind, int index,
                                   const char *label, const char *hf)
{
    struct s4d_layer l = {
        .kind = s4d_layer_kind_find(kind), .label = label, .index = index, .out_bias = -1};
    l.name = index < 0 ? label : s4d_arena_printf(&b->p->memory, "layers.%d.%s", index, label);
    l.hf_name = index < 0 ? hf
                          : s4d_arena_printf(&b->p->memory, "%s%d.%s", family_of(b->model)->blocks,
                                             index, hf);
    b->label.layer = index;
    l.kind->declare(b, &l);
    return l;
}

static struct stack declare_stack(struct s4d_builder *b)
{
    const struct s4d_model *m = b->model;
    const struct s4d_hf_family *hf = family_of(m);
    struct stack s;
    s.blocks = s4d_arena_alloc(&b->p->memory, (size_t)m->num_layers * sizeof *s.blocks);
    s.inputs = s4d_arena_alloc(&b->p->memory, (size_t)m->num_layers * sizeof *s.inputs);
    s.embedding = make_layer(b, m->embedding, -1, "embedding", hf->embedding);
    s.positions = make_layer(b, m->positions, -1, "positions", hf->positions);
    for (int i = 0; i < m->num_layers; i++) {
        struct block *k = &s.blocks[i];
        k->norm1 = make_layer(b, m->norm, i, "norm1", hf->norm1);
        k->attention = make_layer(b, m->attention, i, "attention", hf->attention);
        k->norm2 = make_layer(b, m->norm, i, "norm2", hf->norm2);
        k->mlp = make_layer(b, m->mlp, i, "mlp", hf->mlp);
    }
    s.norm = make_layer(b, m->norm, -1, "norm", hf->norm);
    s.head = make_layer(b, m->head, -1, "head", hf->head);
    return s;
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    return l->kind->forward ? l->kind->forward(b, l, x) : x;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    return l->kind->backward ? l->kind->backward(b, l, dy, residual) : dy;
}

/* x + y + the bias that l left to its caller. */
static int add_residual(struct s4d_builder *b, const struct s4d_layer *l, int x, int y)
{
    b->label.name = "residual";
    S4D_COMPUTE(b, S4D_OP_RESIDUAL, x, y, l->out_bias, y);
    return y;
}

static int block_forward(struct s4d_builder *b, struct block *k, int x)
{
    int x1 = add_residual(b, &k->attention, x, forward(b, &k->attention, forward(b, &k->norm1, x)));
    return add_residual(b, &k->mlp, x1, forward(b, &k->mlp, forward(b, &k->norm2, x1)));
}

static int block_backward(struct s4d_builder *b, struct block *k, int dx2)
{
    int dx1 = backward(b, &k->norm2, backward(b, &k->mlp, dx2, -1), dx2);
    return backward(b, &k->norm1, backward(b, &k->attention, dx1, -1), dx1);
}

static void set_label(struct s4d_builder *b, enum s4d_phase phase, int layer)
{
    b->label.phase = phase;
    b->label.layer = layer;
}

static int stack_forward(struct s4d_builder *b, struct stack *s)
{
    set_label(b, S4D_PHASE_FORWARD, -1);
    int x = forward(b, &s->positions, forward(b, &s->embedding, -1));
    for (int i = 0; i < b->model->num_layers; i++) {
        set_label(b, S4D_PHASE_FORWARD, i);
        s->inputs[i] = x;
        x = block_forward(b, &s->blocks[i], x);
    }
    set_label(b, S4D_PHASE_FORWARD, -1);
    return forward(b, &s->norm, x);
}

/* The shard elements of one layer's matrices (-1: of those outside the layers); they are
 * contiguous. */
static void layer_range(const struct s4d_builder *b, int layer, int64_t *first, int64_t *last)
{
    *first = b->sharded_elements;
    *last = 0;
    for (int i = 0; i < b->p->n_params; i++) {
        const struct s4d_param *q = &b->p->params[i];
        if (!q->sharded_z || q->layer != layer)
            continue;
        *first = q->flat_offset < *first ? q->flat_offset : *first;
        *last =
            q->flat_offset + q->shard_elements > *last ? q->flat_offset + q->shard_elements : *last;
    }
}

/* Buckets: in the last micro-batch a layer's gradient is reduced over the replicas while the layer
 * below computes. */
static void reduce_bucket(struct s4d_builder *b, int layer)
{
    struct s4d_label label = b->label;
    int64_t first, last;
    layer_range(b, layer, &first, &last);
    b->label = (struct s4d_label){
        .phase = S4D_PHASE_GRADIENT, .layer = layer, .micro_batch = -1, .name = "gradient"};
    s4d_emit_gradient_all_reduce(b, first, last);
    b->label = label;
}

static bool buckets_now(const struct s4d_builder *b)
{
    return b->options->gradient_reduce == S4D_REDUCE_BUCKETS &&
           b->label.micro_batch == b->p->micro_batches - 1;
}

static int blocks_backward(struct s4d_builder *b, struct stack *s, int dx)
{
    for (int i = b->model->num_layers - 1; i >= 0; i--) {
        if (b->options->recompute == S4D_RECOMPUTE_FULL) {
            set_label(b, S4D_PHASE_RECOMPUTE, i);
            block_forward(b, &s->blocks[i], s->inputs[i]);
        }
        set_label(b, S4D_PHASE_BACKWARD, i);
        dx = block_backward(b, &s->blocks[i], dx);
        if (buckets_now(b) &&
            i + 1 < b->model->num_layers) { /* the layer above: its reduce-scatters have had a
                                               layer's time */
            s4d_flush_gradients(b, i);
            reduce_bucket(b, i + 1);
        }
    }
    return dx;
}

static void stack_backward(struct s4d_builder *b, struct stack *s)
{
    int dx = backward(b, &s->head, -1, -1);
    set_label(b, S4D_PHASE_BACKWARD, -1);
    dx = blocks_backward(b, s, backward(b, &s->norm, dx, -1));
    set_label(b, S4D_PHASE_BACKWARD, -1);
    backward(b, &s->embedding, backward(b, &s->positions, dx, -1), -1);
    s4d_flush_gradients(b, -2);
    if (buckets_now(b)) {
        reduce_bucket(b, 0);
        reduce_bucket(b, -1);
    }
}

/* The micro-batch's sequences of the iteration's tokens or targets, (b, s). */
static int sequences_of(struct s4d_builder *b, int index, int tensor)
{
    int64_t rows = b->options->micro_batch, stride = b->p->tensors[tensor].stride[0];
    return s4d_view(b, tensor, index * rows * stride, rows, b->model->seq_length, stride);
}

static void micro_batch(struct s4d_builder *b, struct stack *s, int index, int tokens, int targets)
{
    b->tokens = sequences_of(b, index, tokens);
    b->targets = sequences_of(b, index, targets);
    b->label.micro_batch = index;
    int x = stack_forward(b, s);
    forward(b, &s->head, x);
    set_label(b, S4D_PHASE_BACKWARD, -1);
    stack_backward(b, s);
}

/* Sequences of this rank in the global batch: z within data. */
static int emit_tokens(struct s4d_builder *b)
{
    struct s4d_program *p = b->p;
    int64_t rows = (int64_t)p->micro_batches * b->options->micro_batch, seq = b->model->seq_length;
    int pinned = s4d_add_storage(b, "tokens.host", rows * (seq + 1) * 4, S4D_ROLE_INPUT, false);
    p->storages[pinned].place = S4D_PINNED_HOST;
    p->tokens_host = s4d_add_tensor(b, "tokens.host", pinned, S4D_I32, 0, rows, seq + 1);
    int device = s4d_new(b, "tokens", S4D_ROLE_INPUT, S4D_I32, rows, seq + 1);
    b->label.name = "tokens";
    struct s4d_op *op = S4D_EMIT(b, S4D_OP_READ_TOKENS, S4D_STREAM_HOST, p->tokens_host);
    op->c.read_tokens.first = s4d_constant(0);
    op->c.read_tokens.first.stride[S4D_Z] = rows;
    op->c.read_tokens.first.stride[S4D_DATA] = rows * b->grid->size[S4D_Z];
    S4D_EMIT(b, S4D_OP_HOST_TO_DEVICE, S4D_STREAM_COPY_IN, p->tokens_host, device);
    return device;
}

/* Every token's successor, unless the head chooses. */
static int emit_targets(struct s4d_builder *b, const struct s4d_layer *head, int tokens)
{
    int64_t rows = b->p->tensors[tokens].shape[0], seq = b->model->seq_length;
    b->label.name = "targets";
    return head->kind->targets ? head->kind->targets(b, head, tokens)
                               : s4d_view(b, tokens, 1, rows, seq, seq + 1);
}

/* The kept tokens of the global batch, before the first backward; and the iteration's accumulators
 * at zero. */
static void emit_start(struct s4d_builder *b, int targets)
{
    struct s4d_program *p = b->p;
    b->label.name = "denominator";
    S4D_COMPUTE(b, S4D_OP_TOKEN_COUNT, targets, p->denominator);
    s4d_all_reduce(b, S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA), p->denominator, S4D_SUM);
    b->label.name = "zero";
    S4D_COMPUTE(b, S4D_OP_ZERO, b->loss_sum);
    S4D_COMPUTE(b, S4D_OP_ZERO,
                s4d_add_tensor(b, "gradient.replicated", b->gradient[1], s4d_accumulate_type(b), 0,
                               1, b->replicated_elements));
}

static void declare_scalars(struct s4d_builder *b)
{
    struct s4d_program *p = b->p;
    const struct s4d_options *o = b->options;
    bool normed = o->loss_scaling || o->clip_norm > 0;
    p->lr = s4d_scalar(b, "lr");
    p->step = s4d_scalar(b, "step");
    p->denominator = s4d_scalar(b, "denominator");
    p->loss = s4d_scalar(b, "loss");
    b->loss_sum = s4d_scalar(b, "loss sum");
    p->loss_scale = o->loss_scaling ? s4d_scalar(b, "loss scale") : -1;
    p->found_inf = normed ? s4d_scalar(b, "found inf") : -1;
    p->grad_norm = normed ? s4d_scalar(b, "grad norm") : -1;
}

static void emit_iteration(struct s4d_builder *b, struct stack *s)
{
    int tokens = emit_tokens(b), targets = emit_targets(b, &s->head, tokens);
    emit_start(b, targets);
    for (int i = 0; i < b->p->micro_batches; i++)
        micro_batch(b, s, i, tokens, targets);
    s4d_emit_optimizer(b);
}

/* A program longer than this would not fit into memory: of about 40 ops and 30 kB a layer and
 * micro-batch. */
int s4d_most_micro_batches(const struct s4d_model *model)
{
    enum { MOST = 1 << 17 };
    return MOST / (model->num_layers + 1);
}

/* Bytes are counted in 64 bits, of which 2^62 are enough: of a token no layer has more columns in
 * all its buffers, forward, again and backward, than these, of eight bytes at the most. */
int s4d_largest_micro_batch(const struct s4d_model *m)
{
    double h = m->hidden_size, q = (double)m->num_attention_heads * s4d_head_dim(m);
    double layer = 20 * h + 12 * q + 10.0 * m->ffn_hidden_size;
    double token_B = 8 * ((m->num_layers + 2) * layer + 4.0 * m->vocab_size);
    return (int)fmin(INT_MAX, 0x1p62 / token_B / m->seq_length);
}

static int check_size(const struct s4d_program *p, struct s4d_error *err)
{
    int largest = s4d_largest_micro_batch(&p->model);
    return p->options.micro_batch <= largest
               ? 0
               : s4d_fail(err, S4D_EXIT_USAGE, "--micro-batch",
                          "expected at most %d sequences of %s at once, got %d: more bytes than 64 "
                          "bits count",
                          largest, p->model.name, p->options.micro_batch);
}

static int check_length(const struct s4d_program *p, struct s4d_error *err)
{
    int most = s4d_most_micro_batches(&p->model);
    if (p->micro_batches <= most)
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, "--micro-batch",
             "expected at most %d micro-batches of %s on a rank, got %d (of %d sequences)", most,
             p->model.name, p->micro_batches, p->options.micro_batch);
    return s4d_hint(err, "a larger --micro-batch, or a grid with more z or data");
}

static int build(struct s4d_program *p, const struct s4d_model *model, const struct s4d_grid *grid,
                 const struct s4d_options *options, bool ordered, struct s4d_error *err)
{
    *p = (struct s4d_program){
        .model = *model, .grid = *grid, .options = *options, .arena_bytes = {-1, -1}};
    if (s4d_divides(model, grid, options, err))
        return -1;
    S4D_ASSERT(options->micro_batch > 0, "micro-batch must be chosen before a program is built");
    p->micro_batches =
        options->global_batch / (grid->size[S4D_Z] * grid->size[S4D_DATA] * options->micro_batch);
    p->tokens = (int64_t)options->micro_batch * model->seq_length;
    if (check_size(p, err) || check_length(p, err))
        return -1;
    struct s4d_builder b;
    s4d_builder_init(&b, p);
    struct stack s = declare_stack(&b);
    b.positions = &s.positions;
    b.label.layer = -1;
    s4d_finish_params(&b);
    declare_scalars(&b);
    emit_iteration(&b, &s);
    s4d_place_gathers(&b);
    if (ordered)
        s4d_order(p, b.edges, b.n_edges);
    s4d_builder_fini(&b);
    return 0;
}

int s4d_build(struct s4d_program *p, const struct s4d_model *model, const struct s4d_grid *grid,
              const struct s4d_options *options, struct s4d_error *err)
{
    return build(p, model, grid, options, true, err);
}

int s4d_build_list(struct s4d_program *p, const struct s4d_model *model,
                   const struct s4d_grid *grid, const struct s4d_options *options,
                   struct s4d_error *err)
{
    return build(p, model, grid, options, false, err);
}
