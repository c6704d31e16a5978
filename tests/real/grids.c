/* SPDX-License-Identifier: Apache-2.0 */
/* Training by MPI ranks equals training by one: loss, gradients, weights, on every grid and with
 * every option asked for; and every op ran after what it waits for. Speaks TAP.
 *
 *   mpirun -n N grids [all]     many cases on grids of 1 .. N ranks; all: every pair of options too
 *
 * The reference is the toy interpreter on one rank, which shares no arithmetic with the kernels. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/executor.h"
#include "real/host/host.h"
#include "real/state.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "tests/lib/models.h"
#include "tests/lib/training.h"

static int world_rank, world_size, n_tests;
static bool failed;

static void report(bool good, const char *name, const char *why)
{
    n_tests++;
    failed |= !good;
    if (world_rank == 0) {
        printf("%s %d - %s\n", good ? "ok" : "not ok", n_tests, name);
        if (!good)
            printf("# %s\n", why);
        fflush(stdout);
    }
}

/* Times of every op of every iteration, in the order of completion. */
struct trace {
    const struct s4d_program *p;
    double *start_s, *end_s; /* [iteration * n_ops + op]; NaN before */
    int at[S4D_STREAMS];     /* ops completed */
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
        for (int w = 0; w < op->n_waits; w++) {
            int of = iteration + op->waits[w].iteration;
            before = of * p->n_ops + op_at(p, op->waits[w].stream, op->waits[w].position);
            if (of >= 0 && t->start_s[i] < t->end_s[before])
                snprintf(t->wrong, sizeof t->wrong, "op %d did not wait for op %d", i % p->n_ops,
                         before % p->n_ops);
        }
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

/* The whole of a parameter's tensor on rank 0: smallest and largest value any rank holds for an
 * element must be one, padding must be 0. */
static int gather(const struct s4d_executor *x, struct s4d_device *d, const struct s4d_program *p,
                  const struct s4d_param *q, int tensor, MPI_Comm comm, double *whole,
                  struct s4d_error *err)
{
    int rank, coordinate[S4D_AXES];
    int64_t n = q->rows * s4d_param_cols(q);
    double *own = s4d_malloc((size_t)q->shard_elements * sizeof *own);
    double *least = s4d_malloc((size_t)n * sizeof *least),
           *most = s4d_malloc((size_t)n * sizeof *most);
    double *low = s4d_malloc((size_t)n * sizeof *low);
    MPI_Comm_rank(comm, &rank);
    s4d_grid_coordinates(&p->grid, rank, coordinate);
    int rc = s4d_state_read(x, d, tensor, own, err);
    for (int64_t i = 0; i < n; i++) {
        least[i] = INFINITY;
        most[i] = -INFINITY;
    }
    for (int64_t i = 0; i < q->shard_elements; i++) {
        int64_t g = s4d_param_global_index(p, q, coordinate, i);
        if (g >= 0)
            least[g] = most[g] = own[i];
        else if (own[i] != 0)
            rc = s4d_fail(err, S4D_EXIT_BUG, q->name, "padding holds %g", own[i]);
    }
    MPI_Reduce(least, low, (int)n, MPI_DOUBLE, MPI_MIN, 0, comm);
    MPI_Reduce(most, whole, (int)n, MPI_DOUBLE, MPI_MAX, 0, comm);
    for (int64_t i = 0; i < n && rank == 0 && !rc; i++)
        if (low[i] != whole[i])
            rc = s4d_fail(err, S4D_EXIT_BUG, q->name, "element %lld is %.9g or %.9g", (long long)i,
                          low[i], whole[i]);
    free(own);
    free(least);
    free(low);
    free(most);
    return rc;
}

static int collect(const struct s4d_executor *x, struct s4d_device *d, const struct s4d_program *p,
                   MPI_Comm comm, struct s4d_trained *out, struct s4d_error *err)
{
    double scale = p->loss_scale >= 0 ? 65536 : 1;
    out->params = s4d_calloc((size_t)p->n_params, sizeof *out->params);
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        struct s4d_trained_param *t = &out->params[out->n++];
        t->n = q->rows * s4d_param_cols(q);
        snprintf(t->name, sizeof t->name, "%s", q->hf_name);
        t->gradient = s4d_calloc((size_t)t->n, sizeof(double));
        t->weight = s4d_calloc((size_t)t->n, sizeof(double));
        if (gather(x, d, p, q, q->gradient, comm, t->gradient, err) ||
            gather(x, d, p, q, q->master, comm, t->weight, err))
            return -1;
        for (int64_t e = 0; e < t->n; e++)
            t->gradient[e] /= scale;
    }
    return 0;
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

static int run(const struct s4d_case *c, MPI_Comm comm, enum s4d_progress_mode progress,
               struct trace *trace, struct s4d_trained *out, struct s4d_error *err)
{
    struct s4d_program p;
    struct s4d_device d;
    struct s4d_executor *x = NULL;
    struct tokens tokens = {s4d_case_run(c), c->options.global_batch, c->model.seq_length + 1};
    struct s4d_host_options host = {
        .comm = comm, .tokens = {.self = &tokens, .sequence = sequence}, .progress = progress};
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (s4d_build(&p, &c->model, &c->grid, &c->options, err))
        return -1;
    s4d_plan(&p);
    size_t n = (size_t)c->iterations * (size_t)p.n_ops;
    *trace = (struct trace){.p = &p};
    trace->start_s = s4d_malloc(n * sizeof(double));
    trace->end_s = s4d_malloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        trace->start_s[i] = trace->end_s[i] = NAN;
    int rc = s4d_host_open(&d, &p, &host, err);
    d.observer = (struct s4d_device_observer){ran, trace};
    if (!rc)
        rc = s4d_executor_create(&x, &p, rank, &d, c->iterations, err);
    if (!rc)
        rc = s4d_state_initialise(x, &d, &p, rank, c->run.weight_seed, err);
    if (!rc)
        rc = perturb(c, x, &d, &p, rank, err);
    for (int i = 0; i < c->iterations && !rc; i++)
        rc = s4d_executor_issue(x, err);
    if (!rc)
        rc = s4d_executor_finish(x, err);
    for (int i = 0; i < c->iterations && !rc; i++) {
        out->loss[i] = s4d_executor_loss(x, i);
        out->grad_norm[i] = s4d_executor_grad_norm(x, i);
    }
    if (!rc) {
        check_times(trace, c->iterations);
        rc = collect(x, &d, &p, comm, out, err);
    }
    free(trace->start_s);
    free(trace->end_s);
    s4d_executor_free(x);
    d.close(d.self);
    s4d_program_free(&p);
    return rc;
}

/* One case on the first ranks; the others look on. */
static void check(const struct s4d_case *c, const struct s4d_trained *reference,
                  enum s4d_progress_mode progress, double tolerance, const char *what)
{
    MPI_Comm comm;
    struct s4d_trained got = {0};
    struct trace trace = {.wrong = ""};
    struct s4d_error err = {0};
    int ranks = s4d_grid_ranks(&c->grid), rc = 0;
    char name[256], why[2048] = "";
    if (ranks > world_size)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < ranks ? 0 : MPI_UNDEFINED, world_rank, &comm);
    if (comm != MPI_COMM_NULL) {
        rc = run(c, comm, progress, &trace, &got, &err);
        MPI_Comm_free(&comm);
    }
    snprintf(name, sizeof name, "grid %dx%dx%dx%d, %s, %s", c->grid.size[S4D_X],
             c->grid.size[S4D_Y], c->grid.size[S4D_Z], c->grid.size[S4D_DATA], what,
             s4d_progress_names[progress]);
    if (rc)
        snprintf(why, sizeof why, "rank %d: %s: %s", world_rank, err.where, err.text);
    else if (trace.wrong[0])
        snprintf(why, sizeof why, "rank %d: %s", world_rank, trace.wrong);
    if (world_rank == 0 && !why[0]) {
        struct s4d_difference d = s4d_compare(c, &got, reference);
        if (!(d.gradient <= tolerance && d.weight <= tolerance && d.loss <= tolerance &&
              d.grad_norm <= tolerance))
            snprintf(why, sizeof why, "gradient %.3g (%s), weight %.3g (%s), loss %.3g, norm %.3g",
                     d.gradient, d.gradient_of, d.weight, d.weight_of, d.loss, d.grad_norm);
    }
    /* Rank 0 tells of the lowest rank with something to say. */
    char *all = s4d_calloc((size_t)world_size, sizeof why);
    MPI_Allgather(why, sizeof why, MPI_CHAR, all, sizeof why, MPI_CHAR, MPI_COMM_WORLD);
    for (int r = world_size - 1; r >= 0; r--)
        if (all[(size_t)r * sizeof why])
            memcpy(why, all + (size_t)r * sizeof why, sizeof why);
    report(!why[0], name, why);
    free(all);
    s4d_trained_free(&got);
}

