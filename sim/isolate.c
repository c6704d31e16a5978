/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs in forked children. Each child sends its error and its answer through a pipe; an answer that
 * is incomplete means that the child died. */
#include "sim/isolate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/memory.h"

struct child {
    pid_t pid;
    int pipe, index;
    size_t received;
    char *message; /* struct s4d_error, then the answer */
};

static void write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            _exit(S4D_EXIT_BUG); /* the parent is gone */
        bytes += written;
        n -= (size_t)written;
    }
}

static void run_child(s4d_job job, void *context, int index, size_t size, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no simulation outlives the command */
    const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (int i = 0; i < 5; i++) /* the parent is to see how it died, whatever handled it before */
        signal(deadly[i], SIG_DFL);
    char *answer = s4d_calloc(1, size);
    struct s4d_error err = {0};
    int rc = job(context, index, answer, &err);
    if (rc == 0)
        err.exit = S4D_EXIT_OK;
    else if (err.exit == S4D_EXIT_OK)
        err.exit = S4D_EXIT_BUG;
    write_all(out, (const char *)&err, sizeof err);
    write_all(out, answer, size);
    fflush(stdout);
    fflush(stderr);
    _exit(0); /* no exit handlers: the parent's files and SimGrid's are left alone */
}

static int start_child(struct child *child, s4d_job job, void *context, int index, size_t size,
                       struct s4d_error *err)
{
    int ends[2];
    if (pipe(ends) != 0)
        return s4d_fail(err, S4D_EXIT_BUG, "", "cannot make a pipe: %s", strerror(errno));
    fflush(NULL); /* else the child would print what is buffered again */
    pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return s4d_fail(err, S4D_EXIT_BUG, "", "cannot start a process: %s", strerror(errno));
    }
    if (pid == 0) {
        close(ends[0]);
        run_child(job, context, index, size, ends[1]);
    }
    close(ends[1]);
    *child = (struct child){.pid = pid,
                            .pipe = ends[0],
                            .index = index,
                            .message = s4d_malloc(sizeof(struct s4d_error) + size)};
    return 0;
}

/* The child's pipe has ended: its answer, or how it died. */
static void finish_child(struct child *child, char *result, size_t size, struct s4d_error *err)
{
    close(child->pipe);
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    memset(err, 0, sizeof *err);
    if (child->received == sizeof *err + size) {
        memcpy(err, child->message, sizeof *err);
        if (err->exit == S4D_EXIT_OK)
            memcpy(result, child->message + sizeof *err, size);
    } else if (WIFSIGNALED(status)) {
        s4d_fail(err, S4D_EXIT_BUG, "", "the simulation was ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
        if (WTERMSIG(status) == SIGKILL)
            s4d_hint(err, "the system may have run out of memory");
    } else {
        s4d_fail(err, S4D_EXIT_BUG, "", "the simulation exited with %d without a result",
                 WEXITSTATUS(status));
    }
    free(child->message);
}

/* Reads what is there; false at the end of the pipe. */
static bool receive(struct child *child, size_t total)
{
    char surplus;
    bool full = child->received == total;
    ssize_t n = read(child->pipe, full ? &surplus : child->message + child->received,
                     full ? 1 : total - child->received);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    child->received += full ? 0 : (size_t)n;
    return n > 0;
}

int s4d_isolated(s4d_job job, void *context, int n, int workers, void *results, size_t size,
                 struct s4d_error *errors, void (*done)(void *context, int index))
{
    workers = workers < 1 ? 1 : workers < n ? workers : n;
    struct child *child = s4d_calloc((size_t)workers, sizeof *child);
    struct pollfd *poll_fd = s4d_calloc((size_t)workers, sizeof *poll_fd);
    int running = 0, next = 0, failed = 0;
    while (next < n || running > 0) {
        while (next < n && running < workers) {
            int index = next++;
            if (start_child(&child[running], job, context, index, size, &errors[index]) == 0)
                running++;
            else
                failed++;
        }
        for (int i = 0; i < running; i++)
            poll_fd[i] = (struct pollfd){.fd = child[i].pipe, .events = POLLIN};
        if (running == 0 || poll(poll_fd, (nfds_t)running, -1) < 0)
            continue;
        for (int i = running - 1; i >= 0; i--) {
            if (!poll_fd[i].revents || receive(&child[i], sizeof(struct s4d_error) + size))
                continue;
            int index = child[i].index;
            finish_child(&child[i], (char *)results + (size_t)index * size, size, &errors[index]);
            failed += errors[index].exit != S4D_EXIT_OK;
            child[i] = child[--running];
            if (done)
                done(context, index);
        }
    }
    free(poll_fd);
    free(child);
    return failed;
}
