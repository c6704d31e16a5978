/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/night_rates.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/statistics.h"

static double positive(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    double number = json_is_number(v) ? json_number_value(v) : NAN;
    return number > 0 && isfinite(number) ? number : NAN;
}

/* Of the numbers that are there; of none the median is NAN. */
static struct s4d_statistics statistics(const double *v, int n)
{
    double *kept = s4d_malloc((size_t)n * sizeof *kept + 1);
    struct s4d_statistics s = {.median = NAN};
    int k = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(v[i]))
            kept[k++] = v[i];
    if (k > 0)
        s = s4d_statistics(kept, k);
    free(kept);
    return s;
}

static double median(const double *v, int n)
{
    return statistics(v, n).median;
}

/* Of `n` rates the lowest; *typical: the median of the others, or the only one. -1: fewer than two
 * are there. */
static int lowest(const double *rate, int n, double *typical)
{
    int at = -1, there = 0;
    double *others = s4d_malloc((size_t)n * sizeof *others + 1);
    for (int i = 0; i < n; i++) {
        others[i] = rate[i];
        there += isfinite(rate[i]);
        if (isfinite(rate[i]) && (at < 0 || rate[i] < rate[at]))
            at = i;
    }
    if (there > 1)
        others[at] = NAN;
    *typical = median(others, n);
    free(others);
    return there > 1 ? at : -1;
}

/* Fills slowest and gemm_flops_per_s from a list of rates: of nodes, or of the ranks of one. */
static void compare(struct s4d_night_rates *r, const json_t *nodes, const json_t *list,
                    bool of_ranks)
{
    int n = (int)json_array_size(list), at;
    double *rate = s4d_malloc((size_t)n * sizeof *rate + 1);
    for (int i = 0; i < n; i++) {
        const json_t *one = json_array_get(list, (size_t)i);
        rate[i] = of_ranks ? (json_is_number(one) ? json_number_value(one) : NAN)
                           : positive(one, "gemm_flops_per_s");
        rate[i] = rate[i] > 0 ? rate[i] : NAN;
    }
    double typical;
    at = lowest(rate, n, &typical);
    const json_t *node = json_array_get(nodes, at >= 0 && !of_ranks ? (size_t)at : 0);
    const char *host = json_string_value(json_object_get(node, "host"));
    if (at >= 0) {
        const json_t *rank = json_object_get(node, "slowest_rank");
        snprintf(r->slowest.host, sizeof r->slowest.host, "%s", host ? host : "?");
        r->slowest.is_rank = of_ranks;
        r->slowest.records = 1;
        r->slowest.part = rate[at] / typical;
        r->slowest.rank = of_ranks ? at : (int)json_integer_value(rank);
    }
    if (isfinite(typical))
        r->gemm_flops_per_s = typical;
    free(rate);
}

struct s4d_night_rates s4d_night_rates_of(const json_t *record)
{
    const json_t *nodes = json_object_get(record, "nodes"),
                 *ranks = json_object_get(record, "gemm_flops_per_s_of_ranks"),
                 *busbw = json_object_get(record, "busbw_Bps");
    struct s4d_night_rates r = {.records = 1,
                                .gemm_flops_per_s = positive(record, "gemm_flops_per_s"),
                                .gemm_s = positive(record, "gemm_s"),
                                .attention_s = positive(record, "attention_s"),
                                .kernels_s = positive(record, "kernels_s"),
                                .slowest = {.part = 1},
                                .nodes = (int)json_array_size(nodes)};
    for (int s = 0; s < S4D_STREAMS; s++)
        r.busbw_Bps[s] = positive(busbw, s4d_streams[s].name);
    for (int i = 0; i < r.nodes; i++) {
        double of = positive(json_array_get(nodes, (size_t)i), "ranks");
        if (of < 1 << 20 && (int)of > r.ranks_per_node)
            r.ranks_per_node = (int)of;
    }
    if (r.nodes > 1)
        compare(&r, nodes, nodes, false);
    else if (r.nodes == 1)
        compare(&r, nodes, ranks, true);
    return r;
}

