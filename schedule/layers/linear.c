/* SPDX-License-Identifier: Apache-2.0 */
/* The fully connected layer of the 4D algorithm.
 * I: (T, k/Gin)  W: (k/Gin, n/Gout)  O: (T, n/Gout), partial over the axis of k until its
 * all-reduce. */
#include "schedule/layers/linear.h"

#include "schedule/layer.h"

static void set_hf_names(struct s4d_builder *b, int param, const struct s4d_linear_shape *shape,
                         const char *suffix)
{
    for (int i = 0; i < shape->parts; i++)
        if (shape->hf_part[i])
            b->p->params[param].hf_part_name[i] = s4d_name(b, shape->hf_part[i], suffix);
}

void s4d_linear_declare(struct s4d_builder *b, struct s4d_linear *l,
                        const struct s4d_linear_shape *shape)
{
    l->label = shape->label;
    l->in_axis = shape->transposed ? S4D_X : S4D_Y;
    l->out_axis = shape->transposed ? S4D_Y : S4D_X;
    l->weight = s4d_matrix(b, s4d_name(b, shape->name, ".weight"),
                           s4d_name(b, shape->hf, ".weight"), shape->k, shape->part_cols,
                           shape->parts, l->in_axis, l->out_axis, shape->init_std);
    b->p->params[l->weight].hf_transposed = shape->hf_transposed;
    set_hf_names(b, l->weight, shape, ".weight");
    l->bias = -1;
    if (!shape->bias)
        return;
    l->bias = s4d_vector(b, s4d_name(b, shape->name, ".bias"), s4d_name(b, shape->hf, ".bias"), 1,
                         shape->part_cols, shape->parts, l->out_axis, S4D_INIT_ZERO, false);
    set_hf_names(b, l->bias, shape, ".bias");
}

int s4d_linear_bias(const struct s4d_builder *b, const struct s4d_linear *l)
{
    return l->bias < 0 ? -1 : b->p->params[l->bias].master;
}

int s4d_linear_forward(struct s4d_builder *b, struct s4d_linear *l, int input)
{
    b->label.name = l->label;
    l->input = input;
    l->block = s4d_use_weight(b, l->weight);
    int64_t tokens = b->p->tensors[input].shape[0], cols = s4d_block_cols(b, l->weight);
    int output = s4d_new(b, l->label, S4D_ROLE_ACTIVATION, s4d_compute_type(b), tokens, cols);
    s4d_gemm(b, input, false, l->block, false, output, false);
    s4d_all_reduce(b, S4D_AXIS(l->in_axis), output, S4D_SUM);
    return output;
}

/* dW = transpose(I) dO, then its reduce-scatter over z. */
static void weight_gradient(struct s4d_builder *b, struct s4d_linear *l, int d_output)
{
    int flat, d_weight = s4d_gradient_block(b, l->weight, &flat);
    s4d_gemm(b, l->input, true, d_output, false, d_weight, false);
    s4d_reduce_gradient(b, l->weight, flat);
}

/* dI = dO transpose(W); *reduce gets its all-reduce's list index. */
static int input_gradient(struct s4d_builder *b, struct s4d_linear *l, int d_output, int block,
                          int *reduce)
{
    const struct s4d_tensor *input = &b->p->tensors[l->input];
    int d_input = s4d_new(b, s4d_name(b, l->label, ".dx"), S4D_ROLE_ACTIVATION, input->type,
                          input->shape[0], input->shape[1]);
    s4d_gemm(b, d_output, false, block, true, d_input, false);
    *reduce = s4d_all_reduce(b, S4D_AXIS(l->out_axis), d_input, S4D_SUM);
    return d_input;
}

/* Full recompute has just gathered the weight; otherwise it is gathered again, or cached. */
static int backward_block(struct s4d_builder *b, struct s4d_linear *l)
{
    return b->options->recompute == S4D_RECOMPUTE_FULL ? l->block : s4d_use_weight(b, l->weight);
}

int s4d_linear_backward(struct s4d_builder *b, struct s4d_linear *l, int d_output)
{
    b->label.name = l->label;
    int reduce;
    if (l->bias >= 0)
        S4D_COMPUTE(b, S4D_OP_COLUMN_SUM, d_output, b->p->params[l->bias].gradient);
    if (b->grid->size[l->out_axis] == 1) {
        /* No all-reduce to hide: dW comes first, so that its reduce-scatter hides behind dI. */
        weight_gradient(b, l, d_output);
        return input_gradient(b, l, d_output, backward_block(b, l), &reduce);
    }
    int d_input = input_gradient(b, l, d_output, backward_block(b, l), &reduce);
    if (!b->options->overlap.oar)
        s4d_order_after(b, reduce);
    weight_gradient(b, l, d_output);
    return d_input;
}

static double parameters(const struct s4d_model *m)
{
    return (double)m->hidden_size * m->ffn_hidden_size + m->ffn_hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    return 2.0 * m->seq_length * m->hidden_size * m->ffn_hidden_size;
}

/* Listed for its summary and source, counted for a (h, ffn) layer; attention and MLP are made of
 * it. */
const struct s4d_layer_kind s4d_layer_linear = {
    .name = "linear",
    .slot = S4D_SLOT_LINEAR,
    .summary = "fully connected layer of the 4D algorithm, normal or transposed",
    .tensors = "weight (k, n): k over y, n over x (transposed: swapped), shard over z; bias (n) "
               "over the axis of n",
    .source = "arXiv 2305.13525 sec. 3, arXiv 2502.08145 alg. 1",
    .parameters = parameters,
    .forward_flops = forward_flops,
};
