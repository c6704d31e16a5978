/* SPDX-License-Identifier: Apache-2.0 */
#include "support/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/error.h"
#include "support/memory.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, int n, double part)
{
    double at = part * (n - 1);
    int below = (int)at;
    double above = sorted[below + 1 < n ? below + 1 : below];
    return sorted[below] + (at - below) * (above - sorted[below]);
}

struct s4d_statistics s4d_statistics(const double *samples, int n)
{
    S4D_ASSERT(n >= 1, "no samples");
    double *sorted = s4d_malloc((size_t)n * sizeof *sorted), sum = 0;
    memcpy(sorted, samples, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    struct s4d_statistics s = {.n = n, .least = sorted[0], .mean = sum / n};
    s.median = quantile(sorted, n, 0.5);
    s.p99 = sorted[(int)ceil(0.99 * n) - 1];
    s.q1 = quantile(sorted, n, 0.25);
    s.q3 = quantile(sorted, n, 0.75);
    double spread = (s.q3 - s.q1) / 1.349;
    s.variation = spread > 0 ? spread / s.median : 0;
    free(sorted);
    return s;
}

/* Ranks from 1; equal values share the mean of theirs. */
static void ranks_of(const double *v, int n, double *rank)
{
    for (int i = 0; i < n; i++) {
        int below = 0, equal = 0;
        for (int j = 0; j < n; j++) {
            below += v[j] < v[i];
            equal += v[j] == v[i];
        }
        rank[i] = below + (equal + 1) / 2.0;
    }
}

double s4d_rank_correlation(const double *x, const double *y, int n)
{
    if (n < 2)
        return NAN;
    double *a = s4d_malloc((size_t)n * sizeof *a), *b = s4d_malloc((size_t)n * sizeof *b);
    ranks_of(x, n, a);
    ranks_of(y, n, b);
    double mean = (n + 1) / 2.0, ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < n; i++) {
        ab += (a[i] - mean) * (b[i] - mean);
        aa += (a[i] - mean) * (a[i] - mean);
        bb += (b[i] - mean) * (b[i] - mean);
    }
    free(a);
    free(b);
    return ab / sqrt(aa * bb); /* of equal values alone: not a number */
}
