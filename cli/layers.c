/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d layers: the registry of layer kinds. */
#include <stddef.h>
#include <stdio.h>

#include "cli/command.h"
#include "schedule/layer.h"
#include "support/nearest.h"
#include "support/option.h"
#include "support/quote.h"
#include "workloads/workload.h"

struct config {
    char *workload;
};

static const struct s4d_option options[] = {
    {.name = "workload",
     .argument = "W",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, workload),
     .help = "the model that sizes and FLOPs are given for (default gpt2-124m)"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{"Options", options, 0}, {0}};

static void list(void)
{
    printf("# %-22s %-10s %s\n", "name", "slot", "summary");
    for (int i = 0; s4d_layer_kinds[i]; i++)
        printf("%-24s %-10s %s\n", s4d_layer_kinds[i]->name,
               s4d_slot_names[s4d_layer_kinds[i]->slot], s4d_layer_kinds[i]->summary);
}

static int describe(const char *name, const struct s4d_model *m, struct s4d_error *err)
{
    const struct s4d_layer_kind *k = s4d_layer_kind_find(name);
    if (!k) {
        const char *names[64];
        int n = 0;
        for (; s4d_layer_kinds[n] && n < 64; n++)
            names[n] = s4d_layer_kinds[n]->name;
        const char *near = s4d_nearest(name, names, n);
        s4d_fail(err, S4D_EXIT_DATA, "", "unknown layer kind %s", s4d_quote(name).text);
        return near ? s4d_hint(err, "did you mean %s?", near)
                    : s4d_hint(err, "scale4d layers lists them");
    }
    printf("name              %s\n", k->name);
    printf("slot              %s\n", s4d_slot_names[k->slot]);
    printf("summary           %s\n", k->summary);
    printf("tensors           %s\n", k->tensors);
    printf("source            %s\n", k->source);
    printf("parameters        %.0f in one layer of %s\n", k->parameters(m), m->name);
    printf("forward FLOP      %.0f per sequence of %d tokens in one layer of %s, by the model\n",
           k->forward_flops(m), m->seq_length, m->name);
    return 0;
}

static int show(const struct config *c, const struct s4d_texts *names, struct s4d_error *err)
{
    if (names->n == 0 && !c->workload) {
        list();
        return 0;
    }
    if (names->n == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "", "expected the name of a layer kind");
    struct s4d_workload w;
    if (s4d_workload_load(&w, c->workload ? c->workload : "gpt2-124m", err) != 0)
        return -1;
    int rc = 0;
    for (int i = 0; i < names->n && rc == 0; i++) {
        if (i > 0)
            putchar('\n');
        rc = describe(names->v[i], &w.model, err);
    }
    s4d_workload_free(&w);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {0};
    struct s4d_texts names = {0};
    struct s4d_error err;
    int rc = s4d_options_argv(
        groups, "Lists the layer kinds. With NAMEs: their tensors, sizes and sources.", argc, argv,
        &c, &names, &err);
    if (rc == 0)
        rc = show(&c, &names, &err);
    s4d_options_free(groups, &c);
    s4d_texts_free(&names);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_layers = {
    .name = "layers",
    .summary = "the layer kinds a model is made of",
    .run = run,
    .options = groups,
    .names = "layers",
};
