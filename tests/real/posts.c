/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and batches by MPI ranks, each with the program of its stage: the numbers are those of
 * sums worked out apart, whatever the order; every op is told once, after what it waits for, those
 * of a batch with one start and one end. Speaks TAP.
 *
 *   mpirun -n 4 posts [cuda]
 *
 * cuda: by the CUDA backend, in this program the one that tests/double makes run without a GPU, in
 * eight orders, in one as CUDA graphs; and ranks that wait for each other for ever say so. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/executor.h"
#include "real/host/host.h"
#include "real/mpi/backend.h"
#include "support/memory.h"
#include "tests/lib/pipe.h"
#include "tests/ranks/report.h"

/* So many that MPI sends no message before its receive is there. Of the iterations as graphs two
 * are captured and one is launched again. */
enum { RANKS = 4, N = 8192, ITERATIONS = 4, SEEDS = 8 };

static int rank, backend;

struct watch {
    const struct s4d_program *p;
    int n;                     /* ops told */
    int64_t done[S4D_STREAMS]; /* of each stream */
    double end_s[S4D_STREAMS]; /* of its latest post */
    double start_s;            /* of the batch that is being told, of which `left` are to come */
    int left;
    const char *wrong;
};

static bool waits_are_done(const struct watch *w, const struct s4d_op *op, int iteration)
{
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *wait = &op->waits[i];
        int64_t of = iteration + wait->iteration;
        if (of >= 0 &&
            w->done[wait->stream] <= of * w->p->stream_length[wait->stream] + wait->position)
            return false;
    }
    return true;
}

static int ran(void *self, const struct s4d_call *call, int iteration, double start_s, double end_s,
               struct s4d_error *err)
{
    struct watch *w = self;
    const struct s4d_op *op = call->op;
    int64_t at = (int64_t)iteration * w->p->stream_length[op->stream] + op->position;
    (void)err;
    if (w->done[op->stream]++ != at)
        w->wrong = "an op was told out of its stream's order";
    if (!waits_are_done(w, op, iteration))
        w->wrong = "an op was told before one that it waits for";
    if (w->left > 0 && (start_s != w->start_s || end_s != w->end_s[op->stream]))
        w->wrong = "ops of a batch have different times";
    if (w->left == 0 && start_s < w->end_s[op->stream])
        w->wrong = "a post starts before the one before it in its stream has ended";
    if (end_s < start_s)
        w->wrong = "an op ends before it starts";
    w->left = w->left > 0 ? w->left - 1 : s4d_batch_last(w->p, call->index) - call->index;
    w->start_s = start_s;
    w->end_s[op->stream] = end_s;
    w->n++;
    return 0;
}

struct how {
    int progress;
    bool graphs, batched;
};

static int iterate(struct s4d_executor *x, struct s4d_error *err)
{
    for (int i = 0; i < ITERATIONS; i++)
        if (s4d_executor_issue(x, err))
            return -1;
    return s4d_executor_finish(x, err);
}

/* own: this rank's numbers, before and after. */
static int run(const struct s4d_program *p, const struct how *how, struct watch *watch, float *own,
               struct s4d_error *err)
{
    struct s4d_backend_options options = {.comm = MPI_COMM_WORLD,
                                          .threads = 1,
                                          .progress = how->progress,
                                          .cuda_graphs = how->graphs};
    struct s4d_device d;
    struct s4d_executor *x = NULL;
    *watch = (struct watch){.p = p};
    if (s4d_backend_of(backend)->open(&d, p, &options, err))
        return -1;
    d.observer = (struct s4d_device_observer){ran, watch};
    int rc = s4d_executor_create(&x, p, rank, &d, ITERATIONS, err);
    if (!rc) {
        struct s4d_buffer buffer = s4d_executor_buffer(x, PIPE_OWN);
        rc = d.upload(d.self, &buffer, own, err) || iterate(x, err) ||
             d.download(d.self, &buffer, own, err);
    }
    s4d_executor_free(x);
    d.close(d.self);
    return rc ? -1 : 0;
}

