/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of fabrics, and the check of a machine's parameters against its row. */
#include "sim/fabric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct s4d_fabric_kind *const s4d_fabrics[] = {&s4d_fabric_single_switch,
                                                     &s4d_fabric_dragonfly, NULL};

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
    if (line > 0)
        snprintf(where, sizeof where, "%s:%d: fabric.%s", m->file, line, key);
    else
        snprintf(where, sizeof where, "%s: fabric.%s", m->name, key);
    return s4d_fail(err, S4D_EXIT_DATA, where, "%s", text);
}

static const struct s4d_parameter *find(const struct s4d_machine *m, const char *key)
{
    for (int i = 0; i < m->fabric.n_parameters; i++) {
        if (strcmp(m->fabric.parameter[i].key, key) == 0)
            return &m->fabric.parameter[i];
    }
    return NULL;
}

static bool is_count(const char *key)
{
    size_t n = strlen(key);
    return n < 4 || strcmp(key + n - 4, "_Bps") != 0;
}

static int check_parameter(const struct s4d_machine *m, const struct s4d_fabric_parameter *want,
                           struct s4d_error *err)
{
    char text[256];
    const struct s4d_parameter *p = find(m, want->key);
    if (!p) {
        snprintf(text, sizeof text, "missing: a %s needs it (%s)", m->fabric.topology,
                 want->summary);
        return fail_at(m, m->fabric.line, want->key, err, text);
    }
    double v = p->value.value;
    if (!(v >= want->min && v <= want->max) || (is_count(want->key) && v != floor(v))) {
        snprintf(text, sizeof text, "expected a %s from %g to %g, found %g",
                 is_count(want->key) ? "whole number" : "value", want->min, want->max, v);
        return fail_at(m, p->line, want->key, err, text);
    }
    return 0;
}

static int check_unknown(const struct s4d_machine *m, const struct s4d_fabric_kind *kind,
                         struct s4d_error *err)
{
    for (int i = 0; i < m->fabric.n_parameters; i++) {
        const struct s4d_parameter *p = &m->fabric.parameter[i];
        bool known = false;
        for (int j = 0; kind->parameter[j].key; j++)
            known = known || strcmp(kind->parameter[j].key, p->key) == 0;
        if (!known) {
            char text[128];
            snprintf(text, sizeof text, "unknown key: a %s has no such parameter", kind->name);
            fail_at(m, p->line, p->key, err, text);
            return s4d_hint(err, "`scale4d fabrics %s` lists what it has", kind->name);
        }
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
    if (kind->room && kind->room(m) < m->fabric.nodes) {
        char text[128];
        snprintf(text, sizeof text, "%d nodes, but the %s's parameters make room for %.0f",
                 m->fabric.nodes, kind->name, kind->room(m));
        return fail_at(m, m->fabric.line, "nodes", err, text);
    }
    return 0;
}
