/* SPDX-License-Identifier: Apache-2.0 */
#include "real/account.h"

#include <stdlib.h>

#include "support/memory.h"

void s4d_real_account_init(struct s4d_real_account *a, const struct s4d_program *p,
                           int max_iterations)
{
    *a = (struct s4d_real_account){.p = p, .max_iterations = max_iterations};
    a->iterations = s4d_calloc((size_t)max_iterations + 1, sizeof *a->iterations);
    for (int s = 0; s < S4D_STREAMS; s++)
        a->op_at[s] = s4d_calloc((size_t)p->stream_length[s] + 1, sizeof *a->op_at[s]);
    for (int i = 0; i < p->n_ops; i++)
        a->op_at[p->ops[i].stream][p->ops[i].position] = i;
    for (int i = 0; i < 2; i++)
        a->end_s[i] = s4d_calloc((size_t)p->n_ops, sizeof *a->end_s[i]);
}

void s4d_real_account_fini(struct s4d_real_account *a)
{
    free(a->iterations);
    free(a->end_s[0]);
    free(a->end_s[1]);
    for (int s = 0; s < S4D_STREAMS; s++)
        free(a->op_at[s]);
}

/* The wait of a compute op that ended last; its end. */
static double last_wait(const struct s4d_real_account *a, const struct s4d_op *op, int iteration,
                        enum s4d_stream *stream)
{
    double last = 0;
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *w = &op->waits[i];
        int of = iteration + w->iteration;
        double end_s = of < 0 ? 0 : a->end_s[of % 2][a->op_at[w->stream][w->position]];
        if (end_s <= last)
            continue;
        last = end_s;
        *stream = w->stream;
    }
    return last;
}

static void charge(struct s4d_real_account *a, struct s4d_account_iteration *to,
                   const struct s4d_op *op, int iteration, double start_s)
{
    enum s4d_stream stream = S4D_STREAM_COMPUTE;
    double from = a->last_compute_s, wait_s = last_wait(a, op, iteration, &stream);
    wait_s = wait_s < start_s ? wait_s : start_s;
    if (wait_s > from) {
        to->exposed_s[stream] += wait_s - from;
        from = wait_s;
    }
    if (start_s > from)
        to->issue_s += start_s - from;
}

int s4d_real_account_ran(void *self, const struct s4d_call *call, int iteration, double start_s,
                         double end_s, struct s4d_error *err)
{
    struct s4d_real_account *a = self;
    struct s4d_account_iteration *to = &a->iterations[iteration];
    const struct s4d_op *op = call->op;
    (void)err;
    to->busy_s[op->stream] += end_s - start_s;
    if (op->stream == S4D_STREAM_COMPUTE) {
        charge(a, to, op, iteration, start_s);
        to->exposed_s[S4D_STREAM_COMPUTE] += end_s - start_s;
        a->last_compute_s = end_s;
    }
    if (op->kind == S4D_OP_GEMM) {
        to->gemm_s += end_s - start_s;
        to->gemm_flops += op->flops;
    }
    a->end_s[iteration % 2][call->index] = end_s;
    return 0;
}
