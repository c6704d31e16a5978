/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "plots/page/internal.h"
#include "support/memory.h"

struct steps {
    struct s4d_step *v;
    int n, cap;
};

static void add(struct steps *steps, const struct s4d_points *points, int from, int to,
                double value, double change)
{
    struct s4d_step step = {points->v[from].day, points->v[to - 1].day, value, change};
    s4d_push(steps->v, steps->n, steps->cap, step);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const struct s4d_points *points, int from, int to)
{
    double *v = s4d_malloc((size_t)(to - from) * sizeof *v);
    for (int i = from; i < to; i++)
        v[i - from] = points->v[i].median;
    qsort(v, (size_t)(to - from), sizeof *v, by_value);
    double median = (v[(to - from) / 2] + v[(to - from - 1) / 2]) / 2;
    free(v);
    return median;
}

/* Where a level ends and another begins: at a change (a part), or where a person said so (NAN). */
struct cut {
    int at;
    double change;
};
struct cuts {
    struct cut *v;
    int n, cap;
};

/* The nights [from, to), none of which but the first restarts the history. */
static int judge(struct cuts *cuts, const struct s4d_points *points, int from, int to,
                 const struct s4d_change_options *options, struct s4d_error *err)
{
    struct s4d_points slice = {
        .metric = points->metric, .name = points->name, .v = points->v + from, .n = to - from};
    struct s4d_level *levels = s4d_malloc((size_t)slice.n * sizeof *levels);
    struct s4d_change *v = s4d_malloc((size_t)slice.n * sizeof *v);
    int first, n = s4d_levels(&slice, levels, &first),
               found = s4d_change_points(levels, n, options, v, err);
    for (int i = 0; i < found; i++)
        if (v[i].confirmed) {
            struct cut cut = {from + v[i].at, v[i].part};
            s4d_push(cuts->v, cuts->n, cuts->cap, cut);
        }
    free(levels);
    free(v);
    return found < 0 ? -1 : 0;
}

static int by_place(const void *a, const void *b)
{
    return ((const struct cut *)a)->at - ((const struct cut *)b)->at;
}

/* Windows of the verdict's length from the last night backwards; a restart ends one early. */
static int judge_windows(struct cuts *cuts, const struct s4d_points *points,
                         const struct s4d_verdict_options *verdict, struct s4d_error *err)
{
    struct s4d_change_options options = verdict->change;
    options.magnitude = fmax(options.magnitude, points->metric->magnitude);
    int rc = 0;
    for (int to = points->n, from; to > 0 && rc == 0; to = from) {
        from = to > verdict->window ? to - verdict->window : 0;
        for (int i = from; i < to; i++)
            if (points->v[i].restart)
                from = i;
        rc = judge(cuts, points, from, to, &options, err);
        if (points->v[from].restart && from > 0) {
            struct cut cut = {from, NAN};
            s4d_push(cuts->v, cuts->n, cuts->cap, cut);
        }
    }
    if (cuts->n > 0)
        qsort(cuts->v, (size_t)cuts->n, sizeof *cuts->v, by_place);
    return rc;
}

static void measured(struct steps *steps, const struct s4d_points *points, const struct cuts *cuts)
{
    int from = 0;
    double change = NAN;
    for (int i = 0; i <= cuts->n; i++) {
        int to = i < cuts->n ? cuts->v[i].at : points->n;
        add(steps, points, from, to, median_of(points, from, to), change);
        from = to;
        change = i < cuts->n ? cuts->v[i].change : NAN;
    }
}

/* Any difference is another level. */
static void simulated_steps(struct steps *steps, const struct s4d_points *points)
{
    for (int i = 0, from = 0; i < points->n; i++)
        if (i + 1 == points->n || points->v[i + 1].median != points->v[i].median) {
            double change =
                from > 0 ? points->v[from].median / points->v[from - 1].median - 1 : NAN;
            add(steps, points, from, i + 1, points->v[i].median, change);
            from = i + 1;
        }
}

int s4d_steps_of(const struct s4d_points *points, bool simulated,
                 const struct s4d_verdict_options *options, struct s4d_step **steps,
                 struct s4d_error *err)
{
    struct steps s = {0};
    struct cuts cuts = {0};
    int rc = 0;
    if (simulated)
        simulated_steps(&s, points);
    else if ((rc = judge_windows(&cuts, points, options, err)) == 0)
        measured(&s, points, &cuts);
    free(cuts.v);
    *steps = s.v;
    return rc ? -1 : s.n;
}
