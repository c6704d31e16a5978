/* SPDX-License-Identifier: Apache-2.0 */
/* Training by MPI ranks equals training by one: loss, gradients, weights, on every grid and with
 * every option asked for; and every op ran after what it waits for. Speaks TAP.
 *
 *   mpirun -n N grids [cuda [graphs]] [all]   many cases on grids of 1 .. N ranks
 *
 * A GPT and a Llama on all grids: 70 of up to 16 ranks. What differs by more than the grid (types,
 * options, waits that are missing) on grids of up to 4.
 *
 * cuda: by the CUDA backend, in this program the one that tests/double makes run without a GPU.
 * graphs: iterations launched as CUDA graphs against the same op by op, a few cases.
 * all: every pair of options, and fp64 on all grids, too; of graphs, all cases.
 *
 * The reference is the toy interpreter on one rank, which shares no arithmetic with the kernels. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/host/host.h"
#include "real/mpi/backend.h"
#include "schedule/build.h"
#include "tests/lib/models.h"
#include "tests/lib/training.h"
#include "tests/ranks/report.h"

static int world_rank, world_size, backend;
static bool graphs;

/* Captured twice and each launched twice, an iteration is what it is op by op, bit for bit. */
static void check_graphs(const struct s4d_case *c, const char *what)
{
    struct s4d_ranks_options how = {.backend = backend, .removed_wait = -1};
    struct s4d_trained eager;
    struct s4d_case longer = *c;
    int seed = s4d_ranks_reported() + 1;
    char name[256], why[S4D_RANKS_WORDS];
    longer.iterations = 5;
    s4d_ranks_seed(seed);
    s4d_ranks_outcome(&longer, &how, NULL, 0, &eager, why);
    how.graphs = true;
    if (!why[0])
        s4d_ranks_outcome(&longer, &how, &eager, 0, NULL, why);
    s4d_trained_free(&eager);
    snprintf(name, sizeof name, "grid %dx%dx%dx%d, %s, as graphs, seed %d", c->grid.size[S4D_X],
             c->grid.size[S4D_Y], c->grid.size[S4D_Z], c->grid.size[S4D_DATA], what, seed);
    s4d_ranks_report(!why[0], name, why);
}

