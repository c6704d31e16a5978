/* SPDX-License-Identifier: Apache-2.0 */
/* Workload files: keys by table, then what the table cannot say (presence, divisibility, kinds). */
#include "workloads/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/layer.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/record.h"
#include "workloads/check.h"
#include "workloads/hf_config.h"

static int parse_word(const char *text, char *field, size_t size, struct s4d_error *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(text);
    if (n == 0 || n >= size || strspn(text, allowed) != n)
        return s4d_fail(err, S4D_EXIT_DATA, "",
                        "expected a name of 1 to %zu letters, digits, '-', '_' or '.', got %s",
                        size - 1, s4d_quote(text).text);
    memcpy(field, text, n + 1);
    return 0;
}

static int parse_name(const char *text, void *field, struct s4d_error *err)
{
    return parse_word(text, field, sizeof(((struct s4d_model *)NULL)->name), err);
}

static int parse_kind(const char *text, void *field, struct s4d_error *err)
{
    return parse_word(text, field, sizeof(((struct s4d_model *)NULL)->mlp), err);
}

static void format_word(const void *field, char *text, int size)
{
    snprintf(text, (size_t)size, "%s", (const char *)field);
}

#define MODEL(field) offsetof(struct s4d_workload, model.field)
#define INT(key, field, most, text)                                                                \
    {                                                                                              \
        .name = key, .type = S4D_OPT_INT, .offset = MODEL(field), .min = 1, .max = most,           \
        .help = text                                                                               \
    }
#define NUMBER(key, field, least, most, text)                                                      \
    {                                                                                              \
        .name = key, .type = S4D_OPT_NUMBER, .offset = MODEL(field), .min = least, .max = most,    \
        .help = text                                                                               \
    }
#define KIND(field, text)                                                                          \
    {                                                                                              \
        .name = #field, .type = S4D_OPT_PARSE, .offset = MODEL(field), .parse = parse_kind,        \
        .format = format_word, .help = text                                                        \
    }

static const struct s4d_option keys[] = {
    {.name = "name",
     .type = S4D_OPT_PARSE,
     .offset = MODEL(name),
     .parse = parse_name,
     .format = format_word,
     .help = "the file's name without .yaml"},
    {.name = "source",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct s4d_workload, source),
     .help = "which paper, which table"},
    INT("num-layers", num_layers, 10000, "transformer layers"),
    INT("hidden-size", hidden_size, 1 << 20, "width of the residual stream"),
    INT("num-attention-heads", num_attention_heads, 1 << 16, "query heads"),
    INT("num-key-value-heads", num_key_value_heads, 1 << 16, "key and value heads"),
    INT("ffn-hidden-size", ffn_hidden_size, 1 << 22, "inner width of the MLP"),
    INT("vocab-size", vocab_size, 1 << 24, "tokens of the vocabulary"),
    INT("seq-length", seq_length, 1 << 24, "tokens of a sequence"),
    NUMBER("norm-epsilon", norm_epsilon, 1e-12, 1, "added to the variance"),
    NUMBER("init-std", init_std, 0, 10, "standard deviation of the initial matrices"),
    {.name = "tie-word-embeddings",
     .type = S4D_OPT_FLAG,
     .offset = MODEL(tie_word_embeddings),
     .help = "the head uses the embedding's matrix"},
    KIND(embedding, "layer kind of the token embedding"),
    KIND(positions, "layer kind of the positions"),
    KIND(norm, "layer kind of the norms"),
    KIND(attention, "layer kind of the attention"),
    KIND(mlp, "layer kind of the MLP"),
    KIND(head, "layer kind of the head and loss"),
    {.name = NULL},
};

/* The keys of every model, then those of layer kinds, each table once. */
enum { MOST_GROUPS = 64 };
static struct s4d_option_group groups[MOST_GROUPS + 1];

static void add_group(const struct s4d_option *options, size_t offset)
{
    int n = 0;
    for (; groups[n].options; n++)
        if (groups[n].options == options)
            return;
    S4D_ASSERT(n < MOST_GROUPS, "too many layer kinds with keys");
    groups[n] = (struct s4d_option_group){"Workload keys", options, offset};
}

const struct s4d_option_group *s4d_workload_keys(void)
{
    if (groups[0].options)
        return groups;
    add_group(keys, 0);
    for (int i = 0; s4d_layer_kinds[i]; i++) {
        if (s4d_layer_kinds[i]->needs)
            add_group(s4d_layer_kinds[i]->needs, offsetof(struct s4d_workload, model));
        if (s4d_layer_kinds[i]->takes)
            add_group(s4d_layer_kinds[i]->takes, offsetof(struct s4d_workload, model));
    }
    return groups;
}

