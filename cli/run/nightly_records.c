/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 of a night writes down, and what it finds written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/run/nightly.h"
#include "real/host_class.h"
#include "support/memory.h"
#include "support/progress.h"
#include "support/record.h"

double s4d_nightly_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *name_of(const struct s4d_nightly *n, int experiment)
{
    return experiment < 0 ? NULL : n->suite.v[experiment].name;
}

static void add_suite(const struct s4d_nightly *n, json_t *record, int experiment, int repeat)
{
    json_t *suite = json_pack("{s:s, s:s?, s:s}", "name", n->suite.name, "experiment",
                              name_of(n, experiment), "night", n->night);
    if (repeat > 0) {
        json_object_set_new(suite, "repeat", json_integer(repeat));
        json_object_set_new(suite, "repeats", json_integer(n->suite.repeats));
    }
    json_t *provenance = json_incref(json_object_get(record, "provenance"));
    json_object_del(record, "provenance"); /* it comes last */
    json_object_set_new(record, "suite", suite);
    if (provenance)
        json_object_set_new(record, "provenance", provenance);
}

int s4d_nightly_keep(struct s4d_nightly *n, json_t *record, int experiment, int repeat,
                     struct s4d_error *err)
{
    add_suite(n, record, experiment, repeat);
    return s4d_suite_log_add(&n->log, record, err);
}

static json_t *failure_inputs(const struct s4d_nightly *n, int experiment)
{
    const struct s4d_train_config *c = n->suite.v[experiment].config;
    const char *backend = s4d_backend_names[c->backend];
    char grid[64] = "auto";
    char *host_class = s4d_host_class(c->host_class, backend, n->world->local_size, n->world->host);
    if (c->schedule.grid.given && !c->schedule.grid.automatic)
        s4d_grid_text(&c->schedule.grid.grid, grid, sizeof grid);
    json_t *record = json_object();
    json_object_set_new(record, "kind", json_string("failure"));
    json_object_set_new(record, "model_version", json_string(s4d_model_version));
    json_object_set_new(record, "backend", json_string(backend));
    json_object_set_new(record, "host_class", json_string(host_class));
    json_object_set_new(record, "workload", json_pack("{s:s}", "name", c->workload));
    json_object_set_new(record, "grid", json_string(grid));
    free(host_class);
    return record;
}

static json_t *failure_of(const struct s4d_nightly *n, int experiment, int repeat,
                          const struct s4d_error *why, bool started, bool interrupted)
{
    bool ran = started && n->now.experiment == experiment;
    json_t *record = failure_inputs(n, experiment);
    json_object_set_new(record, "exit", json_integer((int)why->exit));
    json_object_set_new(record, "where", json_string(why->where));
    json_object_set_new(record, "message", json_string(why->text));
    json_object_set_new(record, "hint", json_string(why->hint));
    json_object_set_new(record, "started", json_boolean(started));
    json_object_set_new(record, "interrupted", json_boolean(interrupted));
    json_object_set_new(record, "ran_s", json_real(ran ? s4d_nightly_now_s() - n->now.began_s : 0));
    json_object_set_new(record, "provenance", s4d_provenance(n->argc, n->argv));
    add_suite(n, record, experiment, repeat);
    return record;
}

static void print_failure(const struct s4d_nightly *n, int experiment, int repeat,
                          const struct s4d_error *why, bool interrupted)
{
    char number[16] = "-";
    if (repeat > 0)
        snprintf(number, sizeof number, "%d", repeat);
    s4d_progress_end();
    printf("%-32s %3s/%-3d %s, exit %d: %s%s%s\n", name_of(n, experiment), number, n->suite.repeats,
           interrupted ? "INTERRUPTED" : "FAILED", (int)why->exit, why->where,
           why->where[0] ? ": " : "", why->text);
    fflush(stdout);
}

int s4d_nightly_fail(struct s4d_nightly *n, int experiment, int repeat, const struct s4d_error *why,
                     bool started, struct s4d_error *err)
{
    json_t *record = failure_of(n, experiment, repeat, why, started, false);
    int rc = s4d_suite_log_add(&n->log, record, err);
    json_decref(record);
    print_failure(n, experiment, repeat, why, false);
    return rc;
}

int s4d_nightly_now(struct s4d_nightly *n, int experiment, int repeat, struct s4d_error *err)
{
    json_t *spent = json_object();
    for (int e = 0; e < n->suite.n; e++)
        json_object_set_new(spent, name_of(n, e), json_real(n->spent_s[e]));
    json_t *state = json_pack("{s:s, s:s, s:f, s:s?, s:i, s:o}", "suite", n->suite.name, "night",
                              n->night, "began_s", n->began_s, "experiment", name_of(n, experiment),
                              "repeat", repeat, "spent_s", spent);
    n->now = (struct s4d_run_of){experiment, repeat, s4d_nightly_now_s()};
    int rc = s4d_suite_log_run(&n->log, state, err);
    json_decref(state);
    return rc;
}

static int count(const struct s4d_nightly *n, const char *kind, int experiment, int repeat,
                 enum s4d_suite_which which)
{
    return s4d_suite_log_count(&n->log, n->suite.name, n->night, kind, name_of(n, experiment),
                               repeat, which);
}

