/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program_hash.h"
#include "sim/isolate.h"
#include "support/memory.h"
#include "support/option_field.h" /* for: s4d_option_key */
#include "support/record.h"
#include "support/units.h"

static bool is_in(const char *const *list, const char *key)
{
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

char **s4d_run_keys(const char *const *but)
{
    struct s4d_texts keys = {0};
    for (const struct s4d_option_group *g = s4d_run_groups; g->options != NULL; g++)
        for (const struct s4d_option *o = g->options; o->name != NULL; o++) {
            char key[80];
            if (!is_in(but, s4d_option_key(o, key, sizeof key)))
                s4d_texts_add(&keys, key);
        }
    s4d_push(keys.v, keys.n, keys.cap, NULL);
    return keys.v;
}

void s4d_run_keys_free(char **keys)
{
    for (int i = 0; keys != NULL && keys[i] != NULL; i++)
        free(keys[i]);
    free(keys);
}

/* Where a key stands: in the last mapping that has it. NULL: in none. */
static const struct s4d_yaml_node *place_of(const struct s4d_sweep_entry *e, const char *key)
{
    for (int i = e->n_mappings - 1; i >= 0; i--) {
        const struct s4d_yaml_node *at = s4d_yaml_get(e->mapping[i], key);
        if (at != NULL)
            return at;
    }
    return NULL;
}

/* An error of the command line ("--grid") becomes one of the file's line that says it. */
static int relocate(const struct s4d_sweep_entry *e, const struct s4d_error *why,
                    struct s4d_error *err)
{
    char key[80], *colon;
    if (strncmp(why->where, "--", 2) != 0) {
        *err = *why;
        return -1;
    }
    snprintf(key, sizeof key, "%.79s", why->where + 2);
    if ((colon = strchr(key, ':')) != NULL)
        *colon = '\0';
    for (char *c = key; *c != '\0' && *c != ' '; c++)
        *c = *c == '-' ? '_' : *c;
    char *name = strncmp(key, "set ", 4) == 0 ? key + 4 : NULL; /* of the machine */
    if (name)
        name[-1] = '\0';
    const struct s4d_yaml_node *at = place_of(e, key);
    if (at != NULL && name)
        s4d_yaml_fail(at, err, "%s: %s", name, why->text);
    else if (at != NULL)
        s4d_yaml_fail(at, err, "%s", why->text);
    else
        s4d_yaml_fail(e->node, err, "%s: %s", key, why->text);
    return why->hint[0] != '\0' ? s4d_hint(err, "%s", why->hint) : -1;
}

static bool names(const struct s4d_yaml_node *setting, const char *name)
{
    const char *found = setting->text != NULL ? strstr(setting->text, name) : NULL;
    return found != NULL && found > setting->text && found[-1] == '.' && found[strlen(name)] == '=';
}

/* The list of settings that names this part of the machine. */
static const struct s4d_yaml_node *set_of(const struct s4d_sweep_entry *e, const char *name)
{
    for (int i = e->n_mappings - 1; i >= 0; i--) {
        const struct s4d_yaml_node *set = s4d_yaml_get(e->mapping[i], "set");
        bool found = set != NULL && names(set, name);
        for (int k = 0; set != NULL && k < set->n && !found; k++)
            found = names(set->child[k], name);
        if (found)
            return set;
    }
    return e->node;
}

/* Names of links that there are not are found later: they are faults of the file, too. */
static void place_differences(struct s4d_trial *t)
{
    struct s4d_differences *d = &t->in.scenario.differences;
    struct s4d_error place;
    for (int i = 0; i < d->n; i++) {
        if (d->v[i].exit != S4D_EXIT_USAGE) /* of a file of differences, which it names */
            continue;
        s4d_yaml_fail(set_of(t->entry, d->v[i].name), &place, "%s", "");
        free(d->v[i].where);
        d->v[i].where = s4d_asprintf("%s: %s", place.where, d->v[i].name);
        d->v[i].exit = S4D_EXIT_DATA;
    }
}

static void make_key(struct s4d_trial *t)
{
    json_t *options = json_object(), *scenario = s4d_scenario_record(&t->in.scenario);
    char **keys = s4d_run_keys(NULL);
    for (int i = 0; i < t->entry->n_mappings; i++)
        for (int k = 0; keys[k] != NULL; k++) {
            const struct s4d_yaml_node *node = s4d_yaml_get(t->entry->mapping[i], keys[k]);
            if (node != NULL && node->text != NULL)
                json_object_set_new(options, keys[k], json_string(node->text));
        }
    s4d_run_keys_free(keys);
    json_t *set = json_array();
    for (int i = 0; i < t->options.set.n; i++)
        json_array_append_new(set, json_string(t->options.set.v[i]));
    json_object_set_new(options, "set", set);
    char *text = json_dumps(options, JSON_SORT_KEYS | JSON_COMPACT);
    const char *of_scenario = json_string_value(json_object_get(scenario, "hash"));
    char *all = s4d_asprintf("%s %s %s %s %s", t->in.machine.hash, t->in.workload.hash,
                             of_scenario ? of_scenario : "-", text, s4d_model_version);
    s4d_hash(all, strlen(all), t->key);
    free(all);
    free(text);
    json_decref(scenario);
    json_decref(options);
}

static int load(struct s4d_trial *t, struct s4d_error *err)
{
    const struct s4d_sweep_entry *e = t->entry;
    t->options = s4d_run_options_default();
    for (int i = 0; i < e->n_mappings; i++)
        if (s4d_options_yaml(s4d_run_groups, e->mapping[i], e->skip[i], &t->options, err))
            return -1;
    struct s4d_error why = {0};
    if (s4d_run_inputs_load(&t->in, &t->options, &why)) {
        relocate(e, &why, err);
        err->exit = S4D_EXIT_DATA; /* whatever it was on a command line */
        return -1;
    }
    place_differences(t);
    make_key(t);
    return 0;
}

int s4d_trials_load(struct s4d_trials *t, const struct s4d_sweep *sweep, json_t *provenance,
                    struct s4d_error *err)
{
    *t = (struct s4d_trials){.provenance = provenance};
    t->v = s4d_calloc((size_t)sweep->n, sizeof *t->v);
    if (s4d_program_hash(t->program, err))
        return -1;
    for (; t->n < sweep->n; t->n++) {
        t->v[t->n].entry = &sweep->v[t->n];
        if (load(&t->v[t->n], err)) {
            t->n++;
            return -1;
        }
    }
    return 0;
}

void s4d_trials_free(struct s4d_trials *t)
{
    for (int i = 0; i < t->n; i++) {
        s4d_options_free(s4d_run_groups, &t->v[i].options);
        s4d_run_inputs_free(&t->v[i].in);
    }
    free(t->v);
    json_decref(t->provenance);
    *t = (struct s4d_trials){.n = 0};
}

static bool has(const json_t *experiment, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(experiment, key));
    return text != NULL && strcmp(text, value) == 0;
}

