/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of fabrics, and the check of a machine's parameters against its row. */
#include "sim/fabric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/nearest.h"

const struct s4d_fabric_kind *const s4d_fabrics[] = {
    &s4d_fabric_single_switch,  &s4d_fabric_fat_tree,
    &s4d_fabric_rail_optimised, &s4d_fabric_dragonfly,
    &s4d_fabric_torus,          &s4d_fabric_ring,
    &s4d_fabric_simgrid,        NULL};

const struct s4d_fabric_kind *s4d_fabric_find(const char *name)
{
    for (int i = 0; s4d_fabrics[i]; i++) {
        if (strcmp(s4d_fabrics[i]->name, name) == 0)
            return s4d_fabrics[i];
    }
    return NULL;
}

/* Fails with the place of a parameter: "file:line: fabric.KEY". */
static int fail_at(const struct s4d_machine *m, int line, const char *key, struct s4d_error *err,
                   const char *text)
{
    char where[512];
    if (line == S4D_LINE_SET)
        snprintf(where, sizeof where, "--set fabric.%s", key);
    else if (line > 0)
        snprintf(where, sizeof where, "%s:%d: fabric.%s", m->file, line, key);
    else
        snprintf(where, sizeof where, "%s: fabric.%s", m->name, key);
    return s4d_fail(err, line == S4D_LINE_SET ? S4D_EXIT_USAGE : S4D_EXIT_DATA, where, "%s", text);
}

static const struct s4d_parameter *find(const struct s4d_machine *m, const char *key)
{
    for (int i = 0; i < m->fabric.n_parameters; i++) {
        if (strcmp(m->fabric.parameter[i].key, key) == 0)
            return &m->fabric.parameter[i];
    }
    return NULL;
}

/* Of the word among the choices; -1: none of them. */
static int choice(const struct s4d_fabric_parameter *want, const char *word)
{
    for (int i = 0; want->choices[i]; i++)
        if (strcmp(want->choices[i], word) == 0)
            return i;
    return -1;
}

double s4d_fabric_value(const struct s4d_machine *m, const char *key)
{
    const struct s4d_fabric_parameter *want = s4d_fabric_find(m->fabric.topology)->parameter;
    while (want->key && strcmp(want->key, key) != 0)
        want++;
    S4D_ASSERT(want->key, "a %s has no parameter %s", m->fabric.topology, key);
    const struct s4d_parameter *p = find(m, key);
    S4D_ASSERT(p || want->optional, "%s is missing", key);
    if (!p)
        return want->missing;
    return want->choices ? choice(want, p->word) : p->value.value;
}

static bool is_whole(const struct s4d_fabric_parameter *want)
{
    size_t n = strlen(want->key);
    return !want->real && (n < 4 || strcmp(want->key + n - 4, "_Bps") != 0);
}

