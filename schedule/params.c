/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters: their blocks, their z shards and the flat buffers that hold them.
 *
 * All matrices' shards lie in one flat buffer (working weights, fp32 masters, gradients, two
 * moments at the same element offsets): the gradient all-reduce and AdamW are one op each. Biases,
 * gains and positions lie in a second one, replicated over z, and are used in fp32 as they are. It
 * is sorted by (decay, splitting axis), so that each run of it is counted once in the norm by one
 * expression. */
#include "schedule/builder.h"

enum { SHARD_BYTES = 256 };

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t split(const struct s4d_builder *b, int64_t n, int axis)
{
    return axis < 0 ? n : n / b->grid->size[axis];
}

int64_t s4d_block_rows(const struct s4d_builder *b, int param)
{
    const struct s4d_param *q = &b->p->params[param];
    return split(b, q->padded_rows, q->row_axis);
}

int64_t s4d_block_cols(const struct s4d_builder *b, int param)
{
    const struct s4d_param *q = &b->p->params[param];
    int64_t cols = 0;
    for (int i = 0; i < q->parts; i++)
        cols += split(b, q->part_cols[i], q->col_axis);
    return cols;
}

static int add_param(struct s4d_builder *b, struct s4d_param q, const int64_t *part_cols)
{
    for (int i = 0; i < q.parts; i++)
        q.part_cols[i] = part_cols[i];
    q.layer = b->label.layer;
    q.master = q.working = q.gradient = -1;
    s4d_push(b->p->params, b->p->n_params, b->p->cap_params, q);
    int id = b->p->n_params - 1;
    struct s4d_param *added = &b->p->params[id];
    added->block_elements = s4d_block_rows(b, id) * s4d_block_cols(b, id);
    added->shard_elements = added->block_elements;
    return id;
}

int s4d_matrix(struct s4d_builder *b, const char *name, const char *hf_name, int64_t rows,
               const int64_t *part_cols, int parts, int row_axis, int col_axis, double init_std)
{
    struct s4d_param q = {.name = name,
                          .hf_name = hf_name,
                          .rows = rows,
                          .padded_rows =
                              row_axis < 0 ? rows : round_up(rows, b->grid->size[row_axis]),
                          .parts = parts,
                          .row_axis = row_axis,
                          .col_axis = col_axis,
                          .sharded_z = true,
                          .init = S4D_INIT_NORMAL,
                          .init_std = init_std,
                          .replicated = S4D_AXIS(S4D_DATA),
                          .summed = S4D_AXIS(S4D_DATA),
                          .decay = true};
    int id = add_param(b, q, part_cols);
    struct s4d_param *added = &b->p->params[id];
    int gz = b->grid->size[S4D_Z];
    added->shard_elements = round_up((added->block_elements + gz - 1) / gz,
                                     SHARD_BYTES / s4d_type_bytes[s4d_compute_type(b)]);
    return id;
}

int s4d_vector(struct s4d_builder *b, const char *name, const char *hf_name, int64_t rows,
               const int64_t *part_cols, int parts, int col_axis, enum s4d_initialiser init,
               bool decay)
{
    s4d_axes all = S4D_AXIS(S4D_X) | S4D_AXIS(S4D_Y) | S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA);
    struct s4d_param q = {.name = name,
                          .hf_name = hf_name,
                          .rows = rows,
                          .padded_rows = rows,
                          .parts = parts,
                          .row_axis = -1,
                          .col_axis = col_axis,
                          .init = init,
                          .init_std = 0.02,
                          .replicated = col_axis < 0 ? all : all & ~S4D_AXIS(col_axis),
                          .summed = S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA),
                          .decay = decay};
    return add_param(b, q, part_cols);
}

/* Sharded ones by layer, those outside the layers first, each in the order of declaration: a
 * gradient bucket must be contiguous. */