static struct s4d_statistics at(const struct s4d_night_rates *v, int n, size_t offset)
{
    double *of = s4d_malloc((size_t)n * sizeof *of + 1);
    for (int i = 0; i < n; i++)
        memcpy(&of[i], (const char *)&v[i] + offset, sizeof of[i]);
    struct s4d_statistics s = statistics(of, n);
    free(of);
    return s;
}

static void take(const struct s4d_night_rates *v, int n, size_t offset, double *to, double *noise)
{
    struct s4d_statistics s = at(v, n, offset);
    *to = s.median;
    *noise = s.n > 1 ? s.variation : 0;
}

static bool same_place(const struct s4d_slowest *a, const struct s4d_slowest *b)
{
    return a->is_rank == b->is_rank && strcmp(a->host, b->host) == 0 &&
           (!a->is_rank || a->rank == b->rank);
}

/* The one that most often was the slowest, as the last record with it has it. */
static struct s4d_slowest vote(const struct s4d_night_rates *v, int n)
{
    struct s4d_slowest best = {.part = 1};
    for (int i = 0; i < n; i++) {
        int votes = 0;
        for (int j = 0; j < n; j++)
            votes += v[j].slowest.host[0] && same_place(&v[i].slowest, &v[j].slowest);
        if (votes > 0 && votes >= best.records) {
            best = v[i].slowest;
            best.records = votes;
        }
    }
    if (best.host[0])
        best.part = at(v, n, offsetof(struct s4d_night_rates, slowest.part)).median;
    return best;
}

struct s4d_night_rates s4d_night_rates_median(const struct s4d_night_rates *v, int n)
{
    struct s4d_night_rates r = v[n - 1];
#define FIELD(field) offsetof(struct s4d_night_rates, field)
    r.records = n;
    r.gemm_s = at(v, n, FIELD(gemm_s)).median;
    take(v, n, FIELD(gemm_flops_per_s), &r.gemm_flops_per_s, &r.noise.gemm);
    take(v, n, FIELD(attention_s), &r.attention_s, &r.noise.attention);
    take(v, n, FIELD(kernels_s), &r.kernels_s, &r.noise.kernels);
    for (int s = 0; s < S4D_STREAMS; s++)
        take(v, n, FIELD(busbw_Bps) + (size_t)s * sizeof(double), &r.busbw_Bps[s],
             &r.noise.busbw[s]);
#undef FIELD
    r.slowest = vote(v, n);
    double unused;
    take(v, n, offsetof(struct s4d_night_rates, slowest.part), &unused, &r.noise.slowest);
    return r;
}

/* Of two medians' ratio: 1.2533 is sqrt(pi / 2), a median's against a mean's. A scatter of few
 * records says little: then it is taken for that of the others. */
static double error_of(double noise_before, double noise_after, int before, int after)
{
    enum { FEW = 4 };
    double b = before < FEW && after >= FEW ? noise_after : noise_before,
           a = after < FEW && before >= FEW ? noise_before : noise_after;
    return 1.2533 * sqrt(b * b / before + a * a / after);
}

struct s4d_rate_noise s4d_rate_errors(const struct s4d_night_rates *before,
                                      const struct s4d_night_rates *after)
{
    const struct s4d_rate_noise *b = &before->noise, *a = &after->noise;
    int n = before->records, m = after->records;
    struct s4d_rate_noise e = {.gemm = error_of(b->gemm, a->gemm, n, m),
                               .attention = error_of(b->attention, a->attention, n, m),
                               .kernels = error_of(b->kernels, a->kernels, n, m),
                               .slowest = error_of(b->slowest, a->slowest, n, m)};
    for (int s = 0; s < S4D_STREAMS; s++)
        e.busbw[s] = error_of(b->busbw[s], a->busbw[s], n, m);
    return e;
}
