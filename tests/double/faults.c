/* SPDX-License-Identifier: Apache-2.0 */
#include <link.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/double/double.h"

struct s4d_double_live s4d_double_live;

/* A call of `name`, from one place of the program; or another name, from none. */
static struct {
    const char *name;
    uintptr_t site;
    long long calls;
} counts[256];
static int n_counts;

long long s4d_double_setting(const char *variable, long long otherwise)
{
    const char *text = getenv(variable);
    return text ? atoll(text) : otherwise;
}

int s4d_double_rank(void)
{
    static int rank = -1;
    int started = 0;
    if (rank < 0 && MPI_Initialized(&started) == MPI_SUCCESS && started)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank < 0 ? 0 : rank;
}

void s4d_double_refuse(const char *call, const char *what)
{
    fprintf(stderr, "the double of CUDA refuses %s: %s\n", call, what);
    abort();
}

/* Calls of a name, or of a name's site. */
static long long calls_of(const char *name, uintptr_t site)
{
    long long n = 0;
    for (int i = 0; i < n_counts; i++)
        if (strcmp(counts[i].name, name) == 0 && (site == 0 || counts[i].site == site))
            n += counts[i].calls;
    return n;
}

static bool is_first(int i)
{
    int first = 0;
    while (strcmp(counts[first].name, counts[i].name) != 0)
        first++;
    return first == i;
}

/* S4D_DOUBLE_CALLS: names, of rank 0; S4D_DOUBLE_SITES: and from where, of every rank. */
static void write_counts(void)
{
    const char *calls = getenv("S4D_DOUBLE_CALLS"), *sites = getenv("S4D_DOUBLE_SITES");
    char path[1000];
    FILE *f = calls && s4d_double_rank() == 0 ? fopen(calls, "w") : NULL;
    for (int i = 0; f && i < n_counts; i++)
        if (is_first(i))
            fprintf(f, "%s %lld\n", counts[i].name, calls_of(counts[i].name, 0));
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "%s.%d", sites ? sites : "", s4d_double_rank());
    f = sites ? fopen(path, "w") : NULL;
    for (int i = 0; f && i < n_counts; i++)
        if (counts[i].site != 0)
            fprintf(f, "0x%llx %s %lld\n", (unsigned long long)counts[i].site, counts[i].name,
                    counts[i].calls);
    if (f)
        fclose(f);
}

static void count(const char *name, uintptr_t site)
{
    int i = 0;
    while (i < n_counts && (counts[i].site != site || strcmp(counts[i].name, name) != 0))
        i++;
    if (i == (int)(sizeof counts / sizeof *counts))
        s4d_double_refuse(name, "more calls than there is room for");
    if (i == n_counts) {
        if (n_counts == 0 && s4d_double_rank() >= 0) /* to be known at the end, too */
            atexit(write_counts);
        counts[n_counts].name = name;
        counts[n_counts++].site = site;
    }
    counts[i].calls++;
}

void s4d_double_forget(void)
{
    for (int i = 0; i < n_counts; i++)
        counts[i].calls = 0;
}

bool s4d_double_site(int i, uintptr_t *site, const char **name, long long *calls)
{
    if (i >= n_counts)
        return false;
    *site = counts[i].site;
    *name = counts[i].name;
    *calls = counts[i].calls;
    return true;
}

static int base_of_program(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr; /* the first is the program */
    return 1;
}

/* As the program's file has it, whatever address it was loaded at. */
static uintptr_t in_file(const void *address)
{
    static uintptr_t base;
    static bool known;
    if (!known)
        dl_iterate_phdr(base_of_program, &base);
    known = true;
    return (uintptr_t)address - base;
}

static bool happens(const char *how)
{
    if (strcmp(how, "late") == 0)
        return s4d_double_is_due() || s4d_double_hold_stream();
    if (strcmp(how, "die") == 0)
        raise(SIGKILL);
    while (strcmp(how, "hang") == 0)
        pause();
    return true;
}

static bool fails(const char *name, uintptr_t site)
{
    const char *wish = getenv("S4D_DOUBLE_FAIL");
    char of[64], how[16] = "fail";
    long long at = 0;
    int rank = -1;
    count(name, site);
    if (!wish || sscanf(wish, "%63[^:]:%lld:%d:%15s", of, &at, &rank, how) < 2)
        return false;
    bool is_site = site != 0 && strncmp(of, "0x", 2) == 0 && strtoull(of, NULL, 16) == site;
    if ((!is_site && strcmp(of, name) != 0) || (rank >= 0 && rank != s4d_double_rank()))
        return false;
    return (calls_of(name, is_site ? site : 0) == at || s4d_double_is_due()) && happens(how);
}

/* How many waits of the kind that one is to be lost of there have been. */
static long long lost_of;

void s4d_double_lose_anew(void)
{
    lost_of = 0;
}

bool s4d_double_loses(const char *kind)
{
    const char *wish = getenv("S4D_DOUBLE_LOSE");
    size_t length = strlen(kind);
    if (!wish || strncmp(wish, kind, length) != 0 || wish[length] != ':')
        return false;
    long long at = atoll(wish + length + 1);
    return ++lost_of == at || at == 0;
}

bool s4d_double_fails(const char *name)
{
    return fails(name, 0);
}

bool s4d_double_call_fails(const char *name, const void *caller)
{
    return fails(name, in_file(caller));
}
