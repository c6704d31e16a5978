/* SPDX-License-Identifier: Apache-2.0 */
/* Training by MPI ranks equals training by one: loss, gradients, weights, on every grid and with
 * every option asked for; and every op ran after what it waits for. Speaks TAP.
 *
 *   mpirun -n N grids [cuda] [all]   many cases on grids of 1 .. N ranks
 *
 * cuda: by the CUDA backend, in this program the one that tests/double makes run without a GPU.
 * all: every pair of options too.
 *
 * The reference is the toy interpreter on one rank, which shares no arithmetic with the kernels. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "real/host/host.h"
#include "real/mpi/backend.h"
#include "schedule/build.h"
#include "support/memory.h"
#include "tests/lib/models.h"
#include "tests/lib/training.h"
#include "tests/ranks/train.h"

static int world_rank, world_size, n_tests, backend;
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

/* Who looks on leaves the processor to the others. */
static void gather_words(char *all, const char *own, int bytes)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    MPI_Request request;
    int done = 0;
    MPI_Iallgather(own, bytes, MPI_CHAR, all, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
        nanosleep(&pause, NULL);
}

enum { WORDS = 2048 };

/* One case on the first ranks. why: "", or on all ranks what the lowest one with a fault says. */
static void outcome(const struct s4d_case *c, const struct s4d_trained *reference,
                    const struct s4d_ranks_options *how, double tolerance, char why[WORDS])
{
    MPI_Comm comm;
    struct s4d_trained got = {0};
    struct s4d_error err = {0};
    char wrong[256] = "";
    int rc = 0;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < s4d_grid_ranks(&c->grid) ? 0 : MPI_UNDEFINED,
                   world_rank, &comm);
    if (comm != MPI_COMM_NULL) {
        rc = s4d_ranks_train(c, comm, how, wrong, &got, &err);
        MPI_Comm_free(&comm);
    }
    why[0] = '\0';
    if (rc)
        snprintf(why, WORDS, "rank %d: %s: %s", world_rank, err.where, err.text);
    else if (wrong[0])
        snprintf(why, WORDS, "rank %d: %s", world_rank, wrong);
    if (world_rank == 0 && !why[0]) {
        struct s4d_difference d = s4d_compare(c, &got, reference);
        if (!(d.gradient <= tolerance && d.weight <= tolerance && d.loss <= tolerance &&
              d.grad_norm <= tolerance))
            snprintf(why, WORDS, "gradient %.3g (%s), weight %.3g (%s), loss %.3g, norm %.3g",
                     d.gradient, d.gradient_of, d.weight, d.weight_of, d.loss, d.grad_norm);
    }
    char *all = s4d_calloc((size_t)world_size, WORDS);
    gather_words(all, why, WORDS);
    for (int r = world_size - 1; r >= 0; r--)
        if (all[(size_t)r * WORDS])
            memcpy(why, all + (size_t)r * WORDS, WORDS);
    free(all);
    s4d_trained_free(&got);
}

/* The double of CUDA (tests/double) runs what comes next in another order. */
static void set_seed(int seed)
{
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("S4D_DOUBLE_SEED", text, 1);
}

static void check(const struct s4d_case *c, const struct s4d_trained *reference,
                  enum s4d_progress_mode progress, double tolerance, const char *what)
{
    struct s4d_ranks_options how = {.backend = backend, .progress = progress, .removed_wait = -1};
    char name[256], why[WORDS], order[32];
    if (s4d_grid_ranks(&c->grid) > world_size)
        return;
    set_seed(n_tests + 1);
    snprintf(order, sizeof order, "seed %d", n_tests + 1);
    outcome(c, reference, &how, tolerance, why);
    snprintf(name, sizeof name, "grid %dx%dx%dx%d, %s, %s", c->grid.size[S4D_X],
             c->grid.size[S4D_Y], c->grid.size[S4D_Z], c->grid.size[S4D_DATA], what,
             backend == 0 ? s4d_progress_names[progress] : order);
    report(!why[0], name, why);
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

/* The double's proof: without one of a program's waits an op starts too early, or results are
 * wrong, whatever the seed; every `step`th wait. */
static void check_removed(int x, int y, int z, int data, int step)
{
    enum { SEEDS = 4 };
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
        char name[256], why[WORDS];
        int early = 0, wrong = 0;
        for (int seed = 1; seed <= SEEDS; seed++) {
            set_seed(seed);
            outcome(&c, &reference, &how, 1e-5, why);
            early += strstr(why, "did not wait") != NULL;
            wrong += why[0] && !strstr(why, "did not wait");
        }
        numbers += wrong;
        snprintf(name, sizeof name,
                 "wait %d of %d removed: %d of %d orders start early, %d are wrong", wait, n, early,
                 SEEDS, wrong);
        report(early + wrong >= SEEDS / 2, name, "the wait was not missed");
    }
    report(numbers > 0, "a missing wait gives wrong numbers", "all were right");
    s4d_trained_free(&reference);
}

int main(int argc, char **argv)
{
    int level;
    bool all = argc > 1 && strcmp(argv[argc - 1], "all") == 0;
    backend = argc > 1 && strcmp(argv[1], "cuda") == 0;
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
    if (backend > 0)
        check_removed(1, 2, 1, 1, 60);
    if (world_rank == 0)
        printf("1..%d\n", n_tests);
    MPI_Finalize();
    return failed;
}
