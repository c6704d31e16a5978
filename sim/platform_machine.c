/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/platform_machine.h"

#include <stdlib.h>
#include <string.h>

#include "sim/platform.h"
#include "sim/platform_child.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/record.h"

bool s4d_is_platform(const char *machine)
{
    size_t n = strlen(machine);
    return n > 4 && strcmp(machine + n - 4, ".xml") == 0;
}

static int probe_pair(struct s4d_platform *p, int a, int b, double *latency_s,
                      struct s4d_error *err)
{
    int links[S4D_PLATFORM_LINKS];
    double way_s = 0;
    if (a == b)
        return 0;
    if (s4d_platform_route(p, a, b, links, S4D_PLATFORM_LINKS, &way_s) <= 0)
        return s4d_fail(err, S4D_EXIT_DATA, p->file, "no way from %s to %s", p->host[a],
                        p->host[b]);
    *latency_s = way_s > *latency_s ? way_s : *latency_s;
    return 0;
}

/* Every host to its neighbour and back, and to and from the first. */
static int probe(struct s4d_platform *p, double *latency_s, struct s4d_error *err)
{
    *latency_s = 0;
    for (int i = 1; i < p->n_hosts; i++)
        if (probe_pair(p, i - 1, i, latency_s, err) || probe_pair(p, i, i - 1, latency_s, err) ||
            probe_pair(p, 0, i, latency_s, err) || probe_pair(p, i, 0, latency_s, err))
            return -1;
    return 0;
}

static void replace_fabric(struct s4d_machine *m, const struct s4d_platform *p, const char *hosts,
                           double latency_s)
{
    struct s4d_fabric *f = &m->fabric;
    s4d_parameters_clear(f);
    snprintf(f->topology, sizeof f->topology, "simgrid");
    f->line = 0;
    f->nodes = p->n_hosts;
    f->file = s4d_strdup(p->file);
    f->hosts = hosts ? s4d_strdup(hosts) : NULL;
    free(f->nodes_origin.source);
    f->nodes_origin = (struct s4d_origin){S4D_TAG_READ, s4d_strdup(p->file)};
    free(f->latency_s.source);
    f->latency_s = (struct s4d_quantity){latency_s, S4D_TAG_READ, s4d_strdup(p->file)};
}

/* "cluster.xml with perlmutter"; the hash is of the file, the hosts chosen and the other machine
 * with its overrides. */
static int rename_machine(struct s4d_machine *m, const char *file, const char *hosts,
                          const char *const *set, int n_set, struct s4d_error *err)
{
    char *bytes = NULL, name[sizeof m->name];
    size_t n;
    if (s4d_file_read(file, &bytes, &n, err))
        return -1;
    const char *slash = strrchr(file, '/');
    snprintf(name, sizeof name, "%.31s with %.25s", slash ? slash + 1 : file, m->name);
    snprintf(m->name, sizeof m->name, "%s", name);
    free(m->file);
    m->file = s4d_strdup(file);
    char *all = s4d_asprintf("%s\n%s\n%s", m->hash, hosts ? hosts : "", bytes);
    for (int i = 0; i < n_set; i++) {
        char *longer = s4d_asprintf("%s\n%s", all, set[i]);
        free(all);
        all = longer;
    }
    s4d_hash(all, strlen(all), m->hash);
    free(all);
    free(bytes);
    return 0;
}

static bool is_of_fabric(const char *setting)
{
    return strncmp(setting, "fabric.", 7) == 0;
}

static int make(struct s4d_machine *m, struct s4d_platform *p, const char *hosts,
                const char *const *set, int n_set, struct s4d_error *err)
{
    double latency_s;
    if (probe(p, &latency_s, err))
        return -1;
    replace_fabric(m, p, hosts, latency_s);
    for (int i = 0; i < n_set; i++)
        if (is_of_fabric(set[i]) && s4d_machine_override(m, set[i], err))
            return -1;
    if (m->fabric.nodes > p->n_hosts)
        return s4d_fail(err, S4D_EXIT_USAGE, "--set fabric.nodes", "%d, but %s has %d hosts",
                        m->fabric.nodes, p->file, p->n_hosts);
    return rename_machine(m, p->file, hosts, set, n_set, err);
}

int s4d_platform_machine(struct s4d_machine *m, const char *file, const char *hosts,
                         const char *device, const char *const *set, int n_set,
                         struct s4d_error *err)
{
    char *bytes = NULL;
    size_t n;
    *m = (struct s4d_machine){.file = NULL};
    if (s4d_file_read(file, &bytes, &n, err)) /* before SimGrid, for the message */
        return -1;
    free(bytes);
    const char **others = s4d_malloc(((size_t)n_set + 1) * sizeof *others);
    int n_others = 0;
    for (int i = 0; i < n_set; i++)
        if (!is_of_fabric(set[i]))
            others[n_others++] = set[i];
    int rc = s4d_machine_load(m, device, others, n_others, err);
    free(others);
    if (rc)
        return -1;
    struct s4d_platform *p = s4d_platform_open(file, hosts, err);
    rc = p ? make(m, p, hosts, set, n_set, err) : -1;
    s4d_platform_close(p);
    if (rc)
        s4d_machine_free(m);
    return rc ? -1 : 0;
}
