/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ranks/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "real/executor.h"
#include "real/mpi/backend.h"
#include "real/state.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"

/* One wait of the program, taken out of its list. */
struct removed {
    int op;
    struct s4d_wait wait;
};

/* Times of every op of every iteration, in the order of completion. */
struct trace {
    const struct s4d_program *p;
    double *start_s, *end_s; /* [iteration * n_ops + op]; NaN before */
    int at[S4D_STREAMS];     /* ops completed */
    struct removed removed;
    char wrong[256];
};

static int ran(void *self, const struct s4d_call *call, int iteration, double start_s, double end_s,
               struct s4d_error *err)
{
    struct trace *t = self;
    const struct s4d_op *op = call->op;
    int at = iteration * t->p->n_ops + call->index;
    (void)err;
    if (t->at[op->stream]++ != iteration * t->p->stream_length[op->stream] + op->position)
        snprintf(t->wrong, sizeof t->wrong, "op %d is out of order in its stream", call->index);
    t->start_s[at] = start_s;
    t->end_s[at] = end_s;
    return 0;
}

static int op_at(const struct s4d_program *p, enum s4d_stream stream, int position)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].stream == stream && p->ops[i].position == position)
            return i;
    return -1;
}

static void check_wait(struct trace *t, int op, int iteration, const struct s4d_wait *w)
{
    const struct s4d_program *p = t->p;
    int of = iteration + w->iteration;
    int before = of * p->n_ops + op_at(p, w->stream, w->position);
    if (of >= 0 && t->start_s[iteration * p->n_ops + op] < t->end_s[before])
        snprintf(t->wrong, sizeof t->wrong, "op %d did not wait for op %d", op, before % p->n_ops);
}

/* No op started before the one before it in its stream, or one it waits for, had ended. */
static void check_times(struct trace *t, int iterations)
{
    const struct s4d_program *p = t->p;
    for (int i = 0; i < iterations * p->n_ops && !t->wrong[0]; i++) {
        const struct s4d_op *op = &p->ops[i % p->n_ops];
        int iteration = i / p->n_ops, before;
        if (isnan(t->end_s[i]))
            snprintf(t->wrong, sizeof t->wrong, "op %d did not run", i % p->n_ops);
        if (op->position > 0) {
            before = iteration * p->n_ops + op_at(p, op->stream, op->position - 1);
            if (t->start_s[i] < t->end_s[before])
                snprintf(t->wrong, sizeof t->wrong, "op %d overtook its stream", i % p->n_ops);
        }
        for (int w = 0; w < op->n_waits; w++)
            check_wait(t, i % p->n_ops, iteration, &op->waits[w]);
        if (t->removed.op == i % p->n_ops)
            check_wait(t, i % p->n_ops, iteration, &t->removed.wait);
    }
}

void s4d_ranks_wait(MPI_Request *request)
{
    struct timespec pause = {.tv_nsec = 10000};
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 500000)
            pause.tv_nsec *= 2;
    }
}

struct tokens {
    struct s4d_interpreter_options run;
    int batch, count;
};

static int sequence(void *self, int64_t index, int32_t *tokens, struct s4d_error *err)
{
    struct tokens *t = self;
    (void)err;
    t->run.tokens(t->run.context, (int)(index / t->batch), index % t->batch, tokens, t->count);
    return 0;
}

/* All shards of this rank, parameter by parameter: each one's gradient, then its weights. */
static int read_shards(const struct s4d_executor *x, struct s4d_device *d,
                       const struct s4d_program *p, double *shards, struct s4d_error *err)
{
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        if (s4d_state_read(x, d, q->gradient, shards, err) ||
            s4d_state_read(x, d, q->master, shards + q->shard_elements, err))
            return -1;
        shards += 2 * q->shard_elements;
    }
    return 0;
}

/* A whole tensor from all ranks' shards: every element is some rank's, what several hold is one,
 * padding is 0. */
