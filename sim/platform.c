/* SPDX-License-Identifier: Apache-2.0 */
/* Our end of a platform's child process. */
#include "sim/platform.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/platform_child.h"
#include "support/memory.h"
#include "support/quote.h"

int s4d_platform_send(int socket, const void *bytes, unsigned long n)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(socket, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        at += sent;
        n -= (unsigned long)sent;
    }
    return 0;
}

int s4d_platform_receive(int socket, void *bytes, unsigned long n)
{
    for (char *at = bytes; n > 0;) {
        ssize_t got = recv(socket, at, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        at += got;
        n -= (unsigned long)got;
    }
    return 0;
}

/* What SimGrid prints goes to `log`; it ends with the parent, and leaves no core behind. */
static void run_child(int socket, FILE *log, const char *file, const char *hosts)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(fileno(log), STDOUT_FILENO);
    dup2(fileno(log), STDERR_FILENO);
    int own = dup2(socket, 3);
    close_range(4, ~0U, 0);
    s4d_platform_serve(own, file, hosts);
    _exit(0);
}

static int receive_int(struct s4d_platform *p, int *value)
{
    return s4d_platform_receive(p->socket, value, sizeof *value);
}

/* A fresh text, or NULL. */
static char *receive_text(struct s4d_platform *p)
{
    int n;
    if (receive_int(p, &n))
        return NULL;
    char *text = s4d_calloc((size_t)n + 1, 1);
    if (s4d_platform_receive(p->socket, text, (unsigned long)n) == 0)
        return text;
    free(text);
    return NULL;
}

/* Hosts and links. 0, or -1: the child ended early. */
static int receive_platform(struct s4d_platform *p)
{
    int n, shared;
    if (receive_int(p, &n))
        return -1;
    p->host = s4d_calloc((size_t)n + 1, sizeof *p->host);
    for (; p->n_hosts < n; p->n_hosts++)
        if (!(p->host[p->n_hosts] = receive_text(p)))
            return -1;
    if (receive_int(p, &n))
        return -1;
    p->link = s4d_calloc((size_t)n + 1, sizeof *p->link);
    for (; p->n_links < n; p->n_links++) {
        struct s4d_platform_link *link = &p->link[p->n_links];
        if (!(link->name = receive_text(p)))
            return -1;
        if (s4d_platform_receive(p->socket, &link->bandwidth_Bps, sizeof(double)) ||
            s4d_platform_receive(p->socket, &link->latency_s, sizeof(double)) ||
            receive_int(p, &shared))
            return -1;
        link->shared = shared != 0;
    }
    return 0;
}

/* The last line that SimGrid printed before any backtrace, without the head of its log format
 * "[time] [where] ". */
static void last_words(FILE *log, char *text, size_t size)
{
    char line[512];
    text[0] = '\0';
    rewind(log);
    while (fgets(line, sizeof line, log) && strncmp(line, "Backtrace", 9) != 0) {
        const char *at = strrchr(line, ']');
        at = at ? at + 1 : line;
        at += strspn(at, " \t\n");
        if (*at)
            snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

/* text: what it said before it ended, NULL: nothing. */
static int refused(const struct s4d_platform *p, FILE *log, const char *text, struct s4d_error *err)
{
    char words[256];
    last_words(log, words, sizeof words);
    if (text && text[0])
        snprintf(words, sizeof words, "%s", text);
    for (char *at = words; *at; at++) /* it may quote the file */
        if (!isprint((unsigned char)*at))
            *at = *at == '\n' ? ' ' : '?';
    return s4d_fail(err, S4D_EXIT_DATA, p->file, "SimGrid does not read this platform: %s",
                    words[0] ? words : "it ended without a word");
}

static int receive(struct s4d_platform *p, FILE *log, struct s4d_error *err)
{
    int status = -1;
    if (receive_int(p, &status) == 0 && status == 0 && receive_platform(p) == 0)
        return 0;
    char *text = status == 1 ? receive_text(p) : NULL;
    refused(p, log, text, err);
    free(text);
    return -1;
}

static const double latency_most_s = 1000;

static int check(const struct s4d_platform *p, const char *hosts, struct s4d_error *err)
{
    if (p->n_hosts == 0 && hosts) {
        s4d_fail(err, S4D_EXIT_DATA, p->file, "no host matches %s", s4d_quote(hosts).text);
        return s4d_hint(err, "a pattern of names (node-*), or PROPERTY=PATTERN");
    }
    if (p->n_hosts == 0)
        return s4d_fail(err, S4D_EXIT_DATA, p->file, "no host in this platform");
    for (int i = 0; i < p->n_links; i++) {
        const struct s4d_platform_link *l = &p->link[i];
        if (!(l->bandwidth_Bps > 0) || isinf(l->bandwidth_Bps))
            return s4d_fail(err, S4D_EXIT_DATA, p->file,
                            "link %s: expected a bandwidth above 0, found %g",
                            s4d_quote(l->name).text, l->bandwidth_Bps);
        if (!(l->latency_s >= 0 && l->latency_s <= latency_most_s))
            return s4d_fail(err, S4D_EXIT_DATA, p->file,
                            "link %s: expected a latency from 0 to %g s, found %g s",
                            s4d_quote(l->name).text, latency_most_s, l->latency_s);
    }
    return 0;
}

static int start(struct s4d_platform *p, FILE *log, const char *hosts, struct s4d_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return s4d_fail(err, S4D_EXIT_BUG, "", "cannot make a socket: %s", strerror(errno));
    fflush(NULL);
    p->pid = fork();
    if (p->pid == 0)
        run_child(ends[1], log, p->file, hosts);
    close(ends[1]);
    p->socket = ends[0];
    if (p->pid > 0)
        return 0;
    return s4d_fail(err, S4D_EXIT_BUG, "", "cannot start a process: %s", strerror(errno));
}

struct s4d_platform *s4d_platform_open(const char *file, const char *hosts, struct s4d_error *err)
{
    FILE *log = tmpfile();
    struct s4d_platform *p = s4d_calloc(1, sizeof *p);
    p->file = s4d_strdup(file);
    p->socket = -1;
    int rc = log ? start(p, log, hosts, err)
                 : s4d_fail(err, S4D_EXIT_BUG, "", "cannot make a file: %s", strerror(errno));
    if (rc == 0)
        rc = receive(p, log, err);
    if (rc == 0)
        rc = check(p, hosts, err);
    if (log)
        fclose(log);
    if (rc == 0)
        return p;
    s4d_platform_close(p);
    return NULL;
}

void s4d_platform_close(struct s4d_platform *p)
{
    if (!p)
        return;
    if (p->socket >= 0)
        close(p->socket);
    while (p->pid > 0 && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    for (int i = 0; i < p->n_hosts; i++)
        free(p->host[i]);
    for (int i = 0; i < p->n_links; i++)
        free(p->link[i].name);
    free(p->host);
    free(p->link);
    free(p->file);
    free(p);
}

int s4d_platform_route(struct s4d_platform *p, int a, int b, int *links, int most,
                       double *latency_s)
{
    int pair[2] = {a, b}, n = -1;
    if (s4d_platform_send(p->socket, pair, sizeof pair) || receive_int(p, &n))
        return -1;
    S4D_ASSERT(n <= most, "a route of %d links", n);
    if (n > 0 && s4d_platform_receive(p->socket, links, (unsigned long)n * sizeof *links))
        return -1;
    return s4d_platform_receive(p->socket, latency_s, sizeof *latency_s) ? -1 : n;
}
