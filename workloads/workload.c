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
#include "support/option_field.h"
#include "support/quote.h"
#include "support/record.h"

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
    {.name = "norm-epsilon",
     .type = S4D_OPT_NUMBER,
     .offset = MODEL(norm_epsilon),
     .min = 1e-12,
     .max = 1,
     .help = "added to the variance"},
    {.name = "init-std",
     .type = S4D_OPT_NUMBER,
     .offset = MODEL(init_std),
     .min = 0,
     .max = 10,
     .help = "standard deviation of the initial matrices"},
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
const struct s4d_option_group s4d_workload_keys[] = {{"Workload keys", keys, 0}, {NULL, NULL, 0}};

/* Every key but the two with a default. */
static int check_presence(const struct s4d_yaml_node *root, struct s4d_error *err)
{
    for (const struct s4d_option *o = keys; o->name; o++) {
        char key[64];
        s4d_option_key(o, key, sizeof key);
        bool optional = strcmp(key, "num_key_value_heads") == 0 || strcmp(key, "init_std") == 0;
        if (optional || s4d_yaml_get(root, key))
            continue;
        s4d_yaml_fail(root, err, "missing key %s", key);
        return s4d_hint(err, "add %s: %s", key, o->help);
    }
    return 0;
}

/* Fails at `key`, with the nearest divisors of `whole` as hint. */
static int check_divisor(const struct s4d_yaml_node *root, const char *key, int value,
                         const char *whole_key, int whole, struct s4d_error *err)
{
    if (whole % value == 0)
        return 0;
    int below = value, above = value;
    while (whole % below)
        below--;
    while (above < whole && whole % above)
        above++;
    s4d_yaml_fail(s4d_yaml_get(root, key), err, "expected a divisor of %s (%d), got %d", whole_key,
                  whole, value);
    return value > whole ? s4d_hint(err, "at most %d", whole)
                         : s4d_hint(err, "nearest are %d and %d", below, above);
}

static int check_kind(const struct s4d_yaml_node *root, enum s4d_slot slot, const char *name,
                      struct s4d_error *err)
{
    const struct s4d_layer_kind *kind = s4d_layer_kind_find(name);
    if (kind && kind->slot == slot)
        return 0;
    const char *key = s4d_slot_names[slot];
    s4d_yaml_fail(s4d_yaml_get(root, key), err, "expected a layer kind for %s, got %s", key,
                  s4d_quote(name).text);
    const char **names = NULL;
    int n = 0, cap = 0;
    for (int i = 0; s4d_layer_kinds[i]; i++) {
        if (s4d_layer_kinds[i]->slot == slot)
            s4d_push(names, n, cap, s4d_layer_kinds[i]->name);
    }
    s4d_hint_nearest(err, name, names, n);
    free(names);
    return -1;
}

static int check_kinds(const struct s4d_yaml_node *root, const struct s4d_model *m,
                       struct s4d_error *err)
{
    return check_kind(root, S4D_SLOT_EMBEDDING, m->embedding, err) ||
                   check_kind(root, S4D_SLOT_POSITIONS, m->positions, err) ||
                   check_kind(root, S4D_SLOT_NORM, m->norm, err) ||
                   check_kind(root, S4D_SLOT_ATTENTION, m->attention, err) ||
                   check_kind(root, S4D_SLOT_MLP, m->mlp, err) ||
                   check_kind(root, S4D_SLOT_HEAD, m->head, err)
               ? -1
               : 0;
}

static int bind(struct s4d_workload *w, const struct s4d_yaml_node *root, struct s4d_error *err)
{
    struct s4d_model *m = &w->model;
    m->init_std = 0.02;
    if (s4d_options_yaml(s4d_workload_keys, root, NULL, w, err) || check_presence(root, err))
        return -1;
    if (!m->num_key_value_heads)
        m->num_key_value_heads = m->num_attention_heads;
    if (check_divisor(root, "num_attention_heads", m->num_attention_heads, "hidden_size",
                      m->hidden_size, err) ||
        check_divisor(root, "num_key_value_heads", m->num_key_value_heads, "num_attention_heads",
                      m->num_attention_heads, err))
        return -1;
    return check_kinds(root, m, err);
}

static int load_file(struct s4d_workload *w, const char *file, struct s4d_error *err)
{
    char *text;
    size_t n;
    if (s4d_file_read(file, &text, &n, err))
        return -1;
    w->file = s4d_strdup(file);
    s4d_hash(text, n, w->hash);
    struct s4d_yaml_node *root;
    int rc = s4d_yaml_parse(file, text, n, &root, err);
    free(text);
    if (rc)
        return -1;
    rc = bind(w, root, err);
    s4d_yaml_free(root);
    return rc;
}

static const char *folder(void)
{
    const char *own = getenv("SCALE4D_WORKLOADS");
    return own && *own ? own : S4D_DATA_DIR "/workloads";
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
            s4d_hint_nearest(err, name, (const char *const *)names, n);
        else
            s4d_hint(err, "there is no workload in %s", folder());
    }
    s4d_names_free(names, n);
    return rc;
}

int s4d_workload_load(struct s4d_workload *w, const char *name, struct s4d_error *err)
{
    memset(w, 0, sizeof *w);
    int rc = s4d_is_path(name) ? load_file(w, name, err) : load_named(w, name, err);
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