json_t *s4d_trial_find(const struct s4d_trials *t, int i, const struct s4d_records *records,
                       bool program)
{
    for (int k = records->n - 1; k >= 0; k--) {
        const json_t *e = json_object_get(records->v[k], "experiment");
        if (has(e, "key", t->v[i].key) && has(e, "name", t->v[i].entry->name) &&
            (!program || has(e, "program", t->program)))
            return records->v[k];
    }
    return NULL;
}

json_t *s4d_trial_of_others(const struct s4d_trials *t, int i, const struct s4d_records *records)
{
    const struct s4d_sweep_entry *entry = t->v[i].entry;
    for (int k = 0; k < records->n; k++) {
        const json_t *e = json_object_get(records->v[k], "experiment");
        bool one_of_many = json_object_get(records->v[k], "tune") != NULL; /* grids of a point */
        if (one_of_many || !has(e, "key", t->v[i].key) || !has(e, "program", t->program))
            continue;
        json_t *record = json_deep_copy(records->v[k]),
               *own = json_object_get(record, "experiment");
        json_object_set_new(own, "name", json_string(entry->name));
        if (entry->series != NULL)
            json_object_set_new(own, "series", json_string(entry->series));
        return record;
    }
    return NULL;
}

static void note_entry(void *context, const char *key, enum s4d_tag tag, const char *source,
                       double value)
{
    if (tag != S4D_TAG_FITTED && tag != S4D_TAG_ASSUMED)
        return;
    json_t *entry = json_pack("{s:s, s:s, s:s}", "key", key, "tag", s4d_tag_names[tag], "source",
                              source != NULL ? source : "");
    if (isinf(value))
        json_object_set_new(entry, "value", json_string("unlimited"));
    else if (isfinite(value))
        json_object_set_new(entry, "value", json_real(value));
    json_array_append_new(context, entry);
}

