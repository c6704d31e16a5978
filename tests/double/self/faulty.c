/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks train through the CUDA device while something fails: every call from every place, every
 * piece of work on the GPU, the GPU itself. Whoever it fails on says so in the library's words; the
 * other rank ends, too; and all that was taken of the libraries is given back. Speaks TAP.
 *
 *   mpirun -n 2 faulty [CASES]     so many pieces of work of each kind fail, spread evenly (12) */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/executor.h"
#include "real/mpi/backend.h"
#include "real/state.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "tests/double/double.h"
#include "tests/lib/pipe.h"
#include "tests/lib/training.h"

enum { ITERATIONS = 4, MOST_SITES = 256, MOST_S = 30 };

static int rank, n_tests;
static bool failed, graphs;

/* The same on all ranks. */
static void report(bool good, const char *name, const char *why)
{
    int own = good, all;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    n_tests++;
    failed |= !all;
    if (rank == 0)
        printf("%s %d - %s\n", all ? "ok" : "not ok", n_tests, name);
    if (!good)
        printf("# rank %d: %s\n", rank, why);
    fflush(stdout);
}

static int sequence(void *self, int64_t index, int32_t *tokens, struct s4d_error *err)
{
    (void)self, (void)err;
    for (int i = 0; i < 9; i++)
        tokens[i] = (int32_t)((index * 7 + i * 5) % 48);
    return 0;
}

static int iterate(struct s4d_executor *x, struct s4d_error *err)
{
    for (int i = 0; i < ITERATIONS; i++)
        if (s4d_executor_issue(x, err))
            return -1;
    return s4d_executor_finish(x, err);
}

/* As scale4d-run train: what fails on a rank before the iterations ends them on all. */
static int train(const struct s4d_program *p, struct s4d_error *err)
{
    struct s4d_device d;
    struct s4d_executor *x = NULL;
    struct s4d_backend_options options = {.comm = MPI_COMM_WORLD,
                                          .tokens = {.sequence = sequence},
                                          .threads = 1,
                                          .cuda_graphs = graphs,
                                          .first_alone = true};
    if (s4d_backend_of(1)->open(&d, p, &options, err))
        return -1;
    int rc = s4d_executor_create(&x, p, rank, &d, ITERATIONS, err) ||
             s4d_state_initialise(x, &d, p, rank, 1, err);
    int own = rc, any;
    MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (!any)
        rc = iterate(x, err);
    s4d_executor_free(x);
    d.close(d.self);
    return rc ? -1 : 0;
}

static void ask_for(const char *name, long long at, int on)
{
    char wish[128];
    snprintf(wish, sizeof wish, "%s:%lld:%d", name, at, on);
    setenv("S4D_DOUBLE_FAIL", wish, 1);
    s4d_double_forget();
}

/* What is still there of the libraries'; "": nothing, or what `name` failed to give back. After an
 * error of the GPU only communicators are given back: all other calls return that error. */
static void left_over(const char *name, bool lost, char *text, size_t size)
{
    struct s4d_double_live l = s4d_double_live;
    bool back = strstr(name, "Destroy") || strstr(name, "Free");
    /* A graph that stays keeps its communicators. */
    if (strstr(name, "cudaGraph") && strstr(name, "Destroy"))
        l.communicators = 0;
    int n =
        lost ? l.communicators
             : l.streams + l.events + l.graphs + l.device + l.pinned + l.handles + l.communicators;
    text[0] = '\0';
    if (n > back)
        snprintf(text, size,
                 "left: %d streams, %d events, %d graphs, %d device and %d pinned blocks, %d "
                 "handles of cuBLAS, "
                 "%d communicators",
                 l.streams, l.events, l.graphs, l.device, l.pinned, l.handles, l.communicators);
}

/* One training in which call `at` of `name` fails on rank `on`; expected: what its error holds;
 * NULL: it is no error; `perhaps`: it may be none. Unless `lost`, the GPU goes on. */
