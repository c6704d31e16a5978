/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/hf_config.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "support/option_field.h"
#include "support/quote.h"
#include "support/units.h"
#include "workloads/check.h"

/* Theirs, ours, and theirs' default; NULL: stays unset. */
struct row {
    const char *hf, *key, *fallback;
};

/* Values that are all we have, NULL-terminated, and the default. */
struct only {
    const char *hf, *values[4], *fallback;
};

struct model_type {
    const char *name;
    const struct row *rows;
    const struct only *only;
    const char *kinds[6][2]; /* slot, layer kind */
};

/* Defaults: src/transformers/models/{gpt2,llama,mistral}/configuration_*.py of
 * huggingface/transformers, read. */
static const struct row gpt2_rows[] = {
    {"n_layer", "num_layers", "12"},
    {"n_embd", "hidden_size", "768"},
    {"n_head", "num_attention_heads", "12"},
    {"n_inner", "ffn_hidden_size", NULL}, /* 4 n_embd */
    {"vocab_size", "vocab_size", "50257"},
    {"n_positions", "seq_length", "1024"},
    {"layer_norm_epsilon", "norm_epsilon", "0.00001"},
    {"initializer_range", "init_std", "0.02"},
    {"tie_word_embeddings", "tie_word_embeddings", "true"},
    {NULL, NULL, NULL},
};
static const struct only gpt2_only[] = {
    {"activation_function", {"gelu_new", "gelu_pytorch_tanh"}, "gelu_new"},
    {"scale_attn_weights", {"true"}, "true"},
    {"scale_attn_by_inverse_layer_idx", {"false"}, "false"},
    {"add_cross_attention", {"false"}, "false"},
    {NULL, {NULL}, NULL},
};
static const struct row llama_rows[] = {
    {"num_hidden_layers", "num_layers", "32"},
    {"hidden_size", "hidden_size", "4096"},
    {"num_attention_heads", "num_attention_heads", "32"},
    {"num_key_value_heads", "num_key_value_heads", NULL}, /* as heads */
    {"head_dim", "head_dim", NULL},                       /* hidden_size / heads */
    {"intermediate_size", "ffn_hidden_size", "11008"},
    {"vocab_size", "vocab_size", "32000"},
    {"max_position_embeddings", "seq_length", "2048"},
    {"rms_norm_eps", "norm_epsilon", "0.000001"},
    {"initializer_range", "init_std", "0.02"},
    {"tie_word_embeddings", "tie_word_embeddings", "false"},
    {"rope_theta", "rope_theta", "10000"},
    {NULL, NULL, NULL},
};
static const struct only llama_only[] = {
    {"hidden_act", {"silu"}, "silu"},
    {"attention_bias", {"false"}, "false"},
    {"mlp_bias", {"false"}, "false"},
    {NULL, {NULL}, NULL},
};
static const struct row mistral_rows[] = {
    {"num_hidden_layers", "num_layers", "32"},
    {"hidden_size", "hidden_size", "4096"},
    {"num_attention_heads", "num_attention_heads", "32"},
    {"num_key_value_heads", "num_key_value_heads", "8"},
    {"head_dim", "head_dim", NULL},
    {"intermediate_size", "ffn_hidden_size", "14336"},
    {"vocab_size", "vocab_size", "32000"},
    {"max_position_embeddings", "seq_length", "131072"},
    {"rms_norm_eps", "norm_epsilon", "0.000001"},
    {"initializer_range", "init_std", "0.02"},
    {"tie_word_embeddings", "tie_word_embeddings", "false"},
    {"rope_theta", "rope_theta", "10000"},
    {NULL, NULL, NULL},
};
static const struct only mistral_only[] = {
    {"hidden_act", {"silu"}, "silu"},
    {NULL, {NULL}, NULL},
};

#define LLAMA_KINDS                                                                                \
    {                                                                                              \
        {"embedding", "vocabulary-parallel"}, {"positions", "rotary"}, {"norm", "rmsnorm"},        \
            {"attention", "grouped-query"}, {"mlp", "swiglu-mlp"}, {"head", "cross-entropy"},      \
    }
