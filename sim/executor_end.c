/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended: its figures, or its deadlock. */
#include <math.h>
#include <stdio.h>

#include "sim/executor_state.h"

static void describe(const struct s4d_op *op, char *text, size_t size)
{
    char layer[32] = "", micro_batch[32] = "";
    if (op->label.layer >= 0)
        snprintf(layer, sizeof layer, " layer %d", op->label.layer);
    if (op->label.micro_batch >= 0)
        snprintf(micro_batch, sizeof micro_batch, " micro-batch %d", op->label.micro_batch);
    snprintf(text, size, "%s %s (%s%s%s), op %d of stream %s", s4d_op_kinds[op->kind].name,
             op->label.name ? op->label.name : "", s4d_phase_names[op->label.phase], layer,
             micro_batch, op->position, s4d_streams[op->stream].name);
}

/* A message whose peer never comes to it. */
static int lonely(const struct executor *x, const struct message *m, struct s4d_error *err)
{
    char op[256];
    describe(&x->ranks[m->rank].program->ops[m->op], op, sizeof op);
    return s4d_fail(err, S4D_EXIT_BUG, "",
                    "deadlock: rank %d, iteration %d: %s waits for rank %d, which does not %s it",
                    x->system->ranks[m->rank].representative, m->iteration, op,
                    x->system->ranks[m->peer].representative, m->sends ? "receive" : "send");
}

/* The engine has run dry with ops left: names the first message that one rank alone has come to,
 * the first op whose wait is not met, or, if there are none, the first collective that a member has
 * not come to. */
int s4d_executor_deadlock(const struct executor *x, struct s4d_error *err)
{
    for (int i = 0; i < x->system->n_ranks; i++)
        for (int s = 0; s < S4D_STREAMS; s++)
            if (x->ranks[i].first_post[s] >= 0)
                return lonely(x, &x->messages[x->ranks[i].first_post[s]], err);
    for (int members = 0; members < 2; members++)
        for (int i = 0; i < x->system->n_ranks; i++)
            for (int s = 0; s < S4D_STREAMS; s++) {
                const struct rank *r = &x->ranks[i];
                if (r->done[s] == s4d_executor_total(x, i, s) ||
                    (r->state[s] == WAITING) == (members == 1))
                    continue;
                int iteration;
                char op[256], other[256];
                describe(s4d_executor_head(x, i, s, &iteration), op, sizeof op);
                int rank = x->system->ranks[i].representative;
                if (members)
                    return s4d_fail(err, S4D_EXIT_BUG, "",
                                    "deadlock: rank %d, iteration %d: %s has not all its members",
                                    rank, iteration, op);
                int length = r->program->stream_length[r->blocked_by[s]], at = r->needed[s] - 1;
                describe(r->index->order[r->blocked_by[s]][at % length], other, sizeof other);
                return s4d_fail(err, S4D_EXIT_BUG, "",
                                "deadlock: rank %d, iteration %d: %s waits for %s of iteration %d",
                                rank, iteration, op, other, at / length);
            }
    return 0;
}

/* The figures of the rank that ends last; of ranks that end together, of the lowest. */
void s4d_executor_results(struct executor *x)
{
    struct s4d_run *run = x->run;
    double end_s[ITERATIONS] = {0};
    for (int i = 0; i < x->system->n_ranks; i++)
        for (int k = 0; k < ITERATIONS; k++)
            end_s[k] = fmax(end_s[k], x->ranks[i].end_s[k]);
    int slowest = -1;
    for (int i = 0; i < x->system->n_ranks; i++)
        if (x->ranks[i].end_s[1] >= end_s[1] * (1 - 1e-9) &&
            (slowest < 0 || x->system->ranks[i].representative < run->slowest_rank)) {
            slowest = i;
            run->slowest_rank = x->system->ranks[i].representative;
        }
    const struct s4d_account *a = &x->ranks[slowest].account;
    run->gemm_flops = x->ranks[slowest].index->gemm_flops;
    run->first_iteration_s = end_s[0];
    run->iteration_time_s = end_s[1] - end_s[0];
    run->gemm_time_s = a->gemm_s;
    run->exposed_other_s = run->iteration_time_s;
    for (int s = 0; s < S4D_STREAMS; s++) {
        run->busy_s[s] = a->busy_s[s];
        run->exposed_s[s] = a->exposed_s[s];
        run->exposed_other_s -= a->exposed_s[s];
    }
    if (fabs(run->exposed_other_s) <= 1e-9 * run->iteration_time_s)
        run->exposed_other_s = 0;
}
