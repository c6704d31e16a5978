/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/counts.h"

#include "schedule/build.h"

enum { Z = 2, DATA = 2, MICRO_BATCHES = 2, SHARD_BYTES = 256 /* schedule/params.c */ };

static int build(struct s4d_program *p, const struct s4d_model *model, const struct s4d_grid *grid,
                 const struct s4d_options *options, int b, struct s4d_error *err)
{
    struct s4d_model m = *model;
    struct s4d_grid g = *grid;
    struct s4d_options o = *options;
    m.num_layers = 1;
    g.size[S4D_Z] = Z;
    g.size[S4D_DATA] = DATA;
    o.micro_batch = b;
    o.global_batch = MICRO_BATCHES * Z * DATA * b;
    o.cached_layers = 0;
    return s4d_build_list(p, &m, &g, &o, err);
}

int s4d_counts_create(struct s4d_counts *c, const struct s4d_model *model,
                      const struct s4d_grid *grid, const struct s4d_options *options,
                      struct s4d_error *err)
{
    if (build(&c->one, model, grid, options, 1, err))
        return -1;
    if (build(&c->two, model, grid, options, 2, err)) {
        s4d_program_free(&c->one);
        return -1;
    }
    S4D_ASSERT(c->one.n_ops == c->two.n_ops && c->one.n_storages == c->two.n_storages,
               "programs of %s differ in more than sizes", model->name);
    return 0;
}

void s4d_counts_free(struct s4d_counts *c)
{
    s4d_program_free(&c->one);
    s4d_program_free(&c->two);
}

static int64_t at(int64_t one, int64_t two, int b)
{
    return one + (two - one) * (b - 1);
}

struct s4d_op s4d_counts_op(const struct s4d_counts *c, int i, int b)
{
    const struct s4d_op *one = &c->one.ops[i], *two = &c->two.ops[i];
    struct s4d_op op = *one;
    op.flops = one->flops + (two->flops - one->flops) * (b - 1);
    op.bytes_read = at(one->bytes_read, two->bytes_read, b);
    op.bytes_written = at(one->bytes_written, two->bytes_written, b);
    switch (s4d_op_kinds[op.kind].op_class) {
    case S4D_CLASS_GEMM:
        op.c.gemm.m = at(one->c.gemm.m, two->c.gemm.m, b);
        op.c.gemm.n = at(one->c.gemm.n, two->c.gemm.n, b);
        op.c.gemm.k = at(one->c.gemm.k, two->c.gemm.k, b);
        break;
    case S4D_CLASS_ATTENTION:
        op.c.attention.batch = b;
        break;
    case S4D_CLASS_COLLECTIVE:
        op.c.collective.count = at(one->c.collective.count, two->c.collective.count, b);
        break;
    default:
        break;
    }
    return op;
}

int64_t s4d_shard_elements(const struct s4d_counts *c, const struct s4d_param *q, int z)
{
    if (!q->sharded_z)
        return q->block_elements;
    int64_t to = SHARD_BYTES / s4d_type_bytes[c->one.options.precision];
    return ((q->block_elements + z - 1) / z + to - 1) / to * to;
}

int64_t s4d_flat_elements(const struct s4d_counts *c, bool sharded, int layers, int z)
{
    int64_t sum = 0;
    for (int i = 0; i < c->one.n_params; i++) {
        const struct s4d_param *q = &c->one.params[i];
        if (q->sharded_z == sharded)
            sum += (q->layer < 0 ? 1 : layers) * s4d_shard_elements(c, q, z);
    }
    return sum;
}

int s4d_collective_param(const struct s4d_counts *c, const struct s4d_op *op)
{
    const struct s4d_program *p = &c->one;
    bool gather = op->kind == S4D_OP_ALL_GATHER;
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        if (gather ? q->working == op->operand[0].tensor
                   : q->sharded_z && q->layer == op->label.layer &&
                         q->shard_elements == op->c.collective.count)
            return i;
    }
    s4d_bug(__FILE__, __LINE__, s4d_op_kinds[op->kind].name, "no parameter is moved by %s",
            op->label.name);
}