static const struct model_type model_types[] = {
    {"gpt2",
     gpt2_rows,
     gpt2_only,
     {{"embedding", "vocabulary-parallel"},
      {"positions", "learned"},
      {"norm", "layernorm"},
      {"attention", "multi-head"},
      {"mlp", "gelu-mlp"},
      {"head", "cross-entropy"}}},
    {"llama", llama_rows, llama_only, LLAMA_KINDS},
    {"mistral", mistral_rows, mistral_only, LLAMA_KINDS},
};
enum { MODEL_TYPES = sizeof model_types / sizeof *model_types };

/* Known, and nothing to a model's training time or arithmetic here. */
static const char *const harmless[] = {"model_type",
                                       "architectures",
                                       "_name_or_path",
                                       "transformers_version",
                                       "torch_dtype",
                                       "dtype",
                                       "use_cache",
                                       "pretraining_tp",
                                       "bos_token_id",
                                       "eos_token_id",
                                       "pad_token_id",
                                       "n_ctx",
                                       "output_past",
                                       "reorder_and_upcast_attn",
                                       "summary_type",
                                       "summary_use_proj",
                                       "summary_activation",
                                       "summary_proj_to_labels",
                                       "summary_first_dropout",
                                       "task_specific_params",
                                       "seq_length",
                                       "rope_scaling",
                                       "rope_parameters",
                                       "sliding_window",
                                       NULL};
static const char *const dropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop",
                                       "attention_dropout", NULL};

struct config {
    const char *file, *text;
    size_t n;
    json_t *root;
    struct s4d_workload *w;
    const struct model_type *type;
    const char *set[32]; /* our keys that have a value */
    int n_set;
};

/* "config.json:12: key", the line where the key is first written; "config.json" if it is not. */
static void place_hf(const struct config *c, const char *hf, char *where, size_t size)
{
    char quoted[96];
    snprintf(quoted, sizeof quoted, "\"%s\"", hf);
    const char *at = memmem(c->text, c->n, quoted, strlen(quoted));
    int line = 1;
    for (const char *p = c->text; at && p < at; p++)
        line += *p == '\n';
    if (at)
        snprintf(where, size, "%s:%d: %s", c->file, line, hf);
    else
        snprintf(where, size, "%s: %s", c->file, hf);
}

static const char *hf_name_of(const struct config *c, const char *key)
{
    for (const struct row *r = c->type->rows; r->hf; r++)
        if (strcmp(r->key, key) == 0)
            return r->hf;
    return key;
}

static bool is_set(const void *context, const char *key)
{
    const struct config *c = context;
    for (int i = 0; i < c->n_set; i++)
        if (strcmp(c->set[i], key) == 0)
            return true;
    return false;
}

static void place(const void *context, const char *key, char *text, size_t size)
{
    place_hf(context, hf_name_of(context, key), text, size);
}

static int fail_at(const struct config *c, const char *hf, struct s4d_error *err,
                   const char *expected, const char *found)
{
    char where[512];
    place_hf(c, hf, where, sizeof where);
    return s4d_fail(err, S4D_EXIT_DATA, where, "expected %s, got %s", expected, found);
}

/* A value as an option would be written: 32, 0.00001, true; a string keeps its quotes where it
 * cannot be one. */
