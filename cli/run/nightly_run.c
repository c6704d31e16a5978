/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a night: what comes next, whether there is time for it, and how it went. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/nightly.h"
#include "cli/run/rates.h"
#include "support/progress.h"
#include "support/units.h"

static double number(const json_t *record, const char *key)
{
    const json_t *v = json_object_get(record, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The record of a training, which may have been interrupted. */
static int keep(void *self, json_t *record, struct s4d_error *err)
{
    struct s4d_nightly *n = self;
    if (s4d_nightly_keep(n, record, n->now.experiment, n->now.repeat, err))
        return -1;
    if (json_is_true(json_object_get(record, "interrupted")))
        return 0;
    s4d_progress_end();
    printf("%-32s %3d/%-3d %12.6f %14.2f %8.0f\n", n->suite.v[n->now.experiment].name,
           n->now.repeat, n->suite.repeats, number(record, "iteration_time_s"),
           1e-9 * number(record, "flops_per_s"), number(record, "slowest_rank"));
    fflush(stdout);
    return 0;
}

/* What rank 0 has decided about a repeat of an experiment. */
struct step {
    double run, rates; /* whether; rates: its operations are measured first */
    double limit_s;    /* 0: none */
};

/* Seconds that are left for a run, of a limit; a run that will not fit is refused in words. */
static int room(struct s4d_nightly *n, int e, int repeat, const char *whose, double limit_s,
                double spent_s, double *left_s, struct s4d_error *err)
{
    char limit[32], takes[32];
    struct s4d_error why;
    if (limit_s <= 0)
        return 0;
    *left_s = *left_s > 0 ? fmin(*left_s, limit_s - spent_s) : limit_s - spent_s;
    if (spent_s + n->last_s[e] < limit_s)
        return 0;
    s4d_format_time(limit_s, limit, sizeof limit);
    s4d_format_time(n->last_s[e], takes, sizeof takes);
    if (n->last_s[e] > 0)
        s4d_fail(&why, S4D_EXIT_TIMEOUT, "",
                 "%s time limit of %s has no room for repeat %d: the last one took %s", whose,
                 limit, repeat, takes);
    else
        s4d_fail(&why, S4D_EXIT_TIMEOUT, "", "%s time limit of %s has passed", whose, limit);
    return s4d_nightly_fail(n, e, n->last_s[e] > 0 ? repeat : 0, &why, n->last_s[e] > 0, err) ? -1
                                                                                              : 1;
}

/* On rank 0. 0, or -1 (exit 74). */
static int decide(struct s4d_nightly *n, int e, int repeat, struct step *step,
                  struct s4d_error *err)
{
    const struct s4d_suite *s = &n->suite;
    *step = (struct step){0, 0, 0};
    if (!s4d_nightly_named(n, e) || !s4d_nightly_wants(n, e, repeat))
        return 0;
    int no = room(n, e, repeat, "the night's", n->time_limit_s, s4d_nightly_now_s() - n->began_s,
                  &step->limit_s, err);
    if (!no)
        no = room(n, e, repeat, "its", s->v[e].time_limit_s, n->spent_s[e], &step->limit_s, err);
    if (no)
        return no < 0 ? -1 : 0;
    step->run = 1;
    step->rates = s->rates && s4d_suite_log_count(&n->log, s->name, n->night, "rates", s->v[e].name,
                                                  0, S4D_SUITE_ANY) == 0;
    return s4d_nightly_now(n, e, repeat, err);
}

static int measure_rates(struct s4d_nightly *n, struct s4d_train *t, int e)
{
    json_t *record;
    struct s4d_error err;
    int code = s4d_rates_measure(t, &record);
    if (!code)
        code = s4d_world_agree(n->world,
                               record && s4d_nightly_keep(n, record, e, 0, &err) ? &err : NULL);
    json_decref(record);
    return code;
}

static int run_once(struct s4d_nightly *n, int e, const struct step *step)
{
    const struct s4d_train_config *c = n->suite.v[e].config;
    struct s4d_train t = {.config = c,
                          .argc = n->argc,
                          .argv = n->argv,
                          .world = n->world,
                          .backend = s4d_backend_of(c->backend),
                          .hooks = {keep, n, n->world->rank == 0 ? step->limit_s : 0}};
    int code = s4d_train_prepare(&t);
    if (!code && step->rates > 0)
        code = measure_rates(n, &t, e);
    if (!code)
        code = s4d_train_run(&t);
    s4d_train_clean_up(&t);
    return code;
}

/* What is wrong stands in a file. */
static void locate(const struct s4d_nightly *n, int e, struct s4d_error *why)
{
    const struct s4d_yaml_node *node = n->suite.v[e].node;
    char where[sizeof why->where];
    why->exit = why->exit == S4D_EXIT_USAGE ? S4D_EXIT_DATA : why->exit;
    snprintf(where, sizeof where, "%.200s:%d: %.100s%s%.100s", node->file, node->line,
             n->suite.v[e].name, why->where[0] ? ": " : "", why->where);
    memcpy(why->where, where, sizeof where);
}

/* A repeat of an experiment; 0, or the exit code with which the night ends on all ranks. */
static int step(struct s4d_nightly *n, int e, int repeat)
{
    struct s4d_world *w = n->world;
    struct s4d_error err;
    struct step s;
    MPI_Request request;
    int code = s4d_world_agree(w, w->rank == 0 && decide(n, e, repeat, &s, &err) ? &err : NULL);
    if (code)
        return code;
    MPI_Ibcast(&s, sizeof s / sizeof(double), MPI_DOUBLE, 0, w->comm, &request);
    s4d_world_wait(&request);
    if (s.run == 0)
        return 0;
    code = run_once(n, e, &s);
    int rc = 0;
    if (w->rank == 0) {
        n->last_s[e] = s4d_nightly_now_s() - n->now.began_s;
        n->spent_s[e] += n->last_s[e];
        locate(n, e, &n->failed);
        rc = code ? s4d_nightly_fail(n, e, repeat, &n->failed, true, &err) : 0;
        rc = rc || s4d_nightly_now(n, -1, 0, &err);
    }
    return s4d_world_agree(w, rc ? &err : NULL);
}

int s4d_nightly_run(struct s4d_nightly *n)
{
    int code = 0, total = n->suite.n * n->suite.repeats;
    for (int i = 0; i < total && !code; i++) {
        if (n->world->rank == 0)
            s4d_progress(n->suite.v[i % n->suite.n].name, i, total);
        code = step(n, i % n->suite.n, i / n->suite.n + 1);
    }
    if (n->world->rank == 0)
        s4d_progress_end();
    return code;
}