static struct s4d_case case_of(const struct s4d_grid *grid, enum s4d_type precision)
{
    struct s4d_case c = s4d_case_default(4, 1, 1, 1, 1);
    c.grid = *grid;
    c.options.precision = precision;
    c.options.gradient_type = precision == S4D_F64 ? S4D_F64 : S4D_F32;
    c.options.global_batch = 8;
    c.iterations = 3;
    c.fresh = true;
    return c;
}

static void reference_of(const struct s4d_case *c, struct s4d_trained *out)
{
    struct s4d_case one = *c;
    struct s4d_error err;
    one.grid = s4d_grid_make(1, 1, 1, 1);
    one.options.micro_batch = 1;
    S4D_ASSERT(s4d_train(&one, out, &err) == 0, "%s: %s", err.where, err.text);
}

/* Every grid of at most world_size ranks that divides the model, in one type. */
static void check_grids(enum s4d_type precision, double tolerance)
{
    struct s4d_trained reference;
    struct s4d_grid grid = s4d_grid_make(1, 1, 1, 1);
    struct s4d_case c = case_of(&grid, precision);
    reference_of(&c, &reference);
    for (int i = 0; s4d_case_grid(i, &grid); i++) {
        c = case_of(&grid, precision);
        if (s4d_divides(&c.model, &grid, &c.options, NULL) == 0)
            check(&c, &reference, i % 3, tolerance, s4d_type_names[precision]);
    }
    s4d_trained_free(&reference);
}

