/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/world.h"

#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/units.h"

/* Variables that launchers set, by what they hold. SLURM's are those of a step (srun): inside a
 * batch script they describe the script. */
static const struct {
    const char *rank, *size, *local_rank;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMIX_RANK", NULL, NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};

static bool number_of(const char *variable, int64_t *value)
{
    const char *text = variable ? getenv(variable) : NULL;
    return text && s4d_parse_int(text, 0, INT_MAX, value, NULL) == 0;
}

static int differs(struct s4d_error *err, const char *variable, int64_t found, const char *what,
                   int mpi)
{
    s4d_fail(err, S4D_EXIT_DEVICE, variable, "the launcher says %lld, MPI says %s %d",
             (long long)found, what, mpi);
    return s4d_hint(err, "start scale4d-run with the mpirun of the MPI that it was built with, or "
                         "with srun --mpi=pmix or pmi2");
}

/* What the launcher's variables said before MPI started: Open MPI sets its own when it finds itself
 * alone. -1: nothing. */
struct claim {
    int launcher;
    int64_t rank, size, local_rank;
};

/* The first launcher whose variables are set is the one that started this process. */
static struct claim read_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        struct claim c = {(int)i, -1, -1, -1};
        bool sized = number_of(launchers[i].size, &c.size);
        bool slurm = strncmp(launchers[i].rank, "SLURM", 5) == 0;
        if (!number_of(launchers[i].rank, &c.rank) || (slurm && !sized))
            continue;
        if (!number_of(launchers[i].local_rank, &c.local_rank))
            c.local_rank = -1;
        return c;
    }
    return (struct claim){-1, -1, -1, -1};
}

static int check_launcher(const struct s4d_world *w, const struct claim *c, struct s4d_error *err)
{
    if (c->launcher < 0)
        return 0;
    if (c->rank != w->rank)
        return differs(err, launchers[c->launcher].rank, c->rank, "rank", w->rank);
    if (c->size >= 0 && c->size != w->size)
        return differs(err, launchers[c->launcher].size, c->size, "this is one of", w->size);
    if (c->local_rank >= 0 && c->local_rank != w->local_rank)
        return differs(err, launchers[c->launcher].local_rank, c->local_rank, "local rank",
                       w->local_rank);
    return 0;
}

/* Processes of this node, and those of them whose number means the same here as there. */
static void find_neighbours(struct s4d_world *w)
{
    MPI_Comm node;
    MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, w->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &w->local_rank);
    MPI_Comm_size(node, &w->local_size);
    struct stat name_space = {0};
    (void)!stat("/proc/self/ns/pid", &name_space);
    long long own[3] = {w->rank, getpid(), (long long)name_space.st_ino};
    long long *all = s4d_malloc((size_t)w->local_size * sizeof own);
    MPI_Allgather(own, 3, MPI_LONG_LONG, all, 3, MPI_LONG_LONG, node);
    w->local_ranks = s4d_calloc((size_t)w->local_size, sizeof *w->local_ranks);
    w->local_pids = s4d_calloc((size_t)w->local_size, sizeof *w->local_pids);
    for (int i = 0; i < w->local_size; i++) {
        w->local_ranks[i] = (int)all[3 * i];
        w->local_pids[i] = all[3 * i + 2] == own[2] && own[2] != 0 ? (pid_t)all[3 * i + 1] : 0;
    }
    free(all);
    MPI_Comm_free(&node);
}