static void check(const struct s4d_case *c, const struct s4d_trained *reference,
                  enum s4d_progress_mode progress, double tolerance, const char *what)
{
    struct s4d_ranks_options how = {.backend = backend, .progress = progress, .removed_wait = -1};
    int seed = s4d_ranks_reported() + 1;
    char name[256], why[S4D_RANKS_WORDS], order[32];
    if (s4d_grid_ranks(&c->grid) > world_size)
        return;
    if (graphs) {
        check_graphs(c, what);
        return;
    }
    s4d_ranks_seed(seed);
    snprintf(order, sizeof order, "seed %d", seed);
    s4d_ranks_outcome(c, &how, reference, tolerance, NULL, why);
    snprintf(name, sizeof name, "grid %dx%dx%dx%d, %s, %s", c->grid.size[S4D_X],
             c->grid.size[S4D_Y], c->grid.size[S4D_Z], c->grid.size[S4D_DATA], what,
             backend == 0 ? s4d_progress_names[progress] : order);
    s4d_ranks_report(!why[0], name, why);
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

/* On rank 0, which compares. */
static void reference_of(const struct s4d_case *c, struct s4d_trained *out)
{
    struct s4d_case one = *c;
    struct s4d_error err;
    MPI_Request all;
    *out = (struct s4d_trained){0};
    if (graphs) /* what runs op by op is the reference */
        return;
    one.grid = s4d_grid_make(1, 1, 1, 1);
    one.options.micro_batch = 1;
    if (world_rank == 0)
        S4D_ASSERT(s4d_train(&one, out, &err) == 0, "%s: %s", err.where, err.text);
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    s4d_ranks_wait(&all);
}

/* Every grid of at most `ranks` ranks that divides the model. */
static void check_grids(struct s4d_case base, int ranks, double tolerance, const char *what)
{
    struct s4d_trained reference;
    struct s4d_grid grid;
    reference_of(&base, &reference);
    for (int i = 0; s4d_case_grid(i, &grid); i++) {
        struct s4d_case c = base;
        int own = base.options.global_batch / grid.size[S4D_Z] / grid.size[S4D_DATA];
        c.grid = grid;
        if (c.options.micro_batch > own)
            c.options.micro_batch = own;
        if (s4d_grid_ranks(&grid) <= ranks && s4d_divides(&c.model, &grid, &c.options, NULL) == 0)
            check(&c, &reference, i % S4D_PROGRESS_AUTO, tolerance, what);
    }
    s4d_trained_free(&reference);
}

/* What all 70 grids of up to 16 ranks divide. */
static struct s4d_case gpt_of_16(void)
{
    struct s4d_case c = s4d_case_default(16, 1, 1, 1, 1);
    c.iterations = 2;
    c.fresh = true;
    return c;
}

/* The same: RMSNorm, rotary, grouped queries, SwiGLU, untied head, a vocabulary that is padded;
 * micro-batches of up to 4 sequences. */
static struct s4d_case llama_of_16(void)
{
    struct s4d_case c = s4d_test_case(S4D_TEST_LLAMA, 1, 1, 1, 1);
    c.model.num_attention_heads = 32;
    c.model.num_key_value_heads = 16;
    c.model.hidden_size = 64;
    c.options.micro_batch = 4;
    c.options.adam_epsilon = 1e-3;
    c.iterations = 2;
    c.fresh = true;
    return c;
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
            check(&c, &reference, (i + j) % S4D_PROGRESS_AUTO, 1e-5, name);
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

/* In `orders` of the double's: how often an op started too early, or results were wrong. */
struct missed {
    int early, wrong;
};
enum { ORDERS = 4 };

static struct missed miss(const struct s4d_case *c, const struct s4d_ranks_options *how,
                          const struct s4d_trained *reference, double tolerance)
{
    struct missed m = {0, 0};
    char why[S4D_RANKS_WORDS];
    for (int seed = 1; seed <= ORDERS; seed++) {
        s4d_ranks_seed(seed);
        s4d_ranks_outcome(c, how, reference, tolerance, NULL, why);
        bool early = strstr(why, "did not wait") != NULL;
        m.early += early;
        m.wrong += why[0] && !early;
    }
    return m;
}

/* The double's proof: without one of a program's waits an op starts too early, or results are
 * wrong, whatever the seed; every `step`th wait. */
static void check_removed(int x, int y, int z, int data, int step)
{
    struct s4d_trained reference;
    struct s4d_grid grid = s4d_grid_make(x, y, z, data);
    struct s4d_case c = case_of(&grid, S4D_F32);
    int n = s4d_ranks_waits(&c), numbers = 0;
    if (s4d_grid_ranks(&grid) > world_size)
        return;
    c.iterations = 2;
    reference_of(&c, &reference);
    for (int wait = step / 2; wait < n; wait += step) {
        struct s4d_ranks_options how = {.backend = backend, .removed_wait = wait};
        struct missed m = miss(&c, &how, &reference, 1e-5);
        char name[256];
        numbers += m.wrong;
        snprintf(name, sizeof name,
                 "wait %d of %d removed: %d of %d orders start early, %d are wrong", wait, n,
                 m.early, ORDERS, m.wrong);
        s4d_ranks_report(m.early + m.wrong >= ORDERS / 2, name, "the wait was not missed");
    }
    s4d_ranks_report(numbers > 0, "a missing wait gives wrong numbers", "all were right");
    s4d_trained_free(&reference);
}

/* The same of captured iterations: the first one, op by op, shows nothing. A wait that a launch
 * makes good is not missed: every `step`th, and of those the first. */
static void check_removed_of_graphs(const struct s4d_case *c, const struct s4d_trained *eager,
                                    int step)
{
    int n = s4d_ranks_waits(c), goods = 0;
    for (int wait = 0; wait < n; wait++) {
        struct s4d_ranks_options how = {.backend = backend, .graphs = true, .removed_wait = wait};
        bool needed = s4d_ranks_wait_needed(c, wait);
        char name[256];
        if (wait % step != step / 2 && (needed || goods > 0))
            continue;
        struct missed m = miss(c, &how, eager, 0);
        goods += !needed;
        snprintf(name, sizeof name,
                 "wait %d of %d removed, %s: %d of %d orders of graphs start early, %d are wrong",
                 wait, n, needed ? "needed" : "met by the launch", m.early, ORDERS, m.wrong);
        s4d_ranks_report(needed ? m.early + m.wrong >= ORDERS / 2 : m.early + m.wrong == 0, name,
                         needed ? "the wait was not missed" : "it was missed");
    }
}

/* Waits that make a graph of streams, and order launches and the host's stream: lost, they show as
 * an error, or in some orders as wrong results. */
static void check_lost(void)
{
    enum { SEEDS = 40 };
    static const char *const lost[][2] = {
        {"join:1", "unjoined"}, {"launch:0", ""}, {"outside:0", ""}};
    struct s4d_ranks_options how = {.backend = backend, .removed_wait = -1};
    struct s4d_trained eager;
    struct s4d_grid grid = s4d_grid_make(1, 1, 1, 1);
    struct s4d_case c = case_of(&grid, S4D_F32);
    char why[S4D_RANKS_WORDS], name[256];
    c.iterations = S4D_CASE_ITERATIONS;
    s4d_ranks_outcome(&c, &how, NULL, 0, &eager, why);
    how.graphs = true;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        int seed = 0;
        bool noticed = false;
        setenv("S4D_DOUBLE_LOSE", lost[i][0], 1);
        while (!noticed && seed < SEEDS) {
            s4d_ranks_seed(++seed);
            s4d_ranks_outcome(&c, &how, &eager, 0, NULL, why);
            noticed = why[0] && strstr(why, lost[i][1]);
        }
        snprintf(name, sizeof name, "wait %s lost: order %d fails or is wrong", lost[i][0], seed);
        s4d_ranks_report(noticed, name, why);
    }
    unsetenv("S4D_DOUBLE_LOSE");
    s4d_trained_free(&eager);
}

static void check_missing(int x, int y, int z, int data, int step)
{
    struct s4d_ranks_options how = {.backend = backend, .removed_wait = -1};
    struct s4d_trained eager;
    struct s4d_grid grid = s4d_grid_make(x, y, z, data);
    struct s4d_case c = case_of(&grid, S4D_F32);
    char why[S4D_RANKS_WORDS];
    if (s4d_grid_ranks(&grid) > world_size)
        return;
    c.iterations = 5;
    s4d_ranks_outcome(&c, &how, NULL, 0, &eager, why);
    check_removed_of_graphs(&c, &eager, step);
    s4d_trained_free(&eager);
}

static void check_many(bool all)
{
    const struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    check_grids(gpt_of_16(), world_size, 1e-5, "gpt");
    check_grids(llama_of_16(), world_size, 1e-5, "llama");
    check_grids(case_of(&one, S4D_F64), all ? world_size : 4, 1e-12, "f64");
    check_half(S4D_BF16, 0.05);
    check_half(S4D_F16, 0.01);
    check_options(2, 1, 2, 1, all);
    check_options(1, 2, 1, 2, all);
    if (all) {
        check_options(2, 2, 1, 1, all);
        check_options(1, 1, 2, 2, all);
    }
}

/* One of each: types, models, axes, overlaps. */
static void check_few_graphs(void)
{
    static const int sizes[][4] = {{2, 1, 2, 1}, {1, 2, 1, 2}, {2, 2, 1, 1}};
    struct s4d_case c;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int *n = sizes[i];
        struct s4d_grid grid = s4d_grid_make(n[0], n[1], n[2], n[3]);
        c = case_of(&grid, i == 0 ? S4D_F16 : i == 1 ? S4D_BF16 : S4D_F32);
        c.options.loss_scaling = i == 0;
        check_graphs(&c, s4d_type_names[c.options.precision]);
    }
    c = s4d_test_case(S4D_TEST_LLAMA, 1, 2, 2, 1);
    overlap_sc24(&c);
    buckets(&c);
    check_graphs(&c, "llama, overlap axonn-sc24, buckets");
}

int main(int argc, char **argv)
{
    int level;
    bool all = argc > 1 && strcmp(argv[argc - 1], "all") == 0;
    backend = argc > 1 && strcmp(argv[1], "cuda") == 0;
    graphs = argc > 2 && strcmp(argv[2], "graphs") == 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    char gpus[16];
    snprintf(gpus, sizeof gpus, "%d", world_size);
    setenv("S4D_DOUBLE_GPUS", gpus, 0); /* one for each, of one node */
    if (graphs && !all)
        check_few_graphs();
    else
        check_many(all);
    if (graphs) {
        check_missing(1, 2, 1, 1, all ? 9 : 219);
        check_lost();
    } else if (backend > 0) {
        check_removed(1, 2, 1, 1, 60);
    }
    if (world_rank == 0)
        printf("1..%d\n", s4d_ranks_reported());
    MPI_Finalize();
    return s4d_ranks_failed();
}