/* The same of a Llama (RMSNorm, rotary, grouped queries, SwiGLU, untied head), and of a GPT of 16
 * heads, which all 70 grids of up to 16 ranks divide. */
static void check_model(struct s4d_case base, const char *what)
{
    struct s4d_trained reference;
    struct s4d_grid grid;
    base.options.adam_epsilon = 1e-3;
    base.iterations = 2;
    reference_of(&base, &reference);
    for (int i = 0; s4d_case_grid(i, &grid); i++) {
        struct s4d_case c = base;
        c.grid = grid;
        if (s4d_divides(&c.model, &grid, &c.options, NULL) == 0)
            check(&c, &reference, S4D_PROGRESS_PANELS, 1e-5, what);
    }
    s4d_trained_free(&reference);
}

struct choice {
    const char *name;
    void (*set)(struct s4d_case *c);
};
static void plain(struct s4d_case *c)
{
    (void)c;
}
static void overlap_none(struct s4d_case *c)
{
    S4D_ASSERT(s4d_overlap_parse("none", &c->options.overlap, NULL) == 0, "overlap");
}
static void overlap_sc24(struct s4d_case *c)
{
    S4D_ASSERT(s4d_overlap_parse("axonn-sc24", &c->options.overlap, NULL) == 0, "overlap");
}
static void recompute_none(struct s4d_case *c)
{
    c->options.recompute = S4D_RECOMPUTE_NONE;
}
static void recompute_selective(struct s4d_case *c)
{
    c->options.recompute = S4D_RECOMPUTE_SELECTIVE;
}
static void one_micro_batch(struct s4d_case *c)
{
    c->options.micro_batch = c->options.global_batch / c->grid.size[S4D_Z] / c->grid.size[S4D_DATA];
}
static void cached(struct s4d_case *c)
{
    c->options.cached_layers = 1;
}
static void buckets(struct s4d_case *c)
{
    c->options.gradient_reduce = S4D_REDUCE_BUCKETS;
}
static void order(struct s4d_case *c)
{
    S4D_ASSERT(s4d_rank_order_parse("data,pipe,z,x,y", &c->grid, NULL) == 0, "order");
}
static const struct choice choices[] = {
    {"default", plain},
    {"overlap none", overlap_none},
    {"overlap axonn-sc24", overlap_sc24},
    {"recompute none", recompute_none},
    {"recompute selective", recompute_selective},
    {"one micro-batch", one_micro_batch},
    {"cached layers 1", cached},
    {"buckets", buckets},
    {"rank order", order},
};
enum { CHOICES = sizeof choices / sizeof *choices };

