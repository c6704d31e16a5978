/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d workloads: the models that are known; with a name, every value of it and its source. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "support/file.h"
#include "support/record.h"
#include "support/units.h"
#include "workloads/workload.h"

struct config {
    bool json;
};

static const struct s4d_option options[] = {
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, json),
     .help = "print a record for each, one JSON line"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{"Options", options, 0}, {NULL, NULL, 0}};

/* The keys of the file, what follows from them, and what identifies it. */
static json_t *record_of(const struct s4d_workload *w)
{
    json_t *record = json_object();
    json_object_set_new(record, "kind", json_string("workload"));
    s4d_workload_record(w, record);
    json_object_set_new(record, "parameters",
                        json_integer((json_int_t)s4d_workload_parameters(&w->model)));
    json_object_set_new(record, "hash", json_string(w->hash));
    return record;
}

static void print_heads(void)
{
    printf("# %-18s %15s %6s %7s %6s %7s %8s %6s\n", "name", "parameters", "layers", "hidden",
           "heads", "ffn", "vocab", "seq");
}

static void print_line(const struct s4d_workload *w)
{
    const struct s4d_model *m = &w->model;
    printf("  %-18s %15.0f %6d %7d %6d %7d %8d %6d\n", m->name, s4d_workload_parameters(m),
           m->num_layers, m->hidden_size, m->num_attention_heads, m->ffn_hidden_size, m->vocab_size,
           m->seq_length);
}

static void print_value(const json_t *value)
{
    char text[64];
    if (json_is_string(value))
        printf("%s\n", json_string_value(value));
    else if (json_is_integer(value))
        printf("%lld\n", (long long)json_integer_value(value));
    else if (json_is_real(value))
        printf("%s\n", s4d_format_number(json_real_value(value), text, sizeof text));
    else
        printf("%s\n", json_is_true(value) ? "true" : json_is_false(value) ? "false" : "none");
}

static void print_all(const struct s4d_workload *w)
{
    json_t *record = record_of(w);
    const char *key;
    json_t *value;
    json_object_foreach(record, key, value)
    {
        if (strcmp(key, "kind") == 0)
            continue;
        printf("%-20s ", key);
        print_value(value);
    }
    printf("%-20s %s\n", "file", w->file);
    json_decref(record);
}

static int print_record(const struct s4d_workload *w, int argc, char **argv, struct s4d_error *err)
{
    json_t *record = record_of(w);
    json_object_set_new(record, "provenance", s4d_provenance(argc, argv));
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static int list(bool json, int argc, char **argv, struct s4d_error *err)
{
    char **names;
    int n = s4d_workload_names(&names), rc = 0;
    if (!json)
        print_heads();
    for (int i = 0; i < n && !rc; i++) {
        struct s4d_workload w;
        rc = s4d_workload_load(&w, names[i], err);
        if (!rc && json)
            rc = print_record(&w, argc, argv, err);
        else if (!rc)
            print_line(&w);
        s4d_workload_free(&w);
    }
    s4d_names_free(names, n);
    return rc;
}

static int show(const char *name, bool json, int argc, char **argv, struct s4d_error *err)
{
    struct s4d_workload w;
    if (s4d_workload_load(&w, name, err))
        return -1;
    int rc = json ? print_record(&w, argc, argv, err) : 0;
    if (!json)
        print_all(&w);
    s4d_workload_free(&w);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config config = {.json = false};
    struct s4d_texts names = {.n = 0};
    struct s4d_error err;
    int rc = s4d_options_argv(
        groups, "Lists the models that can be trained. With a NAME (or a file): all of its values.",
        argc, argv, &config, &names, &err);
    if (!rc && names.n == 0)
        rc = list(config.json, argc, argv, &err);
    for (int i = 0; !rc && i < names.n; i++)
        rc = show(names.v[i], config.json, argc, argv, &err);
    s4d_texts_free(&names);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_workloads = {
    .name = "workloads",
    .summary = "the models that can be trained, and every value of one",
    .run = run,
    .options = groups,
    .names = "workloads",
};
