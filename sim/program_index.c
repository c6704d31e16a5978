/* SPDX-License-Identifier: Apache-2.0 */
/* Tables over a program's ops. */
#include "sim/program_index.h"

#include <stdlib.h>

static bool is_collective(const struct s4d_op *op)
{
    return s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE;
}

static bool same_size(const struct s4d_op *a, const struct s4d_op *b)
{
    return a->kind == b->kind &&
           s4d_collective_bytes(&a->c, a->kind) == s4d_collective_bytes(&b->c, b->kind);
}

/* Numbers the distinct sizes of one stream's collectives; returns how many. There are few. */
static int number_sizes(struct s4d_program_index *x, const struct s4d_program *p, int stream)
{
    const struct s4d_op **order = x->order[stream];
    int n = 0, *first = s4d_malloc(((size_t)p->stream_length[stream] + 1) * sizeof *first);
    for (int i = 0; i < p->stream_length[stream]; i++) {
        if (!is_collective(order[i]))
            continue;
        int size = 0;
        while (size < n && !same_size(order[first[size]], order[i]))
            size++;
        if (size == n)
            first[n++] = i;
        x->size[order[i] - p->ops] = size;
    }
    free(first);
    return n;
}

struct s4d_program_index s4d_program_index_make(const struct s4d_program *p,
                                                const struct s4d_kernels *kernels,
                                                const struct s4d_rates *rates)
{
    struct s4d_program_index x = {0};
    size_t n = (size_t)p->n_ops + 1;
    x.kernel_s = s4d_calloc(n, sizeof *x.kernel_s);
    x.size = s4d_calloc(n, sizeof *x.size);
    x.ends = s4d_calloc(n, sizeof *x.ends);
    for (int s = 0; s < S4D_STREAMS; s++)
        x.order[s] = s4d_calloc((size_t)p->stream_length[s] + 1, sizeof *x.order[s]);
    bool adamw = false;
    for (int i = 0; i < p->n_ops; i++)
        adamw |= p->ops[i].kind == S4D_OP_ADAMW;
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        x.order[op->stream][op->position] = op;
        if (!s4d_communicates(op->kind))
            x.kernel_s[i] = s4d_kernel_time_s(kernels, p, op) /
                            rates->op_class[s4d_op_kinds[op->kind].op_class];
        x.ends[i] = !adamw || op->kind == S4D_OP_ADAMW;
        x.n_ends += x.ends[i];
        x.gemm_flops += op->kind == S4D_OP_GEMM ? op->flops : 0;
    }
    for (int s = 0; s < S4D_STREAMS; s++) {
        int sizes = number_sizes(&x, p, s);
        x.n_sizes = sizes > x.n_sizes ? sizes : x.n_sizes;
    }
    return x;
}

void s4d_program_index_free(struct s4d_program_index *x)
{
    for (int s = 0; s < S4D_STREAMS; s++)
        free(x->order[s]);
    free(x->kernel_s);
    free(x->size);
    free(x->ends);
}