static void run(const struct s4d_program *p, const char *name, const char *shown, long long at,
                int on, const char *const expected[3], bool perhaps, bool lost)
{
    struct s4d_error err = {.exit = S4D_EXIT_OK};
    char title[200], why[2600] = "", left[200];
    ask_for(name, at, on);
    alarm(MOST_S); /* ends the program */
    int rc = train(p, &err);
    alarm(0);
    bool good = true, checked = rank == on && expected && !(perhaps && rc == 0);
    for (int i = 0; checked && i < 3; i++)
        good = good && rc && err.exit == S4D_EXIT_DEVICE &&
               (!expected[i] || strstr(err.where, expected[i]) || strstr(err.text, expected[i]));
    if (!expected)
        good = rc == 0;
    if (!good)
        snprintf(why, sizeof why, "rc %d, exit %d, %s: %s", rc, (int)err.exit, err.where, err.text);
    left_over(rank == on ? shown : "", lost && rank == on, left, sizeof left);
    if (left[0])
        snprintf(why, sizeof why, "%s", left);
    snprintf(title, sizeof title, "%s, call %lld, rank %d", shown, at, on);
    report(good && !left[0], title, why);
    s4d_double_mend();
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Its library's words begin so; NULL: of no interest to anybody. */
static const char *words_of(const char *name)
{
    static const char *const ignored[] = {"Destroy", "cudaFreeHost", "GetVersion"};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strstr(name, ignored[i]))
            return NULL;
    return strncmp(name, "cublas", 6) == 0 ? "cuBLAS: "
           : strncmp(name, "cuda", 4) == 0 ? "CUDA: "
                                           : "NCCL: ";
}

struct site {
    char at[24], name[40];
    long long calls;
};

static bool is_one_of(const struct site *v, int n, const struct site *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(v[i].at, s->at) == 0)
            return true;
    return false;
}

static int sites_of(struct site *v)
{
    int n = 0;
    uintptr_t site;
    const char *name;
    for (int i = 0; s4d_double_site(i, &site, &name, &v[n].calls); i++)
        if (site != 0 && v[n].calls > 0) {
            snprintf(v[n].at, sizeof v[n].at, "0x%llx", (unsigned long long)site);
            snprintf(v[n++].name, sizeof v->name, "%s", name);
        }
    return n;
}

/* The sites that rank `on` has. What is asked again and again comes at another number every time,
 * and perhaps not at all; memory may end at any call; of the rest the first and the middle one.
 * cudaFree makes room, which is needed, or gives back at the end. */
static void check_sites(const struct s4d_program *p, const struct site *own, int n, int on)
{
    MPI_Bcast(&n, 1, MPI_INT, on, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        struct site s = own[i];
        MPI_Bcast(&s, sizeof s, MPI_BYTE, on, MPI_COMM_WORLD);
        const char *words = words_of(s.name);
        const char *expected[3] = {s.name, words, NULL};
        bool asked =
            strcmp(s.name, "cudaEventQuery") == 0 || strcmp(s.name, "ncclCommGetAsyncError") == 0;
        bool perhaps = strcmp(s.name, "cudaFree") == 0 || asked;
        bool memory = strcmp(s.name, "cudaMalloc") == 0 || strcmp(s.name, "cudaHostAlloc") == 0;
        bool timed = strcmp(s.name, "cudaEventCreateWithFlags") == 0; /* how many are in flight */
        long long step = memory ? 1 : timed ? s.calls : (s.calls + 1) / 2;
        for (long long at = 1; at <= (asked ? 1 : s.calls); at += step > 0 ? step : 1)
            run(p, s.at, s.name, at, on, words ? expected : NULL, perhaps, false);
    }
}

/* Kernels, products and collectives that fail when they run. */
static void check_work(const struct s4d_program *p, const char *name, long long n, int cases,
                       const char *const expected[3], bool lost)
{
    long long step = n / cases > 0 ? n / cases : 1;
    for (long long at = step; at <= n; at += step)
        run(p, name, name, at, (int)(at / step % 2), expected, false, lost);
}