json_t *s4d_trial_experiment(const struct s4d_trials *t, const struct s4d_trial *trial)
{
    json_t *entries = json_array();
    s4d_machine_visit(&trial->in.machine, note_entry, entries);
    json_t *experiment =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:o}", "name", trial->entry->name, "key",
                  trial->key, "program", t->program, "workload", trial->options.workload, "gpus",
                  trial->options.gpus, "machine", trial->options.machine, "machine_hash",
                  trial->in.machine.hash, "machine_entries", entries);
    if (trial->entry->series != NULL)
        json_object_set_new(experiment, "series", json_string(trial->entry->series));
    return experiment;
}

/* The simulation's record, and in "experiment" how it is found and what a figure tells of it. */
static json_t *record_of(const struct s4d_trials *t, const struct s4d_trial *trial,
                         const struct s4d_result *result)
{
    json_t *record = s4d_simulation_record(&trial->in.simulation, result);
    json_object_set_new(record, "experiment", s4d_trial_experiment(t, trial));
    json_object_set(record, "provenance", t->provenance);
    return record;
}

struct running {
    const struct s4d_trials *t;
    int *which;
    int workers; /* of a trial */
    struct s4d_result *results;
    struct s4d_error *errors;
    bool *told;
    void (*done)(void *context, int trial, json_t *record, const struct s4d_error *err);
    void *context;
};

static int run_one(void *context, int index, void *result, struct s4d_error *err)
{
    const struct running *r = context;
    struct s4d_simulation s = r->t->v[r->which[index]].in.simulation;
    s.workers = r->workers;
    return s4d_simulate(&s, result, err);
}

static void ended(void *context, int index)
{
    struct running *r = context;
    int i = r->which[index];
    bool failed = r->errors[index].exit != S4D_EXIT_OK;
    r->told[index] = true;
    r->done(r->context, i, failed ? NULL : record_of(r->t, &r->t->v[i], &r->results[index]),
            &r->errors[index]);
}

/* A long one that starts last is what everybody waits for. */
static int *large_first(const struct s4d_trials *t, const int *which, int n)
{
    int *sorted = s4d_malloc((size_t)n * sizeof *sorted);
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && t->v[sorted[at - 1]].options.gpus < t->v[which[i]].options.gpus; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = which[i];
    }
    return sorted;
}

int s4d_trials_run(const struct s4d_trials *t, const int *which, int n, int workers,
                   void (*done)(void *context, int trial, json_t *record,
                                const struct s4d_error *err),
                   void *context)
{
    if (n == 0)
        return 0;
    struct running r = {.t = t, .done = done, .context = context};
    r.which = large_first(t, which, n);
    r.workers = workers > n ? workers / n : 1; /* the others try grids */
    r.results = s4d_calloc((size_t)n, sizeof *r.results);
    r.errors = s4d_calloc((size_t)n, sizeof *r.errors);
    r.told = s4d_calloc((size_t)n, sizeof *r.told);
    int failed =
        s4d_isolated(run_one, &r, n, workers, r.results, sizeof *r.results, r.errors, ended);
    for (int i = 0; i < n; i++)
        if (!r.told[i]) /* no process could be started for it */
            ended(&r, i);
    free(r.which);
    free(r.told);
    free(r.results);
    free(r.errors);
    return failed;
}

struct s4d_error s4d_trial_error(const struct s4d_trial *t, const struct s4d_error *why)
{
    const struct s4d_sweep_entry *e = t->entry;
    struct s4d_error shown = *why;
    if (shown.exit == S4D_EXIT_USAGE)
        shown.exit = S4D_EXIT_DATA;
    if (strncmp(why->where, e->node->file, strlen(e->node->file)) != 0)
        snprintf(shown.where, sizeof shown.where, "%.200s:%d: %.100s%s%.100s", e->node->file,
                 e->node->line, e->name, why->where[0] ? ": " : "", why->where);
    return shown;
}

void s4d_trial_print(const json_t *record, FILE *out)
{
    const json_t *e = json_object_get(record, "experiment");
    const char *name = json_string_value(json_object_get(e, "name"));
    const char *grid = json_string_value(json_object_get(record, "grid"));
    char time[32], rate[32];
    fprintf(out, "%11s an iteration %14s  grid %-12s  %s\n",
            s4d_format_time(json_number_value(json_object_get(record, "iteration_time_s")), time,
                            sizeof time),
            s4d_format_flops(json_number_value(json_object_get(record, "flops_per_s")), rate,
                             sizeof rate),
            grid ? grid : "?", name ? name : "?");
    fflush(out);
}
