/* SPDX-License-Identifier: Apache-2.0 */
#include "real/watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Assumed: soon enough for a person, and nothing for the processor. */
enum { LOOKS_PER_S = 5 };

static struct s4d_watch watch;
static struct {
    void (*ending)(void *self, const struct s4d_error *why);
    void *self;
} last;
static pthread_t thread;
static atomic_bool running, stopping;

void s4d_watch_prepare(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file larger than the limit: its write says so */
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ended, or ended and not yet waited for by its parent. */
static int is_gone(pid_t pid)
{
    char path[64], line[512] = "";
    if (kill(pid, 0) != 0)
        return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = '\0';
    const char *state = strrchr(line, ')'); /* "pid (name) S ..." */
    return state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X');
}

static int peer_gone(void)
{
    for (int i = 0; i < watch.n_peers; i++)
        if (watch.peer_pid[i] != 0 && watch.peer_rank[i] != watch.rank &&
            is_gone(watch.peer_pid[i]))
            return i;
    return -1;
}

static void last_words(const struct s4d_error *why)
{
    if (watch.interrupted)
        watch.interrupted(watch.self, why);
    if (last.ending)
        last.ending(last.self, why);
}

static void leave(enum s4d_exit code, const char *what)
{
    char doing[512] = "starting", where[300];
    struct s4d_error err;
    if (watch.describe)
        watch.describe(watch.self, doing, sizeof doing);
    snprintf(where, sizeof where, "rank %d (%.200s)", watch.rank, watch.host);
    s4d_fail(&err, code, where, "%s; waiting in %s", what, doing);
    s4d_error_print(&err);
    fflush(stderr);
    last_words(&err);
    _exit((int)code);
}

static void leave_peer(int peer)
{
    char what[320];
    snprintf(what, sizeof what, "rank %d (process %ld on %.200s) is gone", watch.peer_rank[peer],
             (long)watch.peer_pid[peer], watch.host);
    leave(S4D_EXIT_DEVICE, what);
}

/* A launcher ends a job because a rank died, or because somebody asked it to. */
static void terminated(void)
{
    int peer = peer_gone();
    if (peer >= 0)
        leave_peer(peer);
    last_words(NULL); /* first of all: the launcher kills before long */
    if (watch.rank == 0)
        leave(S4D_EXIT_TIMEOUT, "ended by SIGTERM");
    sleep(3); /* as long as ranks live, the launcher forwards what rank 0 writes */
    _exit(S4D_EXIT_TIMEOUT);
}

static void *look(void *unused)
{
    sigset_t set;
    siginfo_t from;
    const struct timespec period = {.tv_nsec = 1000000000L / LOOKS_PER_S};
    int64_t last = -1;
    double since_s = now_s(), start_s = since_s;
    (void)unused;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    while (!atomic_load(&stopping)) {
        if (sigtimedwait(&set, &from, &period) == SIGTERM) {
            if (from.si_pid == getpid()) /* s4d_watch_stop */
                break;
            terminated();
        }
        int64_t completed = watch.completed ? watch.completed(watch.self) : 0;
        if (completed != last)
            since_s = now_s();
        last = completed;
        if (atomic_load(&stopping))
            break;
        int peer = peer_gone();
        if (peer >= 0) {
            nanosleep(&period, NULL); /* the peer's own words, or the launcher's, come first */
            leave_peer(peer);
        }
        if (watch.timeout_s > 0 && now_s() - since_s > watch.timeout_s) {
            char what[128];
            snprintf(what, sizeof what, "nothing has completed for %.1f s (--timeout)",
                     now_s() - since_s);
            leave(S4D_EXIT_TIMEOUT, what);
        }
        if (watch.limit_s > 0 && now_s() - start_s > watch.limit_s) {
            char what[128];
            snprintf(what, sizeof what, "the time limit has passed, after %.1f s",
                     now_s() - start_s);
            leave(S4D_EXIT_TIMEOUT, what);
        }
    }
    return NULL;
}

void s4d_watch_at_end(void (*ending)(void *self, const struct s4d_error *why), void *self)
{
    last.ending = ending;
    last.self = self;
}

int s4d_watch_start(const struct s4d_watch *w, struct s4d_error *err)
{
    watch = *w;
    atomic_store(&stopping, false);
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    int code = pthread_create(&thread, NULL, look, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return s4d_fail(err, S4D_EXIT_DEVICE, "", "no thread could be started");
    atomic_store(&running, true);
    return 0;
}

void s4d_watch_stop(void)
{
    if (!atomic_exchange(&running, false))
        return;
    atomic_store(&stopping, true);
    pthread_kill(thread, SIGTERM); /* it may sleep */
    pthread_join(thread, NULL);
}