static int join(const struct s4d_program *p, const struct s4d_param *q, const double *shards,
                int64_t per_rank, double *whole, struct s4d_error *err)
{
    int64_t n = q->rows * s4d_param_cols(q), found = 0;
    bool *known = s4d_calloc((size_t)n, sizeof *known);
    int coordinate[S4D_AXES], rc = 0;
    for (int rank = 0; rank < s4d_grid_ranks(&p->grid); rank++, shards += per_rank) {
        s4d_grid_coordinates(&p->grid, rank, coordinate);
        for (int64_t i = 0; i < q->shard_elements; i++) {
            int64_t g = s4d_param_global_index(p, q, coordinate, i);
            if (g < 0 && shards[i] != 0)
                rc = s4d_fail(err, S4D_EXIT_BUG, q->name, "padding holds %g", shards[i]);
            if (g >= 0 && known[g] && memcmp(&whole[g], &shards[i], sizeof *whole) != 0)
                rc = s4d_fail(err, S4D_EXIT_BUG, q->name, "element %lld is %.9g or %.9g",
                              (long long)g, whole[g], shards[i]);
            if (g < 0 || known[g])
                continue;
            whole[g] = shards[i];
            known[g] = true;
            found++;
        }
    }
    free(known);
    return found == n || rc ? rc : s4d_fail(err, S4D_EXIT_BUG, q->name, "elements are no rank's");
}

/* Whole tensors from the shards of all ranks. */
static int assemble(const struct s4d_program *p, const double *shards, int64_t per_rank,
                    struct s4d_trained *out, struct s4d_error *err)
{
    double scale = p->loss_scale >= 0 ? 65536 : 1;
    int rc = 0;
    out->params = s4d_calloc((size_t)p->n_params, sizeof *out->params);
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        struct s4d_trained_param *t = &out->params[out->n++];
        t->n = q->rows * s4d_param_cols(q);
        snprintf(t->name, sizeof t->name, "%s", q->hf_name);
        t->gradient = s4d_calloc((size_t)t->n, sizeof(double));
        t->weight = s4d_calloc((size_t)t->n, sizeof(double));
        if (join(p, q, shards, per_rank, t->gradient, err) ||
            join(p, q, shards + q->shard_elements, per_rank, t->weight, err))
            rc = -1;
        for (int64_t e = 0; e < t->n; e++)
            t->gradient[e] /= scale;
        shards += 2 * q->shard_elements;
    }
    return rc;
}

/* Collective: all ranks, whatever one finds. */
static int collect(const struct s4d_executor *x, struct s4d_device *d, const struct s4d_program *p,
                   MPI_Comm comm, struct s4d_trained *out, struct s4d_error *err)
{
    int64_t n = 0;
    int rank;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < p->n_params; i++)
        n += 2 * p->params[i].shard_elements;
    double *own = s4d_calloc((size_t)n, sizeof *own);
    double *all =
        rank == 0 ? s4d_malloc((size_t)(n * s4d_grid_ranks(&p->grid)) * sizeof *all) : NULL;
    int rc = read_shards(x, d, p, own, err);
    MPI_Igather(own, (int)n, MPI_DOUBLE, all, (int)n, MPI_DOUBLE, 0, comm, &request);
    s4d_ranks_wait(&request);
    if (rank == 0 && !rc)
        rc = assemble(p, all, n, out, err);
    free(own);
    free(all);
    return rc;
}

/* As the interpreter has them: no weight is 0 or 1, so that no gradient is like another. */
static int perturb(const struct s4d_case *c, const struct s4d_executor *x, struct s4d_device *d,
                   const struct s4d_program *p, int rank, struct s4d_error *err)
{
    int coordinate[S4D_AXES], rc = 0;
    s4d_grid_coordinates(&p->grid, rank, coordinate);
    for (int q = 0; q < p->n_params && !rc; q++) {
        const struct s4d_param *param = &p->params[q];
        double *w = s4d_calloc((size_t)param->shard_elements, sizeof *w);
        for (int64_t i = 0; i < param->shard_elements; i++) {
            int64_t g = s4d_param_global_index(p, param, coordinate, i);
            w[i] = g < 0 ? 0 : s4d_interpreter_initial(param, &c->run, g);
        }
        if (param->init != S4D_INIT_NORMAL)
            rc = s4d_state_write_weights(x, d, param, w, err);
        free(w);
    }
    return rc;
}

