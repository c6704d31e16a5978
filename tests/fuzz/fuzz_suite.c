/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a night's suite: refused with file:line, or experiments with names of their own and
 * limits that are times. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "real/suite.h"
#include "schedule/schedule_options.h"

struct config {
    struct s4d_schedule_options schedule;
    char *workload;
    int iterations;
    struct s4d_texts set;
};

static const struct s4d_option own[] = {
    {.name = "workload", .type = S4D_OPT_TEXT, .offset = offsetof(struct config, workload)},
    {.name = "iterations",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct config, iterations),
     .min = 1,
     .max = 100},
    {.name = "set", .type = S4D_OPT_LIST, .offset = offsetof(struct config, set)},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Run", .options = own},
                                                 {.title = "Schedule",
                                                  .options = s4d_schedule_options,
                                                  .offset = offsetof(struct config, schedule)},
                                                 {.title = NULL}};
static const char *const refused[] = {"set", NULL};

static void check(const struct s4d_suite *s)
{
    S4D_ASSERT(s->name[0] && !strchr(s->name, '\n'), "the suite's name");
    S4D_ASSERT(s->repeats >= 1 && s->repeats <= 1000, "%d", s->repeats);
    S4D_ASSERT(isfinite(s->time_limit_s) && s->time_limit_s >= 0, "%g", s->time_limit_s);
    S4D_ASSERT(s->n > 0, "%d experiments", s->n);
    for (int i = 0; i < s->n; i++) {
        const struct s4d_suite_experiment *e = &s->v[i];
        const struct config *c = e->config;
        S4D_ASSERT(e->name[0] && !strchr(e->name, '\n') && e->node, "experiment %d", i);
        S4D_ASSERT(isfinite(e->time_limit_s) && e->time_limit_s >= 0, "%g", e->time_limit_s);
        S4D_ASSERT(c->iterations >= 1 && c->iterations <= 100 && c->set.n == 0, "%d", i);
        for (int k = 0; k < i; k++)
            S4D_ASSERT(strcmp(e->name, s->v[k].name) != 0, "%s", e->name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct config defaults = {.schedule = s4d_schedule_options_default(), .iterations = 10};
    const struct s4d_suite_options how = {groups, &defaults, sizeof defaults, refused};
    struct s4d_yaml_node *root;
    struct s4d_suite s;
    struct s4d_error err = {0};
    if (s4d_yaml_parse("fuzz.yaml", (const char *)data, n, &root, &err))
        return 0;
    if (s4d_suite_make(&s, root, "fuzz", &how, &err) == 0)
        check(&s);
    else
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA &&
                       strncmp(err.where, "fuzz.yaml:", 10) == 0,
                   "%s: '%s'", err.where, err.text);
    s4d_suite_free(&s);
    return 0;
}