static void lay_out_sharded(struct s4d_builder *b)
{
    for (int layer = -1; layer < b->model->num_layers; layer++)
        for (int i = 0; i < b->p->n_params; i++) {
            struct s4d_param *q = &b->p->params[i];
            if (!q->sharded_z || q->layer != layer)
                continue;
            q->flat_offset = b->sharded_elements;
            b->sharded_elements += q->shard_elements;
        }
}

static void lay_out_replicated(struct s4d_builder *b)
{
    for (int decay = 0; decay < 2; decay++)
        for (int axis = -1; axis < S4D_AXES; axis++)
            for (int i = 0; i < b->p->n_params; i++) {
                struct s4d_param *q = &b->p->params[i];
                if (q->sharded_z || q->decay != (decay == 1) || q->col_axis != axis)
                    continue;
                q->flat_offset = b->replicated_elements;
                b->replicated_elements += q->shard_elements;
            }
}

static void flat_storages(struct s4d_builder *b)
{
    static const char *const names[][2] = {{"master", "master.replicated"},
                                           {"gradient", "gradient.replicated"},
                                           {"moment1", "moment1.replicated"},
                                           {"moment2", "moment2.replicated"}};
    static const enum s4d_role roles[] = {S4D_ROLE_MASTER, S4D_ROLE_GRADIENT, S4D_ROLE_MOMENT,
                                          S4D_ROLE_MOMENT};
    int *const ids[] = {b->master, b->gradient, b->moment1, b->moment2};
    enum s4d_type acc = s4d_accumulate_type(b), compute = s4d_compute_type(b);
    const int64_t elements[2] = {b->sharded_elements, b->replicated_elements};
    for (int what = 0; what < 4; what++)
        for (int i = 0; i < 2; i++)
            ids[what][i] = s4d_add_storage(b, names[what][i], elements[i] * s4d_type_bytes[acc],
                                           roles[what], true);
    b->working = b->master[0];
    if (compute != acc)
        b->working = s4d_add_storage(b, "working", elements[0] * s4d_type_bytes[compute],
                                     S4D_ROLE_PARAMETER, true);
}

void s4d_finish_params(struct s4d_builder *b)
{
    lay_out_sharded(b);
    lay_out_replicated(b);
    flat_storages(b);
    enum s4d_type acc = s4d_accumulate_type(b), compute = s4d_compute_type(b);
    b->cached_block = s4d_malloc((size_t)b->p->n_params * sizeof(int));
    for (int i = 0; i < b->p->n_params; i++) {
        struct s4d_param *q = &b->p->params[i];
        int flat = q->sharded_z ? 0 : 1;
        int64_t rows = flat ? s4d_block_rows(b, i) : 1,
                cols = flat ? s4d_block_cols(b, i) : q->shard_elements;
        q->master = s4d_add_tensor(b, q->name, b->master[flat], acc, q->flat_offset, rows, cols);
        q->gradient = s4d_add_tensor(b, s4d_name(b, q->name, ".gradient"), b->gradient[flat], acc,
                                     q->flat_offset, rows, cols);
        q->working = flat || compute == acc ? q->master
                                            : s4d_add_tensor(b, q->name, b->working, compute,
                                                             q->flat_offset, rows, cols);
        b->cached_block[i] = -1;
    }
}

static int new_block(struct s4d_builder *b, int param, const char *name)
{
    int gz = b->grid->size[S4D_Z];
    return s4d_new(b, name, S4D_ROLE_WORKSPACE, s4d_compute_type(b), gz,
                   b->p->params[param].shard_elements);
}

static int block_view(struct s4d_builder *b, int param, int flat)
{
    int64_t rows = s4d_block_rows(b, param), cols = s4d_block_cols(b, param);
    return s4d_view(b, flat, 0, rows, cols, cols);
}