static bool in_yaml(const void *root, const char *key)
{
    return s4d_yaml_get(root, key) != NULL;
}

/* Of an absent key: where the file starts. */
static void place_in_yaml(const void *root, const char *key, char *text, size_t size)
{
    const struct s4d_yaml_node *node = s4d_yaml_get(root, key), *file = root;
    if (node)
        snprintf(text, size, "%s:%d: %.80s", node->file, node->line, key);
    else
        snprintf(text, size, "%s:%d", file->file, file->line);
}

static int load_yaml(struct s4d_workload *w, const char *file, const char *text, size_t n,
                     struct s4d_error *err)
{
    struct s4d_yaml_node *root;
    if (s4d_yaml_parse(file, text, n, &root, err))
        return -1;
    w->model.init_std = 0.02;
    struct s4d_workload_text read = {root, in_yaml, place_in_yaml};
    int rc = s4d_options_yaml(s4d_workload_keys(), root, NULL, w, err) ||
                     s4d_workload_check(&w->model, &read, err)
                 ? -1
                 : 0;
    s4d_yaml_free(root);
    return rc;
}

static bool is_json(const char *file)
{
    size_t n = strlen(file);
    return n > 5 && strcmp(file + n - 5, ".json") == 0;
}

static int load_file(struct s4d_workload *w, const char *file, struct s4d_error *err)
{
    char *text;
    size_t n;
    if (s4d_file_read(file, &text, &n, err))
        return -1;
    w->file = s4d_strdup(file);
    s4d_hash(text, n, w->hash);
    int rc = is_json(file) ? s4d_workload_config(w, file, text, n, err)
                           : load_yaml(w, file, text, n, err);
    free(text);
    return rc;
}

static const char *folder(void)
{
    const char *own = getenv("SCALE4D_WORKLOADS");
    static char data[4200];
    if (own && *own)
        return own;
    snprintf(data, sizeof data, "%s/workloads", s4d_data_folder());
    return data;
}

static int load_named(struct s4d_workload *w, const char *name, struct s4d_error *err)
{
    char **names;
    int n = s4d_workload_names(&names), rc = -1;
    bool known = false;
    for (int i = 0; i < n; i++)
        known = known || strcmp(names[i], name) == 0;
    if (known) {
        char *file = s4d_asprintf("%s/%s.yaml", folder(), name);
        rc = load_file(w, file, err);
        if (!rc && strcmp(w->model.name, name) != 0)
            rc = s4d_fail(err, S4D_EXIT_DATA, file, "expected name: %s, got %s", name,
                          s4d_quote(w->model.name).text);
        free(file);
    } else {
        s4d_fail(err, S4D_EXIT_DATA, "", "unknown workload %s", s4d_quote(name).text);
        if (n)
            s4d_hint_file(err, name, (const char *const *)names, n);
        else
            s4d_hint(err, "there is no workload in %s", folder());
    }
    s4d_names_free(names, n);
    return rc;
}

int s4d_workload_load(struct s4d_workload *w, const char *name, struct s4d_error *err)
{
    memset(w, 0, sizeof *w);
    int rc =
        s4d_is_path(name) || is_json(name) ? load_file(w, name, err) : load_named(w, name, err);
    if (rc)
        s4d_workload_free(w);
    return rc;
}

void s4d_workload_free(struct s4d_workload *w)
{
    free(w->file);
    free(w->source);
    memset(w, 0, sizeof *w);
}

int s4d_workload_names(char ***names)
{
    return s4d_file_names(folder(), names);
}

void s4d_workload_record(const struct s4d_workload *w, json_t *record)
{
    s4d_options_record(s4d_workload_keys(), w, record);
    s4d_workload_drop_unused(&w->model, record);
}

static double parameters_of(const char *kind, const struct s4d_model *m)
{
    const struct s4d_layer_kind *k = s4d_layer_kind_find(kind);
    S4D_ASSERT(k, "layer kind %s", kind);
    return k->parameters(m);
}

/* A layer has two norms; one more stands before the head. */
double s4d_workload_parameters(const struct s4d_model *m)
{
    double norm = parameters_of(m->norm, m);
    double layer = 2 * norm + parameters_of(m->attention, m) + parameters_of(m->mlp, m);
    return parameters_of(m->embedding, m) + parameters_of(m->positions, m) + m->num_layers * layer +
           norm + parameters_of(m->head, m);
}
