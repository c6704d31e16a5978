/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, loading and freeing machines. */
#include "support/machine.h"

#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/machine_fields.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/record.h"

static const char synthetic[] = "synthetic:";

static char *folder(void)
{
    const char *other = getenv("SCALE4D_MACHINES");
    return other && *other ? s4d_strdup(other) : s4d_asprintf("%s/sim/machines", s4d_data_folder());
}

int s4d_machine_names(char ***names)
{
    char *path = folder();
    int n = s4d_file_names(path, names);
    free(path);
    return n;
}

/* The file of a machine by name; NULL with *err when there is none. */
static char *find(const char *name, struct s4d_error *err)
{
    if (s4d_is_path(name))
        return s4d_strdup(name);
    char **names, *path = NULL;
    int n = s4d_machine_names(&names);
    for (int i = 0; i < n && !path; i++) {
        if (strcmp(names[i], name) == 0) {
            char *dir = folder();
            path = s4d_asprintf("%s/%s.yaml", dir, name);
            free(dir);
        }
    }
    if (!path) {
        s4d_fail(err, S4D_EXIT_DATA, "--machine", "unknown machine %s", s4d_quote(name).text);
        s4d_hint_file(err, name, (const char *const *)names, n);
    }
    s4d_names_free(names, n);
    return path;
}

/* The file's name without folder and extension. */
static void set_name(struct s4d_machine *m, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    snprintf(m->name, sizeof m->name, "%s", base);
    char *dot = strstr(m->name, ".yaml");
    if (dot)
        *dot = '\0';
}

/* Hash of the contents and every override, each behind a newline. */
static void set_hash(struct s4d_machine *m, const char *text, size_t n, const char *const *set,
                     int n_set)
{
    size_t size = n;
    for (int i = 0; i < n_set; i++)
        size += 1 + strlen(set[i]);
    char *all = s4d_malloc(size + 1), *end = all + n;
    memcpy(all, text, n);
    for (int i = 0; i < n_set; i++) {
        *end++ = '\n';
        memcpy(end, set[i], strlen(set[i]));
        end += strlen(set[i]);
    }
    s4d_hash(all, size, m->hash);
    free(all);
}

static int finish(struct s4d_machine *m, const char *text, size_t n, const char *const *set,
                  int n_set, struct s4d_error *err)
{
    for (int i = 0; i < n_set; i++)
        if (s4d_machine_override_topology(m, set[i], err) < 0)
            return -1;
    for (int i = 0; i < n_set; i++)
        if (strncmp(set[i], "fabric.topology=", 16) != 0 && s4d_machine_override(m, set[i], err))
            return -1;
    set_hash(m, text, n, set, n_set);
    return 0;
}

int s4d_machine_parse(struct s4d_machine *m, const char *file, const char *text, size_t n,
                      const char *const *set, int n_set, struct s4d_error *err)
{
    *m = (struct s4d_machine){.file = s4d_strdup(file)};
    set_name(m, file);
    if (s4d_machine_read(m, m->file, text, n, err) || finish(m, text, n, set, n_set, err)) {
        s4d_machine_free(m);
        return -1;
    }
    return 0;
}

static int load_line(struct s4d_machine *m, const char *name, const char *const *set, int n_set,
                     struct s4d_error *err)
{
    *m = (struct s4d_machine){.file = s4d_strdup(name)};
    if (s4d_machine_synthetic(m, name + strlen(synthetic), err) ||
        finish(m, name, strlen(name), set, n_set, err)) {
        s4d_machine_free(m);
        return -1;
    }
    return 0;
}

int s4d_machine_load(struct s4d_machine *m, const char *name, const char *const *set, int n_set,
                     struct s4d_error *err)
{
    *m = (struct s4d_machine){0};
    if (strncmp(name, synthetic, strlen(synthetic)) == 0)
        return load_line(m, name, set, n_set, err);
    char *bytes = NULL, *file = find(name, err);
    size_t n;
    if (!file)
        return -1;
    int rc = s4d_file_read(file, &bytes, &n, err);
    if (!rc)
        rc = s4d_machine_parse(m, file, bytes, n, set, n_set, err);
    free(bytes);
    free(file);
    return rc;
}

static void free_curve(struct s4d_curve *c)
{
    free(c->x);
    free(c->y);
    free(c->source);
}

static void free_device(struct s4d_device *d)
{
    free_curve(&d->memory_efficiency);
    for (int i = 0; i < d->n_attention; i++)
        free_curve(&d->attention[i].flops_per_s);
    free(d->attention);
    for (int i = 0; i < d->n_kernels; i++)
        free_curve(&d->kernel[i].bandwidth_Bps);
    free(d->kernel);
    free(d->gemm.row);
    free(d->gemm.source);
}

void s4d_node_clear(struct s4d_node *node)
{
    for (int i = 0; i < node->n_links; i++)
        free(node->link[i].brick_bandwidth_Bps.source);
    free(node->link);
    free(node->nic);
    free(node->rank_to_device);
    free(node->layout.source);
    node->link = NULL;
    node->nic = NULL;
    node->rank_to_device = NULL;
    node->layout.source = NULL;
    node->devices = node->switches = node->n_links = node->n_nics = 0;
}

void s4d_parameters_clear(struct s4d_fabric *fabric)
{
    for (int i = 0; i < fabric->n_parameters; i++)
        free(fabric->parameter[i].value.source);
    fabric->n_parameters = 0;
}

void s4d_machine_free(struct s4d_machine *m)
{
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        for (int i = 0; i < f->count; i++)
            free(s4d_field_quantity(m, f)[i].source);
    }
    free_device(&m->device);
    s4d_node_clear(&m->node);
    s4d_parameters_clear(&m->fabric);
    free(m->fabric.parameter);
    free(m->fabric.file);
    free(m->fabric.hosts);
    free(m->fabric.nodes_origin.source);
    for (int i = 0; i < m->library.n_tables; i++) {
        free(m->library.table[i].row);
        free(m->library.table[i].source);
    }
    free(m->library.table);
    free(m->description);
    free(m->file);
    *m = (struct s4d_machine){0};
}