int s4d_use_weight(struct s4d_builder *b, int param)
{
    const struct s4d_param *q = &b->p->params[param];
    if (b->grid->size[S4D_Z] == 1)
        return block_view(b, param, q->working);
    bool cached = b->label.layer >= 0 && b->label.layer < b->options->cached_layers;
    if (cached && b->cached_block[param] >= 0)
        return block_view(b, param, b->cached_block[param]);
    int block = new_block(b, param, s4d_name(b, q->name, ".gathered"));
    struct s4d_weight_use use = {
        .param = param, .block = block, .at = b->p->n_ops, .label = b->label};
    s4d_push(b->uses, b->n_uses, b->cap_uses, use);
    if (cached)
        b->cached_block[param] = block;
    return block_view(b, param, block);
}

/* With ORS a block's reduce-scatter is not awaited before the micro-batch's end, so nothing would
 * tell when its bytes are free again: blocks of layers two apart share one buffer, and the memory
 * wait that follows bounds them. */
static int shared_block(struct s4d_builder *b, int param)
{
    int parity = b->label.layer % 2;
    for (int i = 0; i < b->n_buffers; i++)
        if (b->buffers[i].label == b->label.name && b->buffers[i].parity == parity)
            return b->buffers[i].tensor;
    int block = new_block(b, param,
                          s4d_name(b, b->label.name, parity ? ".d_weight.odd" : ".d_weight.even"));
    struct s4d_gradient_buffer buffer = {.label = b->label.name, .parity = parity, .tensor = block};
    s4d_push(b->buffers, b->n_buffers, b->cap_buffers, buffer);
    return block;
}

int s4d_gradient_block(struct s4d_builder *b, int param, int *flat)
{
    bool in_flight = b->grid->size[S4D_Z] > 1 && b->options->overlap.ors && b->label.layer >= 0;
    *flat = in_flight ? shared_block(b, param)
                      : new_block(b, param, s4d_name(b, b->p->params[param].name, ".d_weight"));
    int64_t tail = s4d_tensor_elements(&b->p->tensors[*flat]) - b->p->params[param].block_elements;
    if (tail > 0)
        S4D_COMPUTE(b, S4D_OP_ZERO,
                    s4d_view(b, *flat, b->p->params[param].block_elements, 1, tail, tail));
    return block_view(b, param, *flat);
}

/* The first micro-batch writes the gradient, the others add to it. */
static void add_gradient(struct s4d_builder *b, int param, int shard)
{
    S4D_COMPUTE(b, b->label.micro_batch == 0 ? S4D_OP_CAST : S4D_OP_ADD, shard,
                b->p->params[param].gradient);
}

void s4d_reduce_gradient(struct s4d_builder *b, int param, int flat)
{
    const struct s4d_param *q = &b->p->params[param];
    int64_t n = q->shard_elements;
    if (b->grid->size[S4D_Z] == 1) {
        add_gradient(b, param, s4d_view(b, flat, 0, 1, n, n));
        return;
    }
    int shard =
        s4d_new(b, s4d_name(b, q->name, ".d_shard"), S4D_ROLE_WORKSPACE, s4d_compute_type(b), 1, n);
    s4d_reduce_scatter_z(b, flat, shard);
    struct s4d_pending_gradient pending = {.param = param, .shard = shard, .layer = b->label.layer};
    s4d_push(b->pending, b->n_pending, b->cap_pending, pending);
    if (!b->options->overlap.ors)
        s4d_flush_gradients(b, -2);
}

void s4d_flush_gradients(struct s4d_builder *b, int except)
{
    int kept = 0;
    struct s4d_label label = b->label;
    for (int i = 0; i < b->n_pending; i++) {
        struct s4d_pending_gradient pending = b->pending[i];
        if (pending.layer == except) {
            b->pending[kept++] = pending;
            continue;
        }
        b->label.layer = pending.layer;
        b->label.name = b->p->params[pending.param].name;
        add_gradient(b, pending.param, pending.shard);
    }
    b->n_pending = kept;
    b->label = label;
}
