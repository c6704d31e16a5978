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

/* 0: not of this kind; 1: the kind may use the key; 2: it needs it. */
static int use_of(const struct s4d_layer_kind *kind, const char *key)
{
    for (int i = 0; kind && kind->keys && kind->keys[i]; i++)
        if (strcmp(kind->keys[i] + (kind->keys[i][0] == '?'), key) == 0)
            return kind->keys[i][0] == '?' ? 1 : 2;
    return 0;
}

/* The first kind of all that uses the key; NULL: every model has it. */
static const struct s4d_layer_kind *owner_of(const char *key)
{
    for (int i = 0; s4d_layer_kinds[i]; i++)
        if (use_of(s4d_layer_kinds[i], key))
            return s4d_layer_kinds[i];
    return NULL;
}

static int use_in_model(const struct s4d_model *m, const char *key)
{
    const char *names[SLOTS];
    int most = 0;
    names_of(m, names);
    for (int slot = 0; slot < SLOTS; slot++) {
        int use = use_of(s4d_layer_kind_find(names[slot]), key);
        most = use > most ? use : most;
    }
    return most;
}

static int missing(const struct s4d_workload_text *text, const char *key, const char *help,
                   struct s4d_error *err)
{
    char where[512];
    text->place(text->context, key, where, sizeof where);
    s4d_fail(err, S4D_EXIT_DATA, where, "missing key %s", key);
    return s4d_hint(err, "add %s: %s", key, help);
}

/* Every key but the two with a default and those of single layer kinds. */
static int check_presence(const struct s4d_workload_text *text, struct s4d_error *err)
{
    for (const struct s4d_option *o = s4d_workload_keys[0].options; o->name; o++) {
        char key[64];
        s4d_option_key(o, key, sizeof key);
        bool optional = strcmp(key, "num_key_value_heads") == 0 || strcmp(key, "init_std") == 0;
        if (!optional && !owner_of(key) && !text->present(text->context, key))
            return missing(text, key, o->help, err);
    }
    return 0;
}

/* Keys of single layer kinds. */
static int check_owned(const struct s4d_workload_text *text, const struct s4d_model *m,
                       struct s4d_error *err)
{
    for (const struct s4d_option *o = s4d_workload_keys[0].options; o->name; o++) {
        char key[64], where[512];
        const char *names[SLOTS];
        s4d_option_key(o, key, sizeof key);
        const struct s4d_layer_kind *owner = owner_of(key);
        if (!owner)
            continue;
        int use = use_in_model(m, key);
        bool present = text->present(text->context, key);
        if (use == 2 && !present)
            return missing(text, key, o->help, err);
        if (use > 0 || !present)
            continue;
        names_of(m, names);
        text->place(text->context, key, where, sizeof where);
        return s4d_fail(err, S4D_EXIT_DATA, where, "a key of %s: %s, but this model has %s",
                        s4d_slot_names[owner->slot], owner->name, names[owner->slot]);
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
    for (const struct s4d_option *o = s4d_workload_keys[0].options; o->name; o++) {
        char key[64];
        s4d_option_key(o, key, sizeof key);
        if (!owner_of(key))
            continue;
        double value = json_number_value(json_object_get(record, key));
        if (!use_in_model(m, key) || value == 0)
            json_object_del(record, key);
    }
}