static void text_of(const json_t *value, char *text, int size)
{
    if (json_is_integer(value))
        snprintf(text, (size_t)size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        s4d_format_number(json_real_value(value), text, size);
    else if (json_is_boolean(value))
        snprintf(text, (size_t)size, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_string(value))
        snprintf(text, (size_t)size, "\"%s\"", json_string_value(value));
    else
        snprintf(text, (size_t)size, "%s", json_is_array(value) ? "a list" : "an object");
}

static int set_option(struct config *c, const struct s4d_option_group *g,
                      const struct s4d_option *o, const char *hf, const char *text,
                      struct s4d_error *err)
{
    if (s4d_option_set(o, s4d_option_field(g, o, c->w), text, S4D_FROM_YAML, err) == 0)
        return 0;
    place_hf(c, hf, err->where, sizeof err->where);
    return -1;
}

/* Sets our key from text that stands at their key. */
static int set(struct config *c, const char *key, const char *hf, const char *text,
               struct s4d_error *err)
{
    for (const struct s4d_option_group *g = s4d_workload_keys(); g->options; g++)
        for (const struct s4d_option *o = g->options; o->name; o++) {
            char name[64];
            if (strcmp(s4d_option_key(o, name, sizeof name), key) != 0)
                continue;
            if (set_option(c, g, o, hf, text, err))
                return -1;
            S4D_ASSERT(c->n_set < (int)(sizeof c->set / sizeof *c->set), "too many keys");
            if (!is_set(c, key))
                c->set[c->n_set++] = key;
            return 0;
        }
    s4d_bug(__FILE__, __LINE__, "set", "no key %s", key);
}

static const json_t *value_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static int set_rows(struct config *c, struct s4d_error *err)
{
    char text[128];
    for (const struct row *r = c->type->rows; r->hf; r++) {
        const json_t *value = value_of(c->root, r->hf);
        if (value)
            text_of(value, text, sizeof text);
        if ((value || r->fallback) && set(c, r->key, r->hf, value ? text : r->fallback, err))
            return -1;
    }
    const json_t *length = value_of(c->root, "seq_length");
    if (length) {
        text_of(length, text, sizeof text);
        if (set(c, "seq_length", "seq_length", text, err))
            return -1;
    }
    if (is_set(c, "ffn_hidden_size"))
        return 0;
    snprintf(text, sizeof text, "%lld", 4LL * c->w->model.hidden_size);
    return set(c, "ffn_hidden_size", "n_inner", text, err);
}

static int check_only(const struct config *c, struct s4d_error *err)
{
    for (const struct only *o = c->type->only; o->hf; o++) {
        char text[128], expected[128] = "";
        const json_t *value = value_of(c->root, o->hf);
        if (json_is_string(value))
            snprintf(text, sizeof text, "%s", json_string_value(value));
        else if (value)
            text_of(value, text, sizeof text);
        bool good = false;
        for (int i = 0; i < 4 && o->values[i]; i++) {
            good = good || strcmp(value ? text : o->fallback, o->values[i]) == 0;
            size_t used = strlen(expected);
            snprintf(expected + used, sizeof expected - used, "%s%s", i ? " or " : "",
                     o->values[i]);
        }
        if (!good) {
            fail_at(c, o->hf, err, expected, s4d_quote(text).text);
            return s4d_hint(err, "no layer kind does anything else: scale4d layers");
        }
    }
    return 0;
}

/* Mistral's window: absent means 4096, null none; one as long as the sequence changes nothing. */
static int check_window(const struct config *c, struct s4d_error *err)
{
    const json_t *window = json_object_get(c->root, "sliding_window");
    bool mistral = strcmp(c->type->name, "mistral") == 0;
    char text[128] = "4096 (the default)";
    if (json_is_null(window) || (!window && !mistral))
        return 0;
    double length = window ? json_number_value(window) : 4096;
    if (length >= c->w->model.seq_length)
        return 0;
    if (window)
        text_of(window, text, sizeof text);
    fail_at(c, "sliding_window", err, "null, or at least the sequence length", text);
    return s4d_hint(err, "attention is over the whole sequence here: null, or a seq_length of at "
                         "most the window");
}

static int set_scaling(struct config *c, const char *key, const json_t *scaling,
                       struct s4d_error *err)
{
    static const struct row rows[] = {
        {"factor", "rope_scaling_factor", NULL},
        {"low_freq_factor", "rope_low_freq_factor", NULL},
        {"high_freq_factor", "rope_high_freq_factor", NULL},
        {"original_max_position_embeddings", "rope_original_max_position_embeddings", NULL},
    };
    for (int i = 0; i < 4; i++) {
        char text[128];
        const json_t *value = value_of(scaling, rows[i].hf);
        if (!value)
            return fail_at(c, key, err, rows[i].hf, "none");
        text_of(value, text, sizeof text);
        if (set(c, rows[i].key, rows[i].hf, text, err))
            return -1;
    }
    return 0;
}

/* rope_scaling, or in newer files rope_parameters, which holds rope_theta too. */
static int set_rope(struct config *c, const char *key, struct s4d_error *err)
{
    const json_t *rope = value_of(c->root, key);
    char text[128];
    if (!rope)
        return 0;
    if (!json_is_object(rope) || !is_set(c, "rope_theta")) {
        text_of(rope, text, sizeof text);
        return fail_at(c, key, err,
                       json_is_object(rope) ? "a model with rotary positions" : "an object", text);
    }
    const json_t *theta = value_of(rope, "rope_theta"), *type = value_of(rope, "rope_type");
    if (theta) {
        text_of(theta, text, sizeof text);
        if (set(c, "rope_theta", "rope_theta", text, err))
            return -1;
    }
    type = type ? type : value_of(rope, "type");
    if (!type || (json_is_string(type) && strcmp(json_string_value(type), "default") == 0))
        return 0;
    if (json_is_string(type) && strcmp(json_string_value(type), "llama3") == 0)
        return set_scaling(c, key, rope, err);
    text_of(type, text, sizeof text);
    return fail_at(c, key, err, "rope_type default or llama3", s4d_quote(text).text);
}

static bool listed(const char *const *list, const char *key)
{
    for (int i = 0; list[i]; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}

static bool known(const struct config *c, const char *key)
{
    for (const struct row *r = c->type->rows; r->hf; r++)
        if (strcmp(r->hf, key) == 0)
            return true;
    for (const struct only *o = c->type->only; o->hf; o++)
        if (strcmp(o->hf, key) == 0)
            return true;
    return listed(harmless, key);
}

static void warn_of_ignored(const struct config *c)
{
    const char *key;
    json_t *value;
    json_object_foreach(c->root, key, value)
    {
        if (listed(dropouts, key)) {
            if (json_number_value(value) != 0)
                s4d_warn("%s: %s is ignored: there is no dropout here", c->file, key);
        } else if (!known(c, key)) {
            s4d_warn("%s: key %s is not known here, and ignored", c->file, s4d_quote(key).text);
        }
    }
}

static int find_type(struct config *c, struct s4d_error *err)
{
    const json_t *type = value_of(c->root, "model_type");
    const char *names[MODEL_TYPES], *name = json_string_value(type);
    for (int i = 0; i < MODEL_TYPES; i++) {
        names[i] = model_types[i].name;
        if (name && strcmp(name, names[i]) == 0)
            c->type = &model_types[i];
    }
    if (c->type)
        return 0;
    char where[512];
    place_hf(c, "model_type", where, sizeof where);
    s4d_fail(err, S4D_EXIT_DATA, where, "unknown model_type %s",
             name ? s4d_quote(name).text : "(a string is expected)");
    return s4d_hint(err, "known: %s, %s, %s", names[0], names[1], names[2]);
}

/* The end of _name_or_path where it may be a name, else the model_type. */
static int set_name(struct config *c, struct s4d_error *err)
{
    const char *path = json_string_value(json_object_get(c->root, "_name_or_path"));
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
    struct s4d_error ignored;
    if (!name || set(c, "name", "_name_or_path", name, &ignored))
        return set(c, "name", "model_type", c->type->name, err);
    return 0;
}

static int bind(struct config *c, struct s4d_error *err)
{
    if (!json_is_object(c->root))
        return s4d_fail(err, S4D_EXIT_DATA, c->file, "expected an object {...}");
    if (find_type(c, err) || set_name(c, err) ||
        set(c, "source", "model_type", "the Hugging Face config.json itself", err))
        return -1;
    for (int i = 0; i < 6; i++)
        if (set(c, c->type->kinds[i][0], "model_type", c->type->kinds[i][1], err))
            return -1;
    if (set_rows(c, err) || check_only(c, err) || check_window(c, err) ||
        set_rope(c, "rope_scaling", err) || set_rope(c, "rope_parameters", err))
        return -1;
    struct s4d_workload_text text = {c, is_set, place};
    if (s4d_workload_check(&c->w->model, &text, err))
        return -1;
    warn_of_ignored(c);
    return 0;
}

int s4d_workload_config(struct s4d_workload *w, const char *file, const char *text, size_t n,
                        struct s4d_error *err)
{
    json_error_t said;
    struct config c = {.file = file, .text = text, .n = n, .w = w};
    c.root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &said);
    if (!c.root) {
        char where[512];
        snprintf(where, sizeof where, "%s:%d:%d", file, said.line, said.column);
        return s4d_fail(err, S4D_EXIT_DATA, where, "no JSON: %s", s4d_quote(said.text).text);
    }
    int rc = bind(&c, err);
    json_decref(c.root);
    return rc;
}