/* Options one by one, and in pairs, on a grid. */
static void check_options(int x, int y, int z, int data, bool pairs)
{
    struct s4d_trained reference;
    struct s4d_grid grid = s4d_grid_make(x, y, z, data);
    struct s4d_case base = case_of(&grid, S4D_F32);
    reference_of(&base, &reference);
    for (int i = 0; i < CHOICES; i++)
        for (int j = i; j < (pairs ? CHOICES : i + 1); j++) {
            struct s4d_case c = case_of(&grid, S4D_F32);
            char name[128];
            choices[i].set(&c);
            choices[j].set(&c);
            snprintf(name, sizeof name, "%s, %s", choices[i].name, choices[j].name);
            check(&c, &reference, (i + j) % S4D_PROGRESS_MODES, 1e-5, name);
        }
    s4d_trained_free(&reference);
}

/* 16-bit storage: every rank rounds, so the grids differ by roundings; a few units of 2^-8. */
static void check_half(enum s4d_type precision, double tolerance)
{
    struct s4d_grid grid = s4d_grid_make(1, 1, 1, 1);
    struct s4d_trained reference;
    struct s4d_case c = case_of(&grid, precision);
    c.iterations = 1; /* Adam's first steps are signs: weights would part */
    c.options.loss_scaling = precision == S4D_F16;
    c.run.loss_scale = 65536;
    reference_of(&c, &reference);
    static const int sizes[][4] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1},
                                   {1, 1, 1, 2}, {2, 2, 1, 1}, {1, 2, 2, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        c.grid = s4d_grid_make(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
        check(&c, &reference, S4D_PROGRESS_PANELS, tolerance, s4d_type_names[precision]);
    }
    s4d_trained_free(&reference);
}

int main(int argc, char **argv)
{
    int level;
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    check_grids(S4D_F32, 1e-5);
    check_grids(S4D_F64, 1e-12);
    check_model(s4d_test_case(S4D_TEST_LLAMA, 1, 1, 1, 1), "llama");
    if (all)
        check_model(s4d_case_default(16, 1, 1, 1, 1), "16 heads");
    check_half(S4D_BF16, 0.05);
    check_half(S4D_F16, 0.01);
    check_options(2, 1, 2, 1, all);
    check_options(1, 2, 1, 2, all);
    if (all) {
        check_options(2, 2, 1, 1, all);
        check_options(1, 1, 2, 2, all);
    }
    if (world_rank == 0)
        printf("1..%d\n", n_tests);
    MPI_Finalize();
    return failed;
}
