/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/differences.h"

#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/units.h"
#include "support/yaml.h"

static const char *const parts[] = {"links", "nics", "devices", "rates"};
enum { PARTS = 4 };
static const double most = 1000; /* times what it was */

/* Which part a setting begins with, -1: none; *name is what follows the dot. */
static int part_of(const char *setting, const char **name)
{
    for (int i = 0; i < PARTS; i++) {
        size_t n = strlen(parts[i]);
        if (strncmp(setting, parts[i], n) == 0 && setting[n] == '.') {
            *name = setting + n + 1;
            return i;
        }
    }
    return -1;
}

bool s4d_is_difference(const char *setting)
{
    const char *name;
    return part_of(setting, &name) >= 0;
}

static int fail(const struct s4d_difference *x, struct s4d_error *err, const char *expected)
{
    return s4d_fail(err, x->exit, x->where, "expected %s; found %s", expected,
                    s4d_quote(x->text).text);
}

static int parse_value(struct s4d_difference *x, const char *value, struct s4d_error *err)
{
    struct s4d_error ignored;
    bool part_only = x->part == S4D_DEVICES || x->part == S4D_RATES;
    x->part_of = NAN;
    if (strcmp(value, "dead") == 0 && x->part == S4D_DEVICES) {
        fail(x, err, "a part of its speed, above 0");
        return s4d_hint(err, "--hosts places a job on other nodes");
    }
    if (strcmp(value, "dead") == 0 && !part_only) {
        x->part_of = 0;
        return 0;
    }
    double number;
    if (s4d_parse_number(value, 0, most, &number, &ignored) == 0 && number > 0) {
        x->part_of = number;
        return 0;
    }
    if (!part_only && s4d_parse_bandwidth(value, &x->Bps, &ignored) == 0 && x->Bps > 0)
        return 0;
    return fail(x, err,
                x->part == S4D_DEVICES ? "a part of its speed, above 0 and at most 1000"
                : x->part == S4D_RATES
                    ? "a part of what it was, above 0 and at most 1000"
                    : "dead, a part of its bandwidth (above 0, at most 1000), or a bandwidth "
                      "above 0");
}

static int add(struct s4d_differences *d, enum s4d_difference_part part, const char *name,
               const char *value, const char *where, int exit, struct s4d_error *err)
{
    struct s4d_difference x = {.part = part, .exit = exit};
    x.name = s4d_strdup(name);
    x.text = s4d_asprintf("%s.%s=%s", parts[part], name, value);
    x.where = s4d_strdup(where);
    s4d_push(d->v, d->n, d->cap, x);
    if (part == S4D_RATES && !s4d_rates_know(name)) {
        s4d_fail(err, exit, where, "unknown rate");
        return s4d_hint_nearest(err, name, s4d_rate_names, S4D_RATE_NAMES);
    }
    return parse_value(&d->v[d->n - 1], value, err);
}

int s4d_differences_add(struct s4d_differences *d, const char *setting, struct s4d_error *err)
{
    const char *rest;
    int part = part_of(setting, &rest);
    const char *equal = strrchr(rest, '=');
    S4D_ASSERT(part >= 0, "%s", setting);
    if (!equal || equal == rest)
        return s4d_fail(err, S4D_EXIT_USAGE, "--set", "expected %s.NAME=VALUE, found %s",
                        parts[part], s4d_quote(setting).text);
    char *name = s4d_strdup(rest);
    name[equal - rest] = '\0';
    char *where = s4d_asprintf("--set %s.%s", parts[part], name);
    int rc = add(d, (enum s4d_difference_part)part, name, equal + 1, where, S4D_EXIT_USAGE, err);
    free(where);
    free(name);
    return rc;
}

static int read_entry(struct s4d_differences *d, int part, const struct s4d_yaml_node *entry,
                      struct s4d_texts *set, struct s4d_error *err)
{
    if (entry->kind != S4D_YAML_SCALAR)
        return s4d_yaml_fail(entry, err, "expected a value");
    const char *name = entry->key;
    if (part == PARTS && s4d_is_difference(entry->key))
        part = part_of(entry->key, &name);
    if (part == PARTS) {
        char *setting = s4d_asprintf("%s=%s", entry->key, entry->text);
        char *place = s4d_asprintf("%s:%d", entry->file, entry->line);
        s4d_texts_add(set, setting);
        s4d_texts_add(&d->places, place);
        free(setting);
        free(place);
        return 0;
    }
    char *where = s4d_asprintf("%s:%d: %s", entry->file, entry->line, entry->key);
    int rc = add(d, (enum s4d_difference_part)part, name, entry->text, where, S4D_EXIT_DATA, err);
    free(where);
    return rc;
}

