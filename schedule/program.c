/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, tensors and parameter blocks of a program. */
#include "schedule/program.h"

#include <stdlib.h>
#include <string.h>

const struct s4d_stream_info s4d_streams[S4D_STREAMS] = {
    [S4D_STREAM_COMPUTE] = {"compute", 0},
    [S4D_STREAM_X] = {"x", S4D_AXIS(S4D_X)},
    [S4D_STREAM_Y] = {"y", S4D_AXIS(S4D_Y)},
    [S4D_STREAM_Z_GATHER] = {"z-gather", S4D_AXIS(S4D_Z)},
    [S4D_STREAM_Z_SCATTER] = {"z-scatter", S4D_AXIS(S4D_Z)},
    [S4D_STREAM_DATA] = {"data", S4D_AXIS(S4D_DATA)},
    [S4D_STREAM_Z_DATA] = {"z-data", S4D_AXIS(S4D_Z) | S4D_AXIS(S4D_DATA)},
    [S4D_STREAM_X_Y_Z] = {"x-y-z", S4D_AXIS(S4D_X) | S4D_AXIS(S4D_Y) | S4D_AXIS(S4D_Z)},
    [S4D_STREAM_P2P_FORWARD] = {"p2p-forward", S4D_AXIS(S4D_PIPE)},
    [S4D_STREAM_P2P_BACKWARD] = {"p2p-backward", S4D_AXIS(S4D_PIPE)},
    [S4D_STREAM_COPY_IN] = {"copy-in", 0},
    [S4D_STREAM_COPY_OUT] = {"copy-out", 0},
    [S4D_STREAM_HOST] = {"host", 0},
};

const char *const s4d_phase_names[S4D_PHASES] = {
    [S4D_PHASE_INPUT] = "input",         [S4D_PHASE_FORWARD] = "forward",
    [S4D_PHASE_RECOMPUTE] = "recompute", [S4D_PHASE_BACKWARD] = "backward",
    [S4D_PHASE_GRADIENT] = "gradient",   [S4D_PHASE_OPTIMIZER] = "optimizer",
};

const char *const s4d_role_names[S4D_ROLES] = {
    [S4D_ROLE_PARAMETER] = "parameters",
    [S4D_ROLE_MASTER] = "masters",
    [S4D_ROLE_MOMENT] = "moments",
    [S4D_ROLE_GRADIENT] = "gradients",
    [S4D_ROLE_ACTIVATION] = "activations",
    [S4D_ROLE_WORKSPACE] = "workspace",
    [S4D_ROLE_MESSAGE] = "messages",
    [S4D_ROLE_SCALAR] = "scalars",
    [S4D_ROLE_INPUT] = "input",
};

void s4d_program_free(struct s4d_program *program)
{
    free(program->storages);
    free(program->tensors);
    free(program->ops);
    free(program->params);
    s4d_arena_free(&program->memory);
    memset(program, 0, sizeof *program);
}

const struct s4d_program *s4d_stage_program(const struct s4d_program *program, int stage)
{
    return program->stages ? program->stages[stage] : program;
}

static bool is_together(const struct s4d_program *p, int a, int b)
{
    return 0 <= b && b < p->n_ops && p->ops[a].batch != 0 && p->ops[b].batch == p->ops[a].batch;
}

int s4d_batch_first(const struct s4d_program *program, int op)
{
    while (is_together(program, op, op - 1))
        op--;
    return op;
}

int s4d_batch_last(const struct s4d_program *program, int op)
{
    while (is_together(program, op, op + 1))
        op++;
    return op;
}

int64_t s4d_param_cols(const struct s4d_param *param)
{
    int64_t cols = 0;
    for (int i = 0; i < param->parts; i++)
        cols += param->part_cols[i];
    return cols;
}

/* Members and own coordinate along an axis, of which -1 means "not split". */
static int64_t split(const struct s4d_program *p, int axis)
{
    return axis < 0 ? 1 : p->grid.size[axis];
}

static int64_t place(const int coordinate[S4D_AXES], int axis)
{
    return axis < 0 ? 0 : coordinate[axis];
}

int64_t s4d_param_global_index(const struct s4d_program *p, const struct s4d_param *param,
                               const int coordinate[S4D_AXES], int64_t i)
{
    int64_t n_row = split(p, param->row_axis), n_col = split(p, param->col_axis);
    int64_t block_rows = param->padded_rows / n_row, block_cols = s4d_param_cols(param) / n_col;
    if (param->sharded_z)
        i += coordinate[S4D_Z] * param->shard_elements;
    if (i >= block_rows * block_cols)
        return -1; /* the shard's padding */
    int64_t row = place(coordinate, param->row_axis) * block_rows + i / block_cols;
    if (row >= param->rows)
        return -1; /* a padded vocabulary row */
    /* Each part is split by itself: a block's columns are one piece of every part. */
    int64_t col = i % block_cols, first = 0;
    for (int part = 0; part < param->parts; part++) {
        int64_t piece = param->part_cols[part] / n_col;
        if (col < piece)
            return row * s4d_param_cols(param) + first +
                   place(coordinate, param->col_axis) * piece + col;
        col -= piece;
        first += param->part_cols[part];
    }
    S4D_ASSERT(false, "%s: the parts do not divide by their axis", param->name);
    return -1;
}

int64_t s4d_tensor_elements(const struct s4d_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->dims; d++)
        n *= t->shape[d];
    return n;
}

void s4d_tensor_range(const struct s4d_program *p, int tensor, int64_t *first, int64_t *last)
{
    const struct s4d_tensor *t = &p->tensors[tensor];
    int low[S4D_AXES], high[S4D_AXES];
    for (int a = 0; a < S4D_AXES; a++) {
        bool up = t->offset.stride[a] >= 0;
        low[a] = up ? 0 : p->grid.size[a] - 1;
        high[a] = up ? p->grid.size[a] - 1 : 0;
    }
    int64_t bytes = s4d_type_bytes[t->type], below = 0, above = 0;
    *first = *last = s4d_expr_value(&t->offset, low) * bytes;
    if (s4d_tensor_elements(t) == 0)
        return;
    for (int d = 0; d < t->dims; d++) {
        int64_t reach = (t->shape[d] - 1) * t->stride[d];
        *(reach < 0 ? &below : &above) += reach;
    }
    *first += below * bytes;
    *last = (s4d_expr_value(&t->offset, high) + above + 1) * bytes;
}
