/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/change_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/random.h"

#define PI 3.14159265358979323846

enum { PAIRED = 24 }; /* samples of which all pairs are taken */
/* Chosen, like the defaults, on series that no report uses (tests/bench/change.c). */
enum { NEAR = 14 };          /* nights on either side of a change that tell its size */
static const double FAR = 5, /* deviations that one night counts at most */
    SURE = 1.5,              /* standard errors less, and still large enough */
    MOST_OF_THE_WAY = 0.7, SEEN_MOST = 0.1; /* to the new level, and of the nights before */

/* Nights in some order: each with its value, and the sum of its distances to all others, which no
 * order changes; and what the splits of as many nights weigh. */
struct segment {
    int n;
    double total; /* distances of all pairs */
    double value[S4D_NIGHTS_MAX], distances[S4D_NIGHTS_MAX];
    double before[S4D_NIGHTS_MAX], after[S4D_NIGHTS_MAX]; /* by the nights before the split */
};

struct search {
    const struct s4d_change_options *options;
    const double *values;
    struct s4d_change *found;
    int n_found;
};

struct s4d_change_options s4d_change_defaults(void)
{
    return (struct s4d_change_options){
        .permutations = 999, .p_max = 0.025, .magnitude = 0.01, .deviation = 4, .seed = 1};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_of(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The median of the means of all pairs, a value with itself included. */
static double of_pairs(const double *v, int n)
{
    double mean[PAIRED * (PAIRED + 1) / 2];
    int k = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++)
            mean[k++] = (v[i] + v[j]) / 2;
    return median_of(mean, k);
}

struct s4d_level s4d_level_of(double *samples, int n)
{
    S4D_ASSERT(n >= 1, "no samples");
    qsort(samples, (size_t)n, sizeof *samples, by_value);
    int cut = n >= 3 && n < 8 ? 1 : (n + 2) / 5;
    double sum = 0, squares = 0, kept = n - 2 * cut;
    for (int i = cut; i < n - cut; i++)
        sum += samples[i];
    double value = sum / kept;
    /* Of a trimmed mean (Yuen 1974): squares of the samples with the cut ones drawn in. Of the
     * other nearly the same. */
    for (int i = 0; i < n; i++) {
        int j = i < cut ? cut : i >= n - cut ? n - cut - 1 : i;
        squares += (samples[j] - value) * (samples[j] - value);
    }
    double error = kept > 1 ? sqrt(squares / (kept * (kept - 1))) : 0;
    if (n >= 4 && n <= PAIRED)
        value = of_pairs(samples, n);
    return (struct s4d_level){.value = value, .error = error};
}

typedef double four __attribute__((vector_size(32)));
typedef int64_t four_bits __attribute__((vector_size(32)));

/* Distances of night i to those before it. Four sums at a time: added in a fixed order, they are
 * the same on every processor. */
static double distances_before(const double *v, int i)
{
    const four x = {v[i], v[i], v[i], v[i]};
    const four_bits no_sign = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    four sums = {0}, y;
    int j = 0;
    for (; j + 4 <= i; j += 4) {
        memcpy(&y, v + j, sizeof y);
        sums += (four)((four_bits)(x - y) & no_sign);
    }
    double rest = 0;
    for (; j < i; j++)
        rest += fabs(v[i] - v[j]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
}

/* With m nights before and o from the split on, D of all pairs across it and D of those on either
 * side, Q = 2 / n (D across - o / (m - 1) D before - m / (o - 1) D after). In n^2 / 2 distances. */
static double best_split(const struct segment *s, int *at)
{
    double before = 0, after = s->total, best = -INFINITY;
    for (int i = 0; i + 2 < s->n; i++) {
        double left = distances_before(s->value, i);
        before += left;
        after -= s->distances[i] - left;
        double across = s->total - before - after;
        double q = across - s->before[i + 1] * before - s->after[i + 1] * after;
        if (i > 0 && q > best) {
            best = q;
            *at = i + 1;
        }
    }
    return 2 * best / s->n;
}

static void segment_of(struct segment *s, const double *values, int n)
{
    s->n = n;
    s->total = 0;
    for (int i = 0; i < n; i++) {
        s->value[i] = values[i];
        s->distances[i] = 0;
        for (int j = 0; j < n; j++)
            s->distances[i] += fabs(values[i] - values[j]);
        s->total += s->distances[i] / 2;
    }
    for (int m = 1; m + 1 < n; m++) {
        double o = n - m;
        s->before[m] = m > 1 ? o / (m - 1) : 0;
        s->after[m] = m / (o - 1);
    }
}

double s4d_best_split(const double *values, int n, int *at)
{
    struct segment s;
    S4D_ASSERT(n >= 4 && n <= S4D_NIGHTS_MAX, "%d values", n);
    segment_of(&s, values, n);
    return best_split(&s, at);
}

static void swap(double *v, int i, int j)
{
    double kept = v[i];
    v[i] = v[j];
    v[j] = kept;
}

static void shuffle(struct segment *s, uint64_t *state)
{
    for (int i = s->n - 1; i > 0; i--) {
        int j = (int)((s4d_random_next(state) >> 32) * (uint64_t)(i + 1) >> 32);
        swap(s->value, i, j);
        swap(s->distances, i, j);
    }
}

/* The p of the best split of values [from, from + n), and where it is. Stops as soon as p must be
 * above p_max (Besag and Clifford 1991): most series have no change and need a few dozen orders.
 * And half way where none of them was as good: p is small enough. */
static double significance(const struct search *s, int from, int n, int *at)
{
    struct segment nights;
    const struct s4d_change_options *o = s->options;
    segment_of(&nights, s->values + from, n);
    double q = best_split(&nights, at);
    if (!(q > 1e-12 * nights.total / n))
        return 1; /* all the same, but for rounding */
    uint64_t state = s4d_mix((uint64_t)o->seed + s4d_mix((uint64_t)from << 32 | (uint64_t)n));
    double as_good = 1, most = o->p_max * (o->permutations + 1), least = q * (1 - 1e-9);
    for (int i = 1; i <= o->permutations; i++) {
        int elsewhere;
        shuffle(&nights, &state);
        as_good += best_split(&nights, &elsewhere) >= least;
        if (as_good > most || (as_good == 1 && i == o->permutations / 2))
            return as_good / (i + 1);
    }
    return as_good / (o->permutations + 1);
}

static void search(struct search *s, int from, int n)
{
    int at = 0;
    if (n < 4)
        return;
    double p = significance(s, from, n, &at);
    if (p > s->options->p_max)
        return;
    search(s, from, at);
    s->found[s->n_found++] = (struct s4d_change){.at = from + at, .p = p};
    search(s, from + at, n - at);
}

/* Not a median, which would jump between two clusters that take turns. */
static double level(const struct s4d_level *nights, int from, int to)
{
    double v[S4D_NIGHTS_MAX];
    for (int i = from; i < to; i++)
        v[i - from] = nights[i].value;
    return s4d_level_of(v, to - from).value;
}

/* Of one or two nights the one nearest to the other level, of more their level. */
static double cautious(const struct s4d_level *nights, int from, int to, double other)
{
    if (to - from > 2)
        return level(nights, from, to);
    double a = nights[from].value, b = nights[to - 1].value;
    return fabs(a - other) < fabs(b - other) ? a : b;
}

/* How nights scatter about the levels that `v` divides them into, as a standard deviation; far
 * nights are drawn in. Not less than the samples' own scatter explains; of few nights more, as
 * Student's t.
 */
static double scatter(const struct s4d_level *nights, int n, const struct s4d_change *v, int n_v)
{
    double residual[S4D_NIGHTS_MAX], sorted[S4D_NIGHTS_MAX], squares = 0, errors = 0;
    for (int c = 0; c <= n_v; c++) {
        int from = c ? v[c - 1].at : 0, to = c < n_v ? v[c].at : n;
        double middle = level(nights, from, to);
        for (int i = from; i < to; i++)
            sorted[i] = residual[i] = fabs(nights[i].value - middle);
    }
    double most = FAR * 1.4826 * median_of(sorted, n);
    for (int i = 0; i < n; i++) {
        double r = most > 0 ? fmin(residual[i], most) : residual[i];
        squares += r * r;
        errors += nights[i].error * nights[i].error;
    }
    double more = fmax(n - n_v - 1, 1);
    return sqrt(fmax(squares / more, errors / n)) * (1 + 2 / more);
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

static int sooner(int a, int b)
{
    return a < b ? a : b;
}

/* The part of the nights before a change that were most of the way to the new level already: what a
 * series did now and then (two clusters that take turns) is nothing new when it does it again. */
static double seen_before(const struct s4d_level *nights, const struct s4d_change *c)
{
    double sign = c->after > c->before ? 1 : -1, seen = 0;
    double there = c->before + MOST_OF_THE_WAY * (c->after - c->before);
    for (int i = c->from; i < c->at; i++)
        seen += (nights[i].value - there) * sign >= 0;
    return seen / (c->at - c->from);
}

/* The size of a change is that of the nights next to it: over all nights a slow drift would add
 * up. Both nights of a level of two must be off the other one. */
static void judge(const struct s4d_level *nights, double scatter_of_night,
                  const struct s4d_change_options *o, struct s4d_change *c)
{
    int from = later(c->from, c->at - NEAR), to = sooner(c->to, c->at + NEAR);
    c->before = level(nights, from, c->at);
    c->after = level(nights, c->at, to);
    c->part = c->before > 0 ? c->after / c->before - 1 : NAN;
    double size = fabs(c->after - c->before);
    double error = scatter_of_night * sqrt(1.0 / (c->at - from) + 1.0 / (to - c->at));
    c->deviations = size == 0 ? 0 : size / error;
    c->large = size - SURE * error >= o->magnitude * c->before && c->deviations >= o->deviation &&
               seen_before(nights, c) <= SEEN_MOST;
    double before = cautious(nights, from, c->at, c->after);
    double after = cautious(nights, c->at, to, c->before);
    c->confirmed = c->large && c->at >= S4D_NIGHTS_SETTLED && to - c->at >= 2 &&
                   (after - before) * (c->after - c->before) > 0 &&
                   fabs(after - before) >= o->magnitude * before;
}

static int check(const struct s4d_level *nights, int n, struct s4d_error *err)
{
    if (n > S4D_NIGHTS_MAX)
        return s4d_fail(err, S4D_EXIT_DATA, "nights", "expected at most %d, got %d", S4D_NIGHTS_MAX,
                        n);
    for (int i = 0; i < n; i++)
        if (!(isfinite(nights[i].value) && nights[i].value >= 0 && nights[i].error >= 0))
            return s4d_fail(err, S4D_EXIT_DATA, "nights",
                            "expected a finite number of at least 0 on night %d, got %g", i,
                            nights[i].value);
    return 0;
}

int s4d_change_points(const struct s4d_level *nights, int n,
                      const struct s4d_change_options *options, struct s4d_change *v,
                      struct s4d_error *err)
{
    double values[S4D_NIGHTS_MAX];
    if (check(nights, n, err))
        return -1;
    for (int i = 0; i < n; i++)
        values[i] = nights[i].value;
    struct search s = {.options = options, .values = values, .found = v};
    search(&s, 0, n);
    if (s.n_found == 0)
        return 0;
    double of_night = scatter(nights, n, v, s.n_found);
    for (int i = 0; i < s.n_found; i++) {
        v[i].from = i ? v[i - 1].at : 0;
        v[i].to = i + 1 < s.n_found ? v[i + 1].at : n;
        judge(nights, of_night, options, &v[i]);
    }
    return s.n_found;
}

bool s4d_change_stands(const struct s4d_level *nights, const struct s4d_change *v, int n_v, int i,
                       const struct s4d_change_options *options)
{
    const struct s4d_change *last = &v[n_v - 1];
    if (!v[i].confirmed || i == n_v - 1)
        return v[i].confirmed;
    double now = cautious(nights, last->at, last->to, v[i].before) - v[i].before;
    return now * (v[i].after - v[i].before) > 0 && fabs(now) >= options->magnitude * v[i].before;
}

bool s4d_night_stands_out(const struct s4d_level *nights, int from, int n,
                          const struct s4d_change_options *options, struct s4d_change *change)
{
    int last = n - 1, as_far = 1;
    S4D_ASSERT(last - from >= 2, "%d nights", n - from);
    *change = (struct s4d_change){.at = last, .from = from, .to = n};
    judge(nights, scatter(nights + from, last - from, NULL, 0), options, change);
    double size = fabs(change->after - change->before);
    for (int i = from; i < last; i++)
        as_far += fabs(nights[i].value - change->before) >= size;
    change->p = (double)as_far / (n - from);
    return change->large;
}

int s4d_change_least_nights(int after, const struct s4d_change_options *options)
{
    double least = fmax(options->p_max, 1e-6);
    for (int n = 2 * after;; n++) {
        double orders = 1; /* C(n, after), by pieces */
        for (int i = 1; i <= after; i++)
            orders = orders * (n - after + i) / i;
        if ((n == 2 * after ? 1 : 2) / orders <= least)
            return n;
    }
}
