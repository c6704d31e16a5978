/* SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/double/double.h"

static struct {
    const char *name;
    long long calls;
} counts[64];
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

static void write_counts(void)
{
    const char *path = getenv("S4D_DOUBLE_CALLS");
    FILE *f = path && s4d_double_rank() == 0 ? fopen(path, "w") : NULL;
    for (int i = 0; f && i < n_counts; i++)
        fprintf(f, "%s %lld\n", counts[i].name, counts[i].calls);
    if (f)
        fclose(f);
}

static long long count(const char *name)
{
    int i = 0;
    while (i < n_counts && strcmp(counts[i].name, name) != 0)
        i++;
    if (i == (int)(sizeof counts / sizeof *counts))
        s4d_double_refuse(name, "more names than there is room for");
    if (i == n_counts) {
        if (n_counts == 0)
            atexit(write_counts);
        counts[n_counts++].name = name;
    }
    return ++counts[i].calls;
}

bool s4d_double_fails(const char *name)
{
    long long n = count(name), at = 0;
    const char *wish = getenv("S4D_DOUBLE_FAIL");
    size_t length = strlen(name);
    int rank = -1;
    if (!wish || strncmp(wish, name, length) != 0 || wish[length] != ':')
        return false;
    int found = sscanf(wish + length, ":%lld:%d", &at, &rank);
    return found >= 1 && n == at && (rank < 0 || rank == s4d_double_rank());
}