/* MPI takes its buffers for a collective from malloc, and gives them back: by default those of some
 * megabytes go back to the kernel, which clears every page of them the next time. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
#endif
}

int s4d_world_open(struct s4d_world *w, int *argc, char ***argv, struct s4d_error *err)
{
    int level;
    struct claim claim = read_launcher();
    *w = (struct s4d_world){.comm = MPI_COMM_WORLD};
    keep_memory();
    if (MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
        return s4d_fail(err, S4D_EXIT_DEVICE, "MPI", "does not start");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    if (gethostname(w->host, sizeof w->host - 1))
        snprintf(w->host, sizeof w->host, "unknown");
    find_neighbours(w);
    return check_launcher(w, &claim, err);
}

void s4d_world_close(struct s4d_world *w)
{
    free(w->local_ranks);
    free(w->local_pids);
    *w = (struct s4d_world){.comm = MPI_COMM_NULL};
    MPI_Finalize();
}

static void name_rank(const struct s4d_world *w, const struct s4d_error *err, struct s4d_error *out)
{
    *out = *err;
    if (strncmp(err->where, "rank ", strlen("rank ")) == 0) /* a backend's, whose ranks agreed */
        return;
    snprintf(out->where, sizeof out->where, "rank %d (%.80s)%s%.300s", w->rank, w->host,
             err->where[0] ? ": " : "", err->where);
}

void s4d_world_wait(MPI_Request *request)
{
    const struct timespec pause = {.tv_nsec = 200000};
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
        nanosleep(&pause, NULL);
}

int s4d_world_agree(const struct s4d_world *w, const struct s4d_error *err)
{
    int own[2] = {err ? w->rank : INT_MAX, err ? 0 : -1}, all[2];
    MPI_Request request;
    MPI_Iallreduce(own, all, 2, MPI_INT, MPI_MIN, w->comm, &request);
    s4d_world_wait(&request);
    if (all[0] == INT_MAX)
        return 0;
    int code = err ? (int)err->exit : 0;
    MPI_Bcast(&code, 1, MPI_INT, all[0], w->comm);
    struct s4d_error said = {.exit = S4D_EXIT_OK};
    if (w->rank == all[0]) {
        name_rank(w, err, &said);
        said = all[1] == 0 ? *err : said;
        s4d_error_print(&said);
        fflush(stderr);
    }
    if (w->failed) {
        MPI_Bcast(&said, (int)sizeof said, MPI_BYTE, all[0], w->comm);
        *w->failed = said;
    }
    MPI_Barrier(w->comm); /* before anyone ends and the launcher starts talking */
    return code;
}

int s4d_world_same(const struct s4d_world *w, const char *const *names, const uint64_t *values,
                   int n, struct s4d_error *err)
{
    uint64_t *first = s4d_malloc((size_t)n * sizeof *first);
    memcpy(first, values, (size_t)n * sizeof *first);
    MPI_Bcast(first, n, MPI_UINT64_T, 0, w->comm);
    int own[2] = {INT_MAX, INT_MAX}, found[2]; /* which number, on which rank */
    for (int i = n - 1; i >= 0; i--)
        if (first[i] != values[i])
            own[0] = i;
    MPI_Allreduce(&own[0], &found[0], 1, MPI_INT, MPI_MIN, w->comm);
    if (found[0] != INT_MAX && first[found[0]] != values[found[0]])
        own[1] = w->rank;
    MPI_Allreduce(&own[1], &found[1], 1, MPI_INT, MPI_MIN, w->comm);
    free(first);
    if (found[0] == INT_MAX)
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, names[found[0]], "differs between rank 0 and rank %d", found[1]);
    return s4d_hint(err, "all ranks must be started with the same arguments, files and program");
}

/* What rank 0 sees others often see too: they leave it the word, and end with the job unless it
 * goes on. SIGTERM is blocked (s4d_watch_prepare). */
static void let_rank_0_speak(const struct s4d_world *w)
{
    const struct timespec patience = {.tv_nsec = 500000000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (w->rank != 0 && sigtimedwait(&set, NULL, &patience) == SIGTERM)
        _exit(S4D_EXIT_DEVICE);
}

void s4d_world_abort(const struct s4d_world *w, const struct s4d_error *err)
{
    struct s4d_error named;
    let_rank_0_speak(w);
    if (w->ending)
        w->ending(w->ending_self, err);
    name_rank(w, err, &named);
    s4d_error_print(&named);
    fflush(stdout);
    fflush(stderr);
    MPI_Abort(w->comm, (int)err->exit);
    _exit((int)err->exit);
}
