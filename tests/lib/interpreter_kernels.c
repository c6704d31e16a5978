/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the kernel of an op, and what kernels ask about their op. */
#include "tests/lib/interpreter_internal.h"

const union s4d_constants *s4d_turn_constants(const struct s4d_turn *t)
{
    return &s4d_rank_op(t->in, t->rank, t->op)->c;
}

int64_t s4d_turn_value(const struct s4d_turn *t, const struct s4d_expr *e)
{
    return s4d_expr_value(e, t->in->coordinate[t->rank]);
}

/* A fault unless operand k has n elements (absent operands are not asked about). */
bool s4d_turn_expect(struct s4d_turn *t, int k, int64_t n)
{
    int64_t found = s4d_turn_elements(t, k);
    if (found == n)
        return true;
    s4d_fault(t->in, t->rank, t->op, "operand %s has %lld elements, expected %lld",
              s4d_op_kinds[s4d_rank_op(t->in, t->rank, t->op)->kind].operand[k].name,
              (long long)found, (long long)n);
    return false;
}

double s4d_turn_scalar(struct s4d_turn *t, int k, double absent)
{
    const double *v = s4d_turn_elements(t, k) ? s4d_turn_load(t, k) : NULL;
    return v ? v[0] : absent;
}

void s4d_kernel_run(struct s4d_turn *t)
{
    enum s4d_op_kind kind = s4d_rank_op(t->in, t->rank, t->op)->kind;
    s4d_kernel kernel = s4d_layer_kernels[kind]   ? s4d_layer_kernels[kind]
                        : s4d_llama_kernels[kind] ? s4d_llama_kernels[kind]
                                                  : s4d_training_kernels[kind];
    S4D_ASSERT(kernel, "no kernel for %s", s4d_op_kinds[kind].name);
    kernel(t);
    s4d_turn_end(t);
}
