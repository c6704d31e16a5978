/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/check.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/layer.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/option_field.h"
#include "support/quote.h"
#include "workloads/workload.h"

enum { SLOTS = S4D_SLOT_LINEAR };

static void names_of(const struct s4d_model *m, const char *names[SLOTS])
{
    names[S4D_SLOT_EMBEDDING] = m->embedding;
    names[S4D_SLOT_POSITIONS] = m->positions;
    names[S4D_SLOT_NORM] = m->norm;
    names[S4D_SLOT_ATTENTION] = m->attention;
    names[S4D_SLOT_MLP] = m->mlp;
    names[S4D_SLOT_HEAD] = m->head;
}

/* Whether one of the kind's tables is this one. */
static bool has(const struct s4d_layer_kind *kind, const struct s4d_option *table)
{
    return kind && (kind->needs == table || kind->takes == table);
}

/* The layer kind in the model that has the table; NULL: none. */
static const struct s4d_layer_kind *user_of(const struct s4d_model *m,
                                            const struct s4d_option *table)
{
    const char *names[SLOTS];
    names_of(m, names);
    for (int slot = 0; slot < SLOTS; slot++)
        if (has(s4d_layer_kind_find(names[slot]), table))
            return s4d_layer_kind_find(names[slot]);
    return NULL;
}

/* The first kind of all that has it. */
static const struct s4d_layer_kind *owner_of(const struct s4d_option *table)
{
    for (int i = 0; s4d_layer_kinds[i]; i++)
        if (has(s4d_layer_kinds[i], table))
            return s4d_layer_kinds[i];
    s4d_bug(__FILE__, __LINE__, "owner_of", "keys of no layer kind");
}

static int missing(const struct s4d_workload_text *text, const char *key, const char *help,
                   struct s4d_error *err)
{
    char where[512];
    text->place(text->context, key, where, sizeof where);
    s4d_fail(err, S4D_EXIT_DATA, where, "missing key %s", key);
    return s4d_hint(err, "add %s: %s", key, help);
}

/* Every key of every model but the two with a default. */
static int check_presence(const struct s4d_workload_text *text, struct s4d_error *err)
{
    for (const struct s4d_option *o = s4d_workload_keys()[0].options; o->name; o++) {
        char key[64];
        s4d_option_key(o, key, sizeof key);
        bool optional = strcmp(key, "num_key_value_heads") == 0 || strcmp(key, "init_std") == 0;
        if (!optional && !text->present(text->context, key))
            return missing(text, key, o->help, err);
    }
    return 0;
}

static int fail_stranger(const struct s4d_workload_text *text, const struct s4d_model *m,
                         const struct s4d_option *table, const char *key, struct s4d_error *err)
{
    const struct s4d_layer_kind *owner = owner_of(table);
    const char *names[SLOTS];
    char where[512];
    names_of(m, names);
    text->place(text->context, key, where, sizeof where);
    return s4d_fail(err, S4D_EXIT_DATA, where, "a key of %s: %s, but this model has %s",
                    s4d_slot_names[owner->slot], owner->name, names[owner->slot]);
}

/* Keys of layer kinds: all that the model's kinds need, and none of others. */
static int check_owned(const struct s4d_workload_text *text, const struct s4d_model *m,
                       struct s4d_error *err)
{
    for (const struct s4d_option_group *g = s4d_workload_keys() + 1; g->options; g++) {
        const struct s4d_layer_kind *user = user_of(m, g->options);
        for (const struct s4d_option *o = g->options; o->name; o++) {
            char key[64];
            s4d_option_key(o, key, sizeof key);
            bool present = text->present(text->context, key);
            if (user && user->needs == g->options && !present)
                return missing(text, key, o->help, err);
            if (!user && present)
                return fail_stranger(text, m, g->options, key, err);
        }
    }
    return 0;
}

/* Fails at `key`, with the nearest divisors of `whole` as hint. */
static int check_divisor(const struct s4d_workload_text *text, const char *key, int value,
                         const char *whole_key, int whole, struct s4d_error *err)
{
    if (whole % value == 0)
        return 0;
    char where[512];
    int below = value, above = value;
    while (whole % below)
        below--;
    while (above < whole && whole % above)
        above++;
    text->place(text->context, key, where, sizeof where);
    s4d_fail(err, S4D_EXIT_DATA, where, "expected a divisor of %s (%d), got %d", whole_key, whole,
             value);
    return value > whole ? s4d_hint(err, "at most %d", whole)
                         : s4d_hint(err, "nearest are %d and %d", below, above);
}

static int check_kind(const struct s4d_workload_text *text, enum s4d_slot slot, const char *name,
                      struct s4d_error *err)
{
    const struct s4d_layer_kind *kind = s4d_layer_kind_find(name);
    if (kind && kind->slot == slot)
        return 0;
    const char *key = s4d_slot_names[slot];
    char where[512];
    text->place(text->context, key, where, sizeof where);
    s4d_fail(err, S4D_EXIT_DATA, where, "expected a layer kind for %s, got %s", key,
             s4d_quote(name).text);
    const char **names = NULL;
    int n = 0, cap = 0;
    for (int i = 0; s4d_layer_kinds[i]; i++)
        if (s4d_layer_kinds[i]->slot == slot)
            s4d_push(names, n, cap, s4d_layer_kinds[i]->name);
    s4d_hint_nearest(err, name, names, n);
    free(names);
    return -1;
}

int s4d_workload_check(struct s4d_model *m, const struct s4d_workload_text *text,
                       struct s4d_error *err)
{
    const char *names[SLOTS];
    if (check_presence(text, err))
        return -1;
    if (!m->num_key_value_heads)
        m->num_key_value_heads = m->num_attention_heads;
    if ((!m->head_dim && check_divisor(text, "num_attention_heads", m->num_attention_heads,
                                       "hidden_size", m->hidden_size, err)) ||
        check_divisor(text, "num_key_value_heads", m->num_key_value_heads, "num_attention_heads",
                      m->num_attention_heads, err))
        return -1;
    names_of(m, names);
    for (int slot = 0; slot < SLOTS; slot++)
        if (check_kind(text, (enum s4d_slot)slot, names[slot], err))
            return -1;
    return check_owned(text, m, err);
}

void s4d_workload_drop_unused(const struct s4d_model *m, json_t *record)
{
    for (const struct s4d_option_group *g = s4d_workload_keys() + 1; g->options; g++)
        for (const struct s4d_option *o = g->options; o->name; o++) {
            char key[64];
            s4d_option_key(o, key, sizeof key);
            double value = json_number_value(json_object_get(record, key));
            if (!user_of(m, g->options) || value == 0)
                json_object_del(record, key);
        }
}
