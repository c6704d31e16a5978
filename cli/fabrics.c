/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d fabrics: the topologies known and the parameters each needs. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cli/command.h"
#include "sim/fabric.h"
#include "support/nearest.h"
#include "support/option.h"
#include "support/quote.h"
#include "support/record.h"

struct options {
    bool json;
};
static const struct s4d_option rows[] = {
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print one JSON line"},
    {0},
};
static const struct s4d_option_group groups[] = {{"Options", rows, 0}, {0}};

/* What stands for a parameter that a machine does not give. */
static void format_missing(const struct s4d_fabric_parameter *p, char *text, size_t size)
{
    if (!p->optional)
        snprintf(text, size, "required");
    else if (p->choices)
        snprintf(text, size, "%s", p->choices[(int)p->missing]);
    else if (isinf(p->missing))
        snprintf(text, size, "derived");
    else
        snprintf(text, size, "%g", p->missing);
}

static void format_range(const struct s4d_fabric_parameter *p, char *text, size_t size)
{
    size_t n = 0;
    for (int i = 0; p->choices && p->choices[i] && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? " | " : "", p->choices[i]);
    if (!p->choices)
        snprintf(text, size, "%g to %g", p->min, p->max);
}

static void print_wrapped(const char *text)
{
    int at = 0;
    for (const char *word = text; *word;) {
        int n = (int)strcspn(word, " ");
        if (at > 0 && at + 1 + n > 98)
            at = 0;
        printf("%s%.*s", at ? " " : word == text ? "# " : "\n# ", n, word);
        at += (at > 0) + n;
        word += n + strspn(word + n, " ");
    }
    printf("\n");
}

/* The section of a machine file, with every key, what may stand there and what it means. */
static void print_keys(const struct s4d_fabric_kind *f)
{
    if (f->description)
        print_wrapped(f->description);
    if (!f->example)
        return;
    printf("# in a machine file, each value as { value: V, tag: T, source: S }, under `fabric:` "
           "with\n#   topology: %s\n#   nodes: of the machine\n#   latency_s: end to end between "
           "two devices of different nodes\n",
           f->name);
    printf("%-24s %-9s %-18s %s\n", "# key", "missing", "values", "meaning");
    for (const struct s4d_fabric_parameter *p = f->parameter; p->key; p++) {
        char missing[32], range[64];
        format_missing(p, missing, sizeof missing);
        format_range(p, range, sizeof range);
        printf("  %-22s %-9s %-18s %s\n", p->key, missing, range, p->summary);
    }
    printf("# in one line: synthetic:%s,nodes=64,nic=50GB/s,latency=2us,peak=312TFLOP/s\n",
           f->example);
    printf("# on another machine: --set fabric.topology=%s --set fabric.KEY=VALUE ...\n", f->name);
}

static void print(const struct s4d_fabric_kind *f, bool keys)
{
    printf("%-16s %s\n", f->name, f->summary);
    if (keys)
        print_keys(f);
}

static json_t *describe(const struct s4d_fabric_kind *f)
{
    json_t *parameters = json_object();
    for (const struct s4d_fabric_parameter *p = f->parameter; p->key; p++)
        json_object_set_new(parameters, p->key, json_string(p->summary));
    return json_pack("{s:s, s:s, s:o}", "name", f->name, "summary", f->summary, "parameters",
                     parameters);
}

static int show(const struct s4d_texts *names, bool json, int argc, char **argv,
                struct s4d_error *err)
{
    json_t *all = json_array();
    for (int i = 0; s4d_fabrics[i]; i++) {
        if (names->n == 1 && strcmp(names->v[0], s4d_fabrics[i]->name) != 0)
            continue;
        if (json)
            json_array_append_new(all, describe(s4d_fabrics[i]));
        else
            print(s4d_fabrics[i], names->n == 1);
    }
    if (!json) {
        json_decref(all);
        return 0;
    }
    json_t *record = json_pack("{s:s, s:o, s:o}", "kind", "fabrics", "fabrics", all, "provenance",
                               s4d_provenance(argc, argv));
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static int unknown(const char *name, struct s4d_error *err)
{
    const char *known[64];
    int n = 0;
    for (; s4d_fabrics[n] && n < 64; n++)
        known[n] = s4d_fabrics[n]->name;
    s4d_fail(err, S4D_EXIT_DATA, "", "unknown fabric %s", s4d_quote(name).text);
    return s4d_hint_nearest(err, name, known, n);
}

static int run(int argc, char **argv)
{
    struct s4d_error err = {0};
    struct options o = {0};
    struct s4d_texts names = {0};
    int rc =
        s4d_options_argv(groups, "Lists the network topologies known. With a NAME: its parameters.",
                         argc, argv, &o, &names, &err);
    if (rc == 0 && names.n > 1)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected one fabric, found %d", names.n);
    if (rc == 0 && names.n == 1 && !s4d_fabric_find(names.v[0]))
        rc = unknown(names.v[0], &err);
    if (rc == 0)
        rc = show(&names, o.json, argc, argv, &err);
    s4d_texts_free(&names);
    s4d_options_free(groups, &o);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_fabrics = {
    .name = "fabrics",
    .summary = "the network topologies known; with a name, its parameters",
    .run = run,
    .options = groups,
    .names = "fabrics",
};