static long long calls_of(const char *name)
{
    uintptr_t site;
    const char *other;
    long long n = 0, calls;
    for (int i = 0; s4d_double_site(i, &site, &other, &calls); i++)
        n += strcmp(other, name) == 0 ? calls : 0;
    MPI_Bcast(&n, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    return n;
}

/* As iterations are captured and launched: what else calls a library then, and work of launches. */
static void check_graphs(const struct s4d_program *p, const struct site *known, int n_known,
                         const char *const expected[3])
{
    static struct site all[MOST_SITES], other[MOST_SITES];
    struct s4d_error err;
    char left[200];
    int n_other = 0;
    graphs = true;
    unsetenv("S4D_DOUBLE_FAIL");
    s4d_double_forget();
    int rc = train(p, &err), n = sites_of(all);
    long long kernels = calls_of("kernel");
    left_over("", false, left, sizeof left);
    report(rc == 0 && !left[0], "graphs: nothing fails, and nothing is left", rc ? err.text : left);
    for (int i = 0; i < n; i++)
        if (!is_one_of(known, n_known, &all[i]))
            other[n_other++] = all[i];
    report(n_other > 15, "they call from places of their own", "");
    check_sites(p, other, n_other, 0);
    check_sites(p, other, n_other, 1);
    check_work(p, "kernel", kernels, 4, expected, true);
}

/* Of a pipe of two stages, one on each rank, that exchange messages in a batch: the calls of that,
 * and a peer that goes in the midst of it. */
static void check_posts(const struct site *known, int n_known, const char *const expected[3])
{
    static struct site all[MOST_SITES], other[MOST_SITES];
    struct s4d_grid grid = s4d_grid_make(1, 1, 1, 1);
    struct s4d_error err;
    struct pipe pipe;
    char left[200];
    int n_other = 0;
    grid.size[S4D_PIPE] = 2;
    pipe_make(&pipe, PIPE_RING, &grid, 64, true);
    const struct s4d_program *p = &pipe.program[rank];
    graphs = false;
    unsetenv("S4D_DOUBLE_FAIL");
    s4d_double_forget();
    int rc = train(p, &err), n = sites_of(all);
    long long posts = calls_of("collective");
    left_over("", false, left, sizeof left);
    report(rc == 0 && !left[0], "messages: nothing fails, and nothing is left",
           rc ? err.text : left);
    for (int i = 0; i < n; i++)
        if (!is_one_of(known, n_known, &all[i]) && strncmp(all[i].name, "nccl", 4) == 0)
            other[n_other++] = all[i];
    report(n_other == 4 && posts == ITERATIONS, "a group begins and ends, a send, a receive", "");
    check_sites(p, other, n_other, 0);
    check_sites(p, other, n_other, 1);
    check_work(p, "collective", posts, 4, expected, false);
    pipe_free(&pipe);
}

int main(int argc, char **argv)
{
    static const char *const on_gpu[3] = {"unspecified launch failure (cudaErrorLaunchFailure)",
                                          "an error of work on the GPU, of", ", iteration "};
    static const char *const of_peer[3] = {"nccl", "NCCL: remote process exited",
                                           "the communicator of"};
    static const char *const lost[3] = {"(cudaErrorDevicesUnavailable)", "an error of", NULL};
    static struct site sites[MOST_SITES];
    struct s4d_case c = s4d_case_default(4, 2, 1, 1, 1);
    struct s4d_error err;
    struct s4d_program p;
    char left[200];
    int level, cases = argc > 1 ? atoi(argv[1]) : 12;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    c.options.global_batch = 2;
    if (s4d_build(&p, &c.model, &c.grid, &c.options, &err))
        return s4d_error_print(&err);
    s4d_plan(&p);
    int rc = train(&p, &err);
    left_over("", false, left, sizeof left);
    report(rc == 0 && !left[0], "nothing fails, and nothing is left", rc ? err.text : left);
    int n = sites_of(sites);
    long long kernels = calls_of("kernel"), products = calls_of("product"),
              collectives = calls_of("collective"), reports = calls_of("lost");
    check_sites(&p, sites, n, 0);
    check_sites(&p, sites, n, 1);
    check_work(&p, "kernel", kernels, cases, on_gpu, true);
    check_work(&p, "product", products, cases, on_gpu, true);
    check_work(&p, "collective", collectives, cases, of_peer, false);
    check_work(&p, "lost", reports, 3, lost, true);
    check_graphs(&p, sites, n, on_gpu);
    check_posts(sites, n, of_peer);
    report(kernels > 100 && products > 50 && collectives > 20 && n > 40, "and all of them came",
           "");
    s4d_program_free(&p);
    if (rank == 0)
        printf("1..%d\n", n_tests);
    MPI_Finalize();
    return failed;
}