/* An experiment that has failed fails again: over for this night, unless it was interrupted from
 * outside. One that is interrupted every time may be what ends the job. */
bool s4d_nightly_wants(const struct s4d_nightly *n, int experiment, int repeat)
{
    enum { MOST_TIMES = 2 };
    return count(n, "failure", experiment, 0, S4D_SUITE_WHOLE) == 0 &&
           count(n, "failure", experiment, repeat, S4D_SUITE_INTERRUPTED) < MOST_TIMES &&
           count(n, "train", experiment, repeat, S4D_SUITE_WHOLE) == 0;
}

struct s4d_nightly_count s4d_nightly_count(const struct s4d_nightly *n)
{
    struct s4d_nightly_count c = {0, 0, 0};
    for (int e = 0; e < n->suite.n; e++) {
        for (int repeat = 1; repeat <= n->suite.repeats; repeat++)
            c.runs += count(n, "train", e, repeat, S4D_SUITE_WHOLE) > 0;
        bool failed = count(n, "failure", e, 0, S4D_SUITE_WHOLE) > 0;
        for (int repeat = 1; repeat <= n->suite.repeats && !failed; repeat++)
            failed = count(n, "train", e, repeat, S4D_SUITE_WHOLE) == 0 &&
                     count(n, "failure", e, repeat, S4D_SUITE_INTERRUPTED) > 0;
        c.failed += failed;
    }
    size_t i;
    json_t *r;
    json_array_foreach(n->log.records, i, r)
    {
        const json_t *suite = json_object_get(r, "suite");
        const char *name = json_string_value(json_object_get(suite, "name"));
        const char *night = json_string_value(json_object_get(suite, "night"));
        c.out_of_time += name && night && strcmp(name, n->suite.name) == 0 &&
                         strcmp(night, n->night) == 0 &&
                         json_is_false(json_object_get(r, "interrupted")) &&
                         json_integer_value(json_object_get(r, "exit")) == S4D_EXIT_TIMEOUT;
    }
    return c;
}

bool s4d_nightly_named(const struct s4d_nightly *n, int experiment)
{
    const struct s4d_texts *only = &n->config->only;
    for (int i = 0; i < only->n; i++)
        if (strcmp(only->v[i], name_of(n, experiment)) == 0)
            return true;
    return only->n == 0;
}

static bool is_wanted(const struct s4d_nightly *n, int experiment)
{
    bool named = s4d_nightly_named(n, experiment);
    for (int repeat = 1; named && repeat <= n->suite.repeats; repeat++)
        if (s4d_nightly_wants(n, experiment, repeat))
            return true;
    return false;
}

/* A launcher that was asked to end the job kills it within a second: one write for all. */
void s4d_nightly_ending(void *self, const struct s4d_error *why)
{
    struct s4d_nightly *n = self;
    const struct s4d_error asked = {.exit = S4D_EXIT_TIMEOUT, .text = "ended by SIGTERM"};
    struct s4d_error err;
    int ran = n->now.experiment;
    if (n->world->rank != 0 || !n->log.file || !s4d_suite_log_last(&n->log))
        return;
    json_t *records = json_array();
    for (int e = 0; e < n->suite.n; e++)
        if (e == ran || (!why && is_wanted(n, e)))
            json_array_append_new(records, failure_of(n, e, e == ran ? n->now.repeat : 0,
                                                      why ? why : &asked, e == ran, !why));
    if (s4d_suite_log_add_all(&n->log, records, &err))
        s4d_error_print(&err);
    json_decref(records);
    for (int e = 0; e < n->suite.n; e++)
        if (e == ran || (!why && is_wanted(n, e)))
            print_failure(n, e, e == ran ? n->now.repeat : 0, why ? why : &asked, !why);
}

int s4d_nightly_take_up(struct s4d_nightly *n, struct s4d_error *err)
{
    const struct s4d_error gone = {.exit = S4D_EXIT_DEVICE,
                                   .text = "the job ended while it ran, without a word"};
    json_t *state = s4d_suite_log_state(&n->log);
    const char *suite = json_string_value(json_object_get(state, "suite"));
    const char *night = json_string_value(json_object_get(state, "night"));
    const char *name = json_string_value(json_object_get(state, "experiment"));
    int repeat = (int)json_integer_value(json_object_get(state, "repeat")), rc = 0;
    if (suite && night && strcmp(suite, n->suite.name) == 0 && strcmp(night, n->night) == 0) {
        n->began_s = json_number_value(json_object_get(state, "began_s"));
        for (int e = 0; e < n->suite.n; e++)
            n->spent_s[e] = json_number_value(
                json_object_get(json_object_get(state, "spent_s"), name_of(n, e)));
        for (int e = 0; name && e < n->suite.n && !rc; e++)
            if (strcmp(name_of(n, e), name) == 0 && s4d_nightly_wants(n, e, repeat) &&
                count(n, "failure", e, repeat, S4D_SUITE_ANY) == 0)
                rc = s4d_nightly_fail(n, e, repeat, &gone, true, err);
    }
    json_decref(state);
    return rc;
}
