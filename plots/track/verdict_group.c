/* SPDX-License-Identifier: Apache-2.0 */
/* One cause shows in training and in the rates that were measured alone beside it: the rates'
 * finding is put under that of training. */
#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict_internal.h"
#include "support/memory.h"

enum { APART = 2 }; /* nights, as of metrics of one series: both need not change on the same one */

bool s4d_series_measures(const struct s4d_series *rates, const struct s4d_series *of)
{
    bool same =
        strcmp(rates->kind, "rates") == 0 && strcmp(of->host_class, rates->host_class) == 0 &&
        strcmp(of->backend, rates->backend) == 0 && strcmp(of->workload, rates->workload) == 0 &&
        strcmp(of->grid, rates->grid) == 0 && of->gpus == rates->gpus;
    if (!same)
        return false;
    json_t *one = json_loads(of->options, 0, NULL), *other = json_loads(rates->options, 0, NULL),
           *v;
    const char *key;
    json_object_foreach(one, key, v)
    {
        const json_t *w = json_object_get(other, key);
        same = same && (!w || json_equal(v, w));
    }
    json_decref(one);
    json_decref(other);
    return same;
}

static int direction(const struct s4d_finding *f)
{
    return s4d_worse(f->v[0].metric, f->v[0].before, f->v[0].after);
}

/* A rate to watch may tell why training is worse; but one that is worse stands for itself where
 * training is only to be watched, or nothing would fail. */
static bool tells_why(const struct s4d_finding *rates, const struct s4d_finding *f)
{
    return f->kind == S4D_FINDING_CHANGE && rates->kind == S4D_FINDING_CHANGE &&
           strcmp(f->series->kind, "train") == 0 && abs(f->since - rates->since) <= APART &&
           f->standing >= rates->standing && direction(f) == direction(rates) &&
           s4d_series_measures(rates->series, f->series);
}

/* The finding of training nearest in time to one of rates, or -1. */
static int parent_of(const struct s4d_verdict *v, const struct s4d_finding *rates)
{
    int found = -1, best = APART + 1;
    for (int i = 0; i < v->n; i++)
        if (tells_why(rates, &v->v[i]) && abs(v->v[i].since - rates->since) < best) {
            best = abs(v->v[i].since - rates->since);
            found = i;
        }
    return found;
}

/* A series of which every finding of its standing is under another's. */
static bool tells_only(const struct s4d_verdict *v, const struct s4d_series_standing *row)
{
    bool any = false;
    for (int i = 0; i < v->n; i++) {
        if (v->v[i].series != row->series || v->v[i].standing != row->standing)
            continue;
        if (v->v[i].of < 0)
            return false;
        any = true;
    }
    return any;
}

void s4d_verdict_group(struct s4d_verdict *v)
{
    struct s4d_finding *sorted = s4d_calloc((size_t)v->n + 1, sizeof *sorted);
    int *parent = s4d_calloc((size_t)v->n + 1, sizeof *parent), n = 0;
    for (int i = 0; i < v->n; i++)
        parent[i] = parent_of(v, &v->v[i]);
    for (int i = 0; i < v->n; i++) {
        if (parent[i] >= 0)
            continue;
        int at = n;
        sorted[n++] = v->v[i];
        for (int k = 0; k < v->n; k++)
            if (parent[k] == i) {
                sorted[n] = v->v[k];
                sorted[n++].of = at;
            }
    }
    S4D_ASSERT(n == v->n, "%d of %d findings", n, v->n);
    if (n > 0)
        memcpy(v->v, sorted, (size_t)n * sizeof *sorted);
    for (int i = 0; i < v->n_rows; i++)
        v->told[v->row[i].standing] += tells_only(v, &v->row[i]);
    free(sorted);
    free(parent);
}
