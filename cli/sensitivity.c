/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job_options.h"
#include "sim/sensitivity.h"
#include "support/nearest.h"
#include "support/processors.h"
#include "support/quote.h"
#include "support/record.h"
#include "support/units.h"

#define AT(field) offsetof(struct s4d_sensitivity_options, field)
const struct s4d_option s4d_sensitivity_options[] = {
    {.name = "sensitivity",
     .type = S4D_OPT_FLAG,
     .offset = AT(wanted),
     .help = "halve and double each entry of the machine by itself, simulate a job again, and list "
             "what moves its iteration time"},
    S4D_OPTION_WORKLOAD(AT(workload)),
    S4D_OPTION_GPUS(AT(gpus)),
    {.name = "tag",
     .argument = "TAG",
     .type = S4D_OPT_LIST,
     .offset = AT(tags),
     .help = "only entries with this tag (assumed, fitted, ...); may be given several times"},
    S4D_OPTION_WORKERS(AT(workers)),
    {.name = NULL},
};

static const char *const variation_names[S4D_VARIED] = {"halved", "doubled"};
/* Below this part of the iteration an entry is said to have no effect. */
static const double least_effect = 1e-4;

static int read_tags(const struct s4d_texts *texts, unsigned *tags, struct s4d_error *err)
{
    *tags = texts->n ? 0 : ~0U;
    for (int i = 0; i < texts->n; i++) {
        int tag = 0;
        while (tag < S4D_TAGS && strcmp(s4d_tag_names[tag], texts->v[i]) != 0)
            tag++;
        if (tag == S4D_TAGS) {
            s4d_fail(err, S4D_EXIT_USAGE, "--tag",
                     "expected read, secondary, derived, measured, fitted or assumed, found %s",
                     s4d_quote(texts->v[i]).text);
            return s4d_hint_nearest(err, texts->v[i], s4d_tag_names, S4D_TAGS);
        }
        *tags |= 1U << tag;
    }
    return 0;
}

static double change_percent(const struct s4d_sensitivity *r, const struct s4d_varied *v)
{
    return 100 * (v->iteration_s / r->base.run.iteration_time_s - 1);
}

static json_t *entry_record(const struct s4d_sensitivity *r, const struct s4d_sensitive *e)
{
    json_t *entry = json_pack("{s:s, s:s, s:s, s:f}", "key", e->key, "tag", s4d_tag_names[e->tag],
                              "source", e->source, "effect_percent", 100 * e->effect);
    if (isfinite(e->value))
        json_object_set_new(entry, "value", json_real(e->value));
    for (int i = 0; i < S4D_VARIED; i++) {
        const struct s4d_varied *v = &e->varied[i];
        json_t *varied = isfinite(v->iteration_s)
                             ? json_pack("{s:f, s:f}", "iteration_time_s", v->iteration_s,
                                         "change_percent", change_percent(r, v))
                         : v->same ? json_pack("{s:s}", "unchanged", "at its limit")
                                   : json_pack("{s:s}", "error", v->why.text);
        json_object_set_new(entry, variation_names[i], varied);
    }
    return entry;
}

static int print_record(const struct s4d_simulation *s, const struct s4d_sensitivity *r,
                        json_t *provenance, struct s4d_error *err)
{
    json_t *record = s4d_simulation_record(s, &r->base), *entries = json_array();
    for (int i = 0; i < r->n; i++)
        json_array_append_new(entries, entry_record(r, &r->entry[i]));
    json_object_set_new(record, "kind", json_string("sensitivity"));
    json_object_set_new(record, "sensitivity", entries);
    json_object_set(record, "provenance", provenance);
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static void print_inputs(const struct s4d_simulation *s, const struct s4d_sensitivity *r)
{
    char grid[64], time[32];
    printf(
        "# machine %s (%s)  workload %s  gpus %d  grid %s%s  global batch %d  micro-batch %d%s\n",
        s->machine->name, s->machine->hash, s->workload->model.name, s->gpus,
        s4d_grid_text(&r->base.grid, grid, sizeof grid), s->grid_auto ? " (chosen once, kept)" : "",
        s->options.global_batch, r->base.micro_batch,
        s->options.micro_batch ? "" : " (chosen anew each time)");
    printf(
        "# as the machine says: %s an iteration. Each entry halved and doubled by itself; curves "
        "and tables as a whole, parts up to 1.\n",
        s4d_format_time(r->base.run.iteration_time_s, time, sizeof time));
}

static void print_change(const struct s4d_sensitivity *r, const struct s4d_varied *v)
{
    if (isfinite(v->iteration_s))
        printf(" %+9.2f", change_percent(r, v));
    else
        printf(" %9s", v->same ? "-" : "refused");
}

static void print_table(const struct s4d_simulation *s, const struct s4d_sensitivity *r)
{
    char value[32];
    int without = 0;
    print_inputs(s, r);
    printf("%-50s %-9s %12s %9s %9s\n", "entry", "tag", "value", "halved", "doubled");
    printf("%-50s %-9s %12s %9s %9s\n", "", "", "(SI units)", "(%)", "(%)");
    for (int i = 0; i < r->n; i++) {
        const struct s4d_sensitive *e = &r->entry[i];
        if (e->effect < least_effect) {
            without++;
            continue;
        }
        snprintf(value, sizeof value, "%g", e->value);
        printf("%-50s %-9s %12s", e->key, s4d_tag_names[e->tag],
               isfinite(e->value) ? value : "a table");
        for (int k = 0; k < S4D_VARIED; k++)
            print_change(r, &e->varied[k]);
        printf("\n");
    }
    printf("# the other %d of %d move the iteration by less than %g %%, or not at all\n", without,
           r->n, 100 * least_effect);
}

/* What no number stands for. */
static void print_refused(const struct s4d_sensitivity *r)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < S4D_VARIED; k++) {
            const struct s4d_varied *v = &r->entry[i].varied[k];
            if (!isfinite(v->iteration_s) && !v->same)
                printf("# %s %s: %s%s%s\n", r->entry[i].key, variation_names[k], v->why.where,
                       v->why.where[0] ? ": " : "", v->why.text);
        }
}

int s4d_sensitivity_command(const struct s4d_machine *m, const struct s4d_scenario *scenario,
                            const struct s4d_sensitivity_options *o,
                            struct s4d_schedule_options *schedule, bool json, int argc, char **argv,
                            struct s4d_error *err)
{
    struct s4d_workload workload;
    struct s4d_sensitivity result;
    struct s4d_simulation s = {
        .machine = m, .scenario = scenario, .workload = &workload, .gpus = o->gpus, .fold = true};
    unsigned tags;
    s.workers = o->workers ? o->workers : s4d_processors();
    if (!o->workload || o->gpus == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, o->workload ? "--gpus" : "--workload",
                        "--sensitivity needs the job: --workload, --gpus, --grid, --global-batch");
    if (read_tags(&o->tags, &tags, err) ||
        s4d_schedule_options_resolve(schedule, o->gpus, &s.grid, &s.grid_auto, err) ||
        s4d_workload_load(&workload, o->workload, err))
        return -1;
    s.options = schedule->options;
    int rc = s4d_sensitivity(&s, tags, &result, err);
    if (rc == 0) {
        json_t *provenance = s4d_provenance(argc, argv);
        if (json) {
            rc = print_record(&s, &result, provenance, err);
        } else {
            s4d_provenance_print(provenance, stdout);
            print_table(&s, &result);
            print_refused(&result);
        }
        json_decref(provenance);
        s4d_sensitivity_free(&result);
    }
    s4d_workload_free(&workload);
    return rc;
}