static struct removed remove_wait(struct s4d_program *p, int number)
{
    for (int i = 0; i < p->n_ops; number -= p->ops[i++].n_waits) {
        struct s4d_op *op = &p->ops[i];
        if (number < 0 || number >= op->n_waits)
            continue;
        struct removed r = {i, op->waits[number]};
        op->n_waits--;
        for (int w = number; w < op->n_waits; w++)
            op->waits[w] = op->waits[w + 1];
        return r;
    }
    return (struct removed){.op = -1};
}

int s4d_ranks_waits(const struct s4d_case *c)
{
    struct s4d_program p;
    int n = 0;
    S4D_ASSERT(s4d_build(&p, &c->model, &c->grid, &c->options, NULL) == 0, "no program");
    for (int i = 0; i < p.n_ops; i++)
        n += p.ops[i].n_waits;
    s4d_program_free(&p);
    return n;
}

bool s4d_ranks_wait_needed(const struct s4d_case *c, int number)
{
    struct s4d_program p;
    S4D_ASSERT(s4d_build(&p, &c->model, &c->grid, &c->options, NULL) == 0, "no program");
    struct removed r = remove_wait(&p, number);
    bool host = p.ops[r.op].stream == S4D_STREAM_HOST;
    s4d_program_free(&p);
    return host || (r.wait.iteration == 0 && r.wait.stream != S4D_STREAM_HOST);
}

static struct trace trace_of(const struct s4d_program *p, int iterations)
{
    size_t n = (size_t)iterations * (size_t)p->n_ops;
    struct trace t = {.p = p, .removed = {.op = -1}};
    t.start_s = s4d_malloc(n * sizeof(double));
    t.end_s = s4d_malloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        t.start_s[i] = t.end_s[i] = NAN;
    return t;
}

static int iterate(struct s4d_executor *x, int iterations, struct s4d_trained *out,
                   struct s4d_error *err)
{
    for (int i = 0; i < iterations; i++)
        if (s4d_executor_issue(x, err))
            return -1;
    if (s4d_executor_finish(x, err))
        return -1;
    for (int i = 0; i < iterations; i++) {
        out->loss[i] = s4d_executor_loss(x, i);
        out->grad_norm[i] = s4d_executor_grad_norm(x, i);
    }
    return 0;
}

int s4d_ranks_train(const struct s4d_case *c, MPI_Comm comm, const struct s4d_ranks_options *how,
                    char wrong[256], struct s4d_trained *out, struct s4d_error *err)
{
    struct s4d_program p;
    struct s4d_device d;
    struct s4d_executor *x = NULL;
    struct tokens tokens = {s4d_case_run(c), c->options.global_batch, c->model.seq_length + 1};
    struct s4d_backend_options options = {.comm = comm,
                                          .tokens = {.self = &tokens, .sequence = sequence},
                                          .threads = 1,
                                          .progress = how->progress,
                                          .cuda_graphs = how->graphs,
                                          .first_alone = how->graphs};
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (s4d_build(&p, &c->model, &c->grid, &c->options, err))
        return -1;
    s4d_plan(&p);
    struct trace trace = trace_of(&p, c->iterations);
    trace.removed = remove_wait(&p, how->removed_wait);
    int rc = s4d_backend_of(how->backend)->open(&d, &p, &options, err);
    if (!rc) {
        d.observer = (struct s4d_device_observer){ran, &trace};
        rc = s4d_executor_create(&x, &p, rank, &d, c->iterations, err) ||
             s4d_state_initialise(x, &d, &p, rank, c->run.weight_seed, err) ||
             perturb(c, x, &d, &p, rank, err) || iterate(x, c->iterations, out, err);
        if (!rc)
            check_times(&trace, c->iterations);
        rc = rc || collect(x, &d, &p, comm, out, err) ? -1 : 0;
        s4d_executor_free(x);
        d.close(d.self);
    }
    snprintf(wrong, 256, "%s", trace.wrong);
    free(trace.start_s);
    free(trace.end_s);
    s4d_program_free(&p);
    return rc;
}