static int check_word(const struct s4d_machine *m, const struct s4d_fabric_parameter *want,
                      const struct s4d_parameter *p, struct s4d_error *err)
{
    char text[256], known[128] = "";
    size_t n = 0;
    if (choice(want, p->word) >= 0)
        return 0;
    for (int i = 0; want->choices[i] && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", want->choices[i]);
    if (p->word[0])
        snprintf(text, sizeof text, "expected one of %s; found '%s'", known, p->word);
    else
        snprintf(text, sizeof text, "expected one of %s; found %g", known, p->value.value);
    return fail_at(m, p->line, want->key, err, text);
}

static int check_number(const struct s4d_machine *m, const struct s4d_fabric_parameter *want,
                        const struct s4d_parameter *p, struct s4d_error *err)
{
    char text[256], found[40];
    double v = p->value.value;
    if (v >= want->min && v <= want->max && !(is_whole(want) && v != floor(v)))
        return 0;
    snprintf(found, sizeof found, "%g", v);
    snprintf(text, sizeof text, "expected a %s from %g to %g, found %s",
             is_whole(want) ? "whole number" : "value", want->min, want->max,
             p->word[0] ? p->word : found);
    return fail_at(m, p->line, want->key, err, text);
}

static const struct s4d_fabric_parameter *row_of(const struct s4d_fabric_kind *kind,
                                                 const char *key)
{
    for (const struct s4d_fabric_parameter *p = kind->parameter; p->key; p++)
        if (strcmp(p->key, key) == 0)
            return p;
    s4d_bug(__FILE__, __LINE__, key, "no such parameter");
}

/* A parameter that the value of another takes the effect from. What a file says of levels, say, of
 * which --set takes one away stays without effect. */
static int check_effect(const struct s4d_machine *m, const struct s4d_fabric_kind *kind,
                        const struct s4d_fabric_parameter *want, struct s4d_error *err)
{
    char text[256], with[64];
    const struct s4d_parameter *p = find(m, want->key);
    if (!p || !want->only_with || s4d_fabric_value(m, want->only_with) == want->only_value)
        return 0;
    const struct s4d_parameter *chosen = find(m, want->only_with);
    if (chosen && chosen->line == S4D_LINE_SET && p->line != S4D_LINE_SET)
        return 0;
    const struct s4d_fabric_parameter *other = row_of(kind, want->only_with);
    if (other->choices)
        snprintf(with, sizeof with, "%s", other->choices[(int)want->only_value]);
    else
        snprintf(with, sizeof with, "%g", want->only_value);
    snprintf(text, sizeof text, "has an effect only with %s: %s", want->only_with, with);
    return fail_at(m, p->line, want->key, err, text);
}

static int check_parameter(const struct s4d_machine *m, const struct s4d_fabric_parameter *want,
                           struct s4d_error *err)
{
    char text[256];
    const struct s4d_parameter *p = find(m, want->key);
    if (p)
        return want->choices ? check_word(m, want, p, err) : check_number(m, want, p, err);
    if (want->optional)
        return 0;
    snprintf(text, sizeof text, "missing: a %s needs it (%s)", m->fabric.topology, want->summary);
    return fail_at(m, m->fabric.line, want->key, err, text);
}

static int unknown_parameter(const struct s4d_machine *m, const struct s4d_fabric_kind *kind,
                             const struct s4d_parameter *p, struct s4d_error *err)
{
    const char *known[S4D_FABRIC_PARAMETERS];
    char text[160];
    int n = 0;
    for (; kind->parameter[n].key; n++)
        known[n] = kind->parameter[n].key;
    snprintf(text, sizeof text, "unknown key: a %s has no such parameter (`scale4d fabrics %s`)",
             kind->name, kind->name);
    fail_at(m, p->line, p->key, err, text);
    return s4d_hint_nearest(err, p->key, known, n);
}

static int check_unknown(const struct s4d_machine *m, const struct s4d_fabric_kind *kind,
                         struct s4d_error *err)
{
    for (int i = 0; i < m->fabric.n_parameters; i++) {
        bool known = false;
        for (int j = 0; kind->parameter[j].key; j++)
            known = known || strcmp(kind->parameter[j].key, m->fabric.parameter[i].key) == 0;
        if (!known)
            return unknown_parameter(m, kind, &m->fabric.parameter[i], err);
    }
    return 0;
}

static int unknown_topology(const struct s4d_machine *m, struct s4d_error *err)
{
    char text[256], known[256] = "";
    size_t n = 0;
    for (int i = 0; s4d_fabrics[i] && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "",
                              s4d_fabrics[i]->name);
    snprintf(text, sizeof text, "unknown topology '%s'; expected one of: %s", m->fabric.topology,
             known);
    return fail_at(m, m->fabric.line, "topology", err, text);
}

int s4d_fabric_check(const struct s4d_machine *m, struct s4d_error *err)
{
    const struct s4d_fabric_kind *kind = s4d_fabric_find(m->fabric.topology);
    if (!kind)
        return unknown_topology(m, err);
    if (check_unknown(m, kind, err))
        return -1;
    for (int i = 0; kind->parameter[i].key; i++) {
        if (check_parameter(m, &kind->parameter[i], err))
            return -1;
    }
    for (int i = 0; kind->parameter[i].key; i++) {
        if (check_effect(m, kind, &kind->parameter[i], err))
            return -1;
    }
    if (kind->room && kind->room(m) < m->fabric.nodes) {
        char text[128];
        snprintf(text, sizeof text, "%d nodes, but the %s's parameters make room for %.0f",
                 m->fabric.nodes, kind->name, kind->room(m));
        return fail_at(m, m->fabric.line, "nodes", err, text);
    }
    return 0;
}
