/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the kernels in fp64 on one rank against central differences of the loss: every
 * parameter of a GPT and of a Llama, moved along a random direction. Speaks TAP. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "real/executor.h"
#include "real/host/host.h"
#include "real/state.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "support/random.h"
#include "tests/lib/models.h"

enum { DIRECTION = 77 };

struct tokens {
    struct s4d_interpreter_options run;
    int count;
};

static int sequence(void *self, int64_t index, int32_t *tokens, struct s4d_error *err)
{
    struct tokens *t = self;
    (void)err;
    t->run.tokens(t->run.context, 0, index, tokens, t->count);
    return 0;
}

/* Weights that no gradient vanishes at: biases and gains are not all 0 and 1. Those of `moved` go
 * by e in its direction. */
static void set_weights(const struct s4d_executor *x, struct s4d_device *d,
                        const struct s4d_program *p, int moved, double e)
{
    struct s4d_error err;
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        double *w = s4d_malloc((size_t)q->shard_elements * sizeof *w);
        S4D_ASSERT(s4d_state_read(x, d, q->master, w, &err) == 0, "%s", err.text);
        for (int64_t k = 0; k < q->shard_elements; k++) {
            w[k] += q->init == S4D_INIT_NORMAL ? 0 : 0.3 * s4d_normal_at((uint64_t)i, (uint64_t)k);
            w[k] += i == moved ? e * s4d_normal_at(DIRECTION, (uint64_t)k) : 0;
        }
        S4D_ASSERT(s4d_state_write_weights(x, d, q, w, &err) == 0, "%s", err.text);
        free(w);
    }
}

/* The loss of an iteration; the slope that each parameter's gradient has in its direction, and the
 * root of its terms' squared sum, where asked for. */
static double loss_at(const struct s4d_program *p, struct tokens *tokens, int moved, double e,
                      double *slope, double *size)
{
    struct s4d_device d;
    struct s4d_executor *x;
    struct s4d_error err;
    struct s4d_host_options host = {.comm = MPI_COMM_SELF,
                                    .tokens = {.self = tokens, .sequence = sequence}};
    S4D_ASSERT(s4d_host_open(&d, p, &host, &err) == 0 &&
                   s4d_executor_create(&x, p, 0, &d, 1, &err) == 0 &&
                   s4d_state_initialise(x, &d, p, 0, 5, &err) == 0,
               "%s", err.text);
    set_weights(x, &d, p, moved, e);
    S4D_ASSERT(s4d_executor_issue(x, &err) == 0 && s4d_executor_finish(x, &err) == 0, "%s",
               err.text);
    double loss = s4d_executor_loss(x, 0);
    for (int i = 0; i < p->n_params && slope; i++) {
        const struct s4d_param *q = &p->params[i];
        double *g = s4d_malloc((size_t)q->shard_elements * sizeof *g), square = 0;
        S4D_ASSERT(s4d_state_read(x, &d, q->gradient, g, &err) == 0, "%s", err.text);
        slope[i] = 0;
        for (int64_t k = 0; k < q->shard_elements; k++) {
            double part = g[k] * s4d_normal_at(DIRECTION, (uint64_t)k);
            slope[i] += part;
            square += part * part;
        }
        size[i] = sqrt(square);
        free(g);
    }
    s4d_executor_free(x);
    d.close(d.self);
    return loss;
}

/* Error of a central difference: e^2 of its third derivative, and rounding / e: both near 1e-9. */
static int check(struct s4d_case c, const char *model, int n)
{
    const double e = 1e-5;
    struct s4d_program p;
    struct s4d_error err;
    int failed = 0;
    c.options.precision = c.options.gradient_type = S4D_F64;
    c.options.global_batch = 2;
    S4D_ASSERT(s4d_build(&p, &c.model, &c.grid, &c.options, &err) == 0, "%s", err.text);
    s4d_plan(&p);
    struct tokens tokens = {s4d_case_run(&c), c.model.seq_length + 1};
    double *slope = s4d_calloc((size_t)p.n_params, sizeof *slope);
    double *size = s4d_calloc((size_t)p.n_params, sizeof *size);
    loss_at(&p, &tokens, -1, 0, slope, size);
    for (int i = 0; i < p.n_params; i++) {
        double found =
            (loss_at(&p, &tokens, i, e, NULL, NULL) - loss_at(&p, &tokens, i, -e, NULL, NULL)) /
            (2 * e);
        int good = size[i] > 0 && fabs(found - slope[i]) <= 1e-6 * (fabs(slope[i]) + size[i]);
        printf("%s %d - %s, %s: slope %.9g, gradient %.9g\n", good ? "ok" : "not ok", n + i + 1,
               model, p.params[i].name, found, slope[i]);
        failed += !good;
    }
    free(slope);
    free(size);
    n += p.n_params;
    s4d_program_free(&p);
    return failed ? -1 : n;
}

int main(int argc, char **argv)
{
    int level, n, total;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    n = check(s4d_test_case(S4D_TEST_GPT, 1, 1, 1, 1), "gpt", 0);
    total = check(s4d_test_case(S4D_TEST_LLAMA, 1, 1, 1, 1), "llama", n < 0 ? 0 : n);
    if (n >= 0 && total >= 0)
        printf("1..%d\n", total);
    MPI_Finalize();
    return n < 0 || total < 0;
}