static int read_section(struct s4d_differences *d, const struct s4d_yaml_node *section,
                        struct s4d_texts *set, struct s4d_error *err)
{
    int part = 0;
    while (part < PARTS && strcmp(section->key, parts[part]) != 0)
        part++;
    if (part == PARTS && strcmp(section->key, "set") != 0)
        return s4d_yaml_fail(section, err,
                             "unknown key; expected links, nics, devices, rates or set");
    if (section->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(section, err, "expected NAME: VALUE lines");
    for (int i = 0; i < section->n; i++)
        if (read_entry(d, part, section->child[i], set, err))
            return -1;
    return 0;
}

int s4d_differences_parse(struct s4d_differences *d, const char *file, const char *text, size_t n,
                          struct s4d_texts *set, struct s4d_error *err)
{
    struct s4d_yaml_node *root;
    if (s4d_yaml_parse(file, text, n, &root, err))
        return -1;
    int rc = root->kind == S4D_YAML_MAPPING
                 ? 0
                 : s4d_yaml_fail(root, err, "expected links, nics, devices, rates or set");
    for (int i = 0; i < root->n && rc == 0; i++)
        rc = read_section(d, root->child[i], set, err);
    s4d_yaml_free(root);
    return rc ? -1 : 0;
}

void s4d_differences_locate(const struct s4d_differences *d, const struct s4d_texts *set,
                            struct s4d_error *err)
{
    if (strncmp(err->where, "--set ", 6) != 0)
        return;
    const char *key = err->where + 6;
    size_t n = strlen(key);
    for (int i = set->n - 1; i >= 0; i--) /* the last says what holds */
        if (strncmp(set->v[i], key, n) == 0 && set->v[i][n] == '=') {
            if (i >= d->places.n) /* of the command line */
                return;
            char *where = s4d_asprintf("%s: %s", d->places.v[i], key);
            snprintf(err->where, sizeof err->where, "%s", where);
            err->exit = S4D_EXIT_DATA;
            free(where);
            return;
        }
}

int s4d_differences_read(struct s4d_differences *d, const char *file, struct s4d_texts *set,
                         struct s4d_error *err)
{
    char *bytes = NULL;
    size_t n;
    if (s4d_file_read(file, &bytes, &n, err))
        return -1;
    int rc = s4d_differences_parse(d, file, bytes, n, set, err);
    free(bytes);
    return rc;
}

void s4d_differences_free(struct s4d_differences *d)
{
    for (int i = 0; i < d->n; i++) {
        free(d->v[i].name);
        free(d->v[i].text);
        free(d->v[i].where);
    }
    free(d->v);
    s4d_texts_free(&d->places);
    *d = (struct s4d_differences){0};
}

static bool is_nic(const struct s4d_link *link)
{
    return strcmp(link->kind, "nic-out") == 0 || strcmp(link->kind, "nic-in") == 0;
}

static bool matches(const struct s4d_difference *x, const struct s4d_cluster *c, int link)
{
    if (x->part == S4D_NICS && !is_nic(&c->links[link]))
        return false;
    char *name = s4d_link_name(c, link);
    if (x->part == S4D_NICS)
        *strrchr(name, '.') = '\0'; /* "n3.nic0", of .out and .in */
    bool same = fnmatch(x->name, name, 0) == 0;
    free(name);
    return same;
}

/* The links to look at: those of one node when the name begins with it, so that most of a large
 * machine need not be named. */
static void range(const struct s4d_difference *x, const struct s4d_cluster *c, int *from, int *to)
{
    int per_node = s4d_links_per_node(c);
    size_t n = x->name[0] == 'n' ? strspn(x->name + 1, "0123456789") : 0;
    *from = 0;
    *to = c->n_links;
    if (n > 0 && x->name[1 + n] == '.') {
        int node = n < 10 ? atoi(x->name + 1) : INT_MAX;
        *from = node < c->n_nodes ? node * per_node : 0;
        *to = node < c->n_nodes ? *from + per_node : 0;
    }
}

static bool apply_links(const struct s4d_difference *x, struct s4d_cluster *c)
{
    bool found = false;
    int from, to;
    range(x, c, &from, &to);
    for (int i = from; i < to; i++)
        if (matches(x, c, i)) {
            found = true;
            c->links[i].capacity_Bps =
                isnan(x->part_of) ? x->Bps : c->links[i].capacity_Bps * x->part_of;
        }
    return found;
}

static bool apply_devices(const struct s4d_difference *x, struct s4d_cluster *c)
{
    bool found = false;
    for (int i = 0; i < c->n_devices; i++) {
        char *name = s4d_device_name(c, i);
        if (fnmatch(x->name, name, 0) == 0) {
            c->device_speed[i] *= x->part_of;
            found = true;
        }
        free(name);
    }
    return found;
}

/* Names that there are, as an example. */
static int unknown(const struct s4d_difference *x, const struct s4d_cluster *c,
                   struct s4d_error *err)
{
    s4d_fail(err, x->exit, x->where, "names no %.*s of %s", (int)strlen(parts[x->part]) - 1,
             parts[x->part], c->machine->name);
    char *first = x->part == S4D_DEVICES ? s4d_device_name(c, 0)
                  : c->n_links > 0       ? s4d_link_name(c, 0)
                                         : s4d_strdup("none"),
         *last = x->part == S4D_DEVICES ? s4d_device_name(c, c->n_devices - 1)
                 : c->n_links > 0       ? s4d_link_name(c, c->n_links - 1)
                                        : s4d_strdup("none");
    if (x->part == S4D_NICS)
        s4d_hint(err, "they are called n0.nic0 to n%d.nic%d", c->n_nodes - 1,
                 c->machine->node.n_nics - 1);
    else
        s4d_hint(err, "they are called as `scale4d route` shows: %s to %s", first, last);
    free(first);
    free(last);
    return -1;
}

bool s4d_differences_of_parts(const struct s4d_differences *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->v[i].part != S4D_RATES)
            return true;
    return false;
}

const char *s4d_differences_rates(const struct s4d_differences *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->v[i].part == S4D_RATES)
            return d->v[i].text;
    return NULL;
}

int s4d_differences_apply(const struct s4d_differences *d, struct s4d_cluster *c,
                          struct s4d_error *err)
{
    for (int i = 0; i < d->n; i++) {
        const struct s4d_difference *x = &d->v[i];
        if (x->part == S4D_RATES)
            s4d_rates_apply(&c->rates, x->name, x->part_of);
        else if (!(x->part == S4D_DEVICES ? apply_devices(x, c) : apply_links(x, c)))
            return unknown(x, c, err);
    }
    return 0;
}