/* The lowest rank's words that has any, on all. */
static void share(char *why)
{
    int own = why[0] ? rank : RANKS, from;
    MPI_Allreduce(&own, &from, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (from < RANKS)
        MPI_Bcast(why, S4D_RANKS_WORDS, MPI_CHAR, from, MPI_COMM_WORLD);
}

static void compare(const float *own, const float *expected, const struct watch *w, char *why)
{
    for (int i = 0; i < N && !why[0]; i++)
        if (own[i] != expected[rank * N + i])
            snprintf(why, S4D_RANKS_WORDS, "rank %d has %g at %d, expected %g", rank,
                     (double)own[i], i, (double)expected[rank * N + i]);
    if (!why[0] && (w->wrong || w->n != ITERATIONS * w->p->n_ops || w->left != 0))
        snprintf(why, S4D_RANKS_WORDS, "rank %d: %s", rank,
                 w->wrong ? w->wrong : "not every op was told");
}

/* This rank's part of the pattern; -1: it failed. */
static int run_pattern(enum pipe_pattern pattern, const struct s4d_grid *grid,
                       const struct how *how, char *why, struct s4d_error *err)
{
    static float own[N], expected[RANKS * N];
    struct pipe pipe;
    struct watch w;
    int c[S4D_AXES];
    pipe_make(&pipe, pattern, grid, N, how->batched);
    s4d_grid_coordinates(grid, rank, c);
    for (int i = 0; i < N; i++)
        own[i] = pipe_initial(rank, i);
    pipe_expected(pattern, grid, N, ITERATIONS, expected);
    int rc = run(&pipe.program[c[S4D_PIPE]], how, &w, own, err);
    if (!rc)
        compare(own, expected, &w, why);
    pipe_free(&pipe);
    return rc;
}

static void tell(enum pipe_pattern pattern, const struct s4d_grid *grid, const char *what,
                 const char *why)
{
    char name[256];
    snprintf(name, sizeof name, "%s, y %d, z %d, pipe %d, %s", pipe_names[pattern],
             grid->size[S4D_Y], grid->size[S4D_Z], grid->size[S4D_PIPE], what);
    s4d_ranks_report(!why[0], name, why);
}

static void check(enum pipe_pattern pattern, const struct s4d_grid *grid, const struct how *how,
                  const char *what)
{
    char why[S4D_RANKS_WORDS] = "";
    struct s4d_error err = {0};
    if (run_pattern(pattern, grid, how, why, &err))
        snprintf(why, sizeof why, "rank %d: %s: %s", rank, err.where, err.text);
    share(why);
    tell(pattern, grid, what, why);
}

static struct s4d_grid grid_of(int stages)
{
    struct s4d_grid grid = s4d_grid_make(1, 1, RANKS / stages, 1);
    grid.size[S4D_PIPE] = stages;
    return grid;
}

/* Every pattern on a pipe of four, and of two beside another. */
static void check_all(const struct how *how, const char *what)
{
    struct s4d_grid four = grid_of(4), two = grid_of(2), y = s4d_grid_make(1, 2, 2, 1);
    for (int pattern = 0; pattern < PIPE_SUMS; pattern++) {
        check((enum pipe_pattern)pattern, &four, how, what);
        check((enum pipe_pattern)pattern, &two, how, what);
    }
    check(PIPE_SUMS, &y, how, what);
}

/* Without its batch every stage sends first, and waits. That is told, on every rank; on one perhaps
 * that another, which was first to tell, is gone. */
static void check_deadlock(int stages)
{
    const struct how how = {.batched = false};
    struct s4d_grid grid = grid_of(stages);
    char why[S4D_RANKS_WORDS] = "";
    struct s4d_error err = {0};
    int failed = run_pattern(PIPE_RING, &grid, &how, why, &err) != 0, all;
    int told = failed && strstr(err.text, "a deadlock: rank ") != NULL, any;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&told, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    why[0] = '\0';
    if (!all || !any)
        snprintf(why, sizeof why, "rank %d: %s: %s", rank, failed ? err.where : "",
                 failed ? err.text : "it came to the end");
    tell(PIPE_RING, &grid, "without a batch: a deadlock, which is told", why);
}

static void check_cuda(void)
{
    char what[64];
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct how how = {.batched = true};
        for (int graphs = 0; graphs < (seed == 1 ? 2 : 1); graphs++) {
            how.graphs = graphs;
            s4d_ranks_seed(seed);
            snprintf(what, sizeof what, "seed %d%s", seed, graphs ? ", as graphs" : "");
            check_all(&how, what);
        }
        s4d_ranks_seed(seed);
        check_deadlock(seed % 2 ? 2 : 4);
    }
}

static void check_host(void)
{
    for (int progress = 0; progress < S4D_PROGRESS_AUTO; progress++) {
        struct how how = {.progress = progress, .batched = true};
        check_all(&how, s4d_progress_names[progress]);
    }
}

int main(int argc, char **argv)
{
    int level, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    backend = argc > 1 && strcmp(argv[1], "cuda") == 0;
    S4D_ASSERT(size == RANKS, "%d ranks are needed", RANKS);
    if (backend)
        check_cuda();
    else
        check_host();
    if (rank == 0)
        printf("1..%d\n", s4d_ranks_reported());
    MPI_Finalize();
    return s4d_ranks_failed();
}
