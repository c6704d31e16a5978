/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides: "device.launch_s=3us" on any quantity, by the key that the writer shows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/machine_fields.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/units.h"

static const char override_source[] = "--set";

static int fail_at(struct s4d_error *err, const char *key)
{
    if (err) {
        snprintf(err->where, sizeof err->where, "--set %.200s", key);
        err->exit = S4D_EXIT_USAGE;
    }
    return -1;
}

/* Parses and checks one value; field is NULL for what is no field of the table. */
static int parse(const char *key, const char *text, const struct s4d_machine_field *field,
                 double *value, struct s4d_error *err)
{
    if (s4d_parse_quantity(field ? field->key : key, text, value, err))
        return fail_at(err, key);
    if (field ? s4d_field_check(field, *value, err) != 0 : !(*value > 0) || isinf(*value)) {
        if (!field)
            s4d_fail(err, S4D_EXIT_USAGE, "", "expected more than 0, and not unlimited");
        return fail_at(err, key);
    }
    return 0;
}

/* Each of these: 1 it is that key and was set, 0 it is not, -1 a bad value. */
static int set_field(struct s4d_machine *m, const char *key, const char *text,
                     struct s4d_error *err)
{
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        for (int i = 0; i < f->count && s4d_field_used(m, f); i++) {
            char name[96];
            double value;
            snprintf(name, sizeof name, "%s.%s%s%s", f->section, f->key, f->count > 1 ? "." : "",
                     f->count > 1 ? s4d_protocol_names[i] : "");
            if (strcmp(name, key) != 0)
                continue;
            if (parse(key, text, f, &value, err))
                return -1;
            s4d_quantity_set(s4d_field_quantity(m, f) + i, value, S4D_TAG_ASSUMED, override_source);
            return 1;
        }
    }
    return 0;
}

static int set_link(struct s4d_machine *m, const char *key, const char *text, struct s4d_error *err)
{
    int found = 0;
    for (int i = 0; i < m->node.n_links; i++) {
        char name[96];
        double value;
        snprintf(name, sizeof name, "node.links.%d.brick_bandwidth_Bps", m->node.link[i].kind);
        if (strcmp(name, key) != 0)
            continue;
        if (parse(key, text, NULL, &value, err))
            return -1;
        s4d_quantity_set(&m->node.link[i].brick_bandwidth_Bps, value, S4D_TAG_ASSUMED,
                         override_source);
        found = 1;
    }
    return found;
}

/* A parameter that the machine lacks is added: the registry of fabrics judges it. */
static int set_parameter(struct s4d_fabric *f, const char *key, const char *text,
                         struct s4d_error *err)
{
    int i = 0;
    while (i < f->n_parameters && strcmp(f->parameter[i].key, key + 7) != 0)
        i++;
    if (i == f->n_parameters) {
        if (strlen(key + 7) >= sizeof f->parameter->key)
            return 0;
        f->parameter = s4d_realloc(f->parameter, ((size_t)i + 1) * sizeof *f->parameter);
        f->parameter[i] = (struct s4d_parameter){.line = S4D_LINE_SET};
        snprintf(f->parameter[i].key, sizeof f->parameter->key, "%s", key + 7);
        f->n_parameters++;
    }
    if (s4d_parameter_set(&f->parameter[i], text, S4D_TAG_ASSUMED, override_source, err))
        return fail_at(err, key);
    f->parameter[i].line = S4D_LINE_SET;
    return 1;
}

int s4d_machine_override_topology(struct s4d_machine *m, const char *setting, struct s4d_error *err)
{
    static const char key[] = "fabric.topology=";
    if (strncmp(setting, key, sizeof key - 1) != 0)
        return 0;
    const char *name = setting + sizeof key - 1;
    if (!s4d_is_word(name) || strlen(name) >= sizeof m->fabric.topology)
        return s4d_fail(err, S4D_EXIT_USAGE, "--set fabric.topology",
                        "expected the name of a topology, found %s", s4d_quote(name).text);
    if (strcmp(name, m->fabric.topology) != 0)
        s4d_parameters_clear(&m->fabric);
    snprintf(m->fabric.topology, sizeof m->fabric.topology, "%s", name);
    m->fabric.line = S4D_LINE_SET;
    return 1;
}

static int set_fabric(struct s4d_machine *m, const char *key, const char *text,
                      struct s4d_error *err)
{
    struct s4d_fabric *f = &m->fabric;
    int64_t nodes;
    if (strcmp(key, "fabric.nodes") == 0) {
        if (s4d_parse_int(text, 1, 1 << 20, &nodes, err))
            return fail_at(err, key);
        f->nodes = (int)nodes;
        free(f->nodes_origin.source);
        f->nodes_origin = (struct s4d_origin){S4D_TAG_ASSUMED, s4d_strdup(override_source)};
        return 1;
    }
    return strncmp(key, "fabric.", 7) == 0 ? set_parameter(f, key, text, err) : 0;
}

struct keys {
    char **v;
    int n, cap;
};

static void collect(void *context, const char *key, enum s4d_tag tag, const char *source,
                    double value)
{
    struct keys *k = context;
    (void)tag;
    (void)source;
    if (!isnan(value))
        s4d_push(k->v, k->n, k->cap, s4d_strdup(key));
}

static int unknown_key(const struct s4d_machine *m, const char *key, struct s4d_error *err)
{
    struct keys k = {0};
    s4d_machine_visit(m, collect, &k);
    s4d_fail(err, S4D_EXIT_USAGE, "", "unknown key of machine %s", m->name);
    fail_at(err, key);
    s4d_hint_nearest(err, key, (const char *const *)k.v, k.n);
    for (int i = 0; i < k.n; i++)
        free(k.v[i]);
    free(k.v);
    return -1;
}

int s4d_machine_override(struct s4d_machine *m, const char *setting, struct s4d_error *err)
{
    const char *equal = strchr(setting, '=');
    if (!equal || equal == setting)
        return s4d_fail(err, S4D_EXIT_USAGE, "--set", "expected key=value, found %s",
                        s4d_quote(setting).text);
    char *key = s4d_strdup(setting);
    key[equal - setting] = '\0';
    int rc = set_field(m, key, equal + 1, err);
    if (rc == 0)
        rc = set_link(m, key, equal + 1, err);
    if (rc == 0)
        rc = set_fabric(m, key, equal + 1, err);
    if (rc == 0)
        rc = unknown_key(m, key, err);
    free(key);
    return rc < 0 ? -1 : 0;
}
