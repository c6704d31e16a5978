/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d collectives: the algorithms that are known. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "sim/collective.h"
#include "support/nearest.h"
#include "support/option.h"
#include "support/quote.h"

static void print_ops(const struct s4d_algorithm *a, char *text, size_t size)
{
    text[0] = '\0';
    for (int op = 0; op < S4D_COLLECTIVE_OPS; op++)
        if (a->supports(op)) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", used ? ", " : "", s4d_collective_name(op));
        }
}

static void print_one(const struct s4d_algorithm *a, bool details)
{
    char ops[256];
    print_ops(a, ops, sizeof ops);
    printf("%-12s %s\n", a->name, ops);
    if (details)
        printf("  %s\n  source: %s\n", a->summary, a->source);
}

static const struct s4d_algorithm *find(const char *name, struct s4d_error *err)
{
    const char *names[64];
    int n = 0;
    for (; s4d_algorithms[n]; n++) {
        names[n] = s4d_algorithms[n]->name;
        if (strcmp(names[n], name) == 0)
            return s4d_algorithms[n];
    }
    s4d_fail(err, S4D_EXIT_DATA, "", "unknown collective algorithm %s", s4d_quote(name).text);
    s4d_hint_nearest(err, name, names, n);
    return NULL;
}

static int run(int argc, char **argv)
{
    static const struct s4d_option_group none[] = {{0}};
    struct s4d_error err = {0};
    struct s4d_texts names = {0};
    int unused;
    int rc = s4d_options_argv(none,
                              "Lists the collective algorithms and their operations. With a NAME: "
                              "what it does, and its source.",
                              argc, argv, &unused, &names, &err);
    for (int i = 0; rc == 0 && names.n == 0 && s4d_algorithms[i]; i++)
        print_one(s4d_algorithms[i], false);
    for (int i = 0; i < names.n && rc == 0; i++) {
        const struct s4d_algorithm *a = find(names.v[i], &err);
        if (a)
            print_one(a, true);
        else
            rc = -1;
    }
    s4d_texts_free(&names);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_collectives = {
    .name = "collectives",
    .summary = "the collective algorithms; with a name, what it does and its source",
    .run = run,
    .names = "collectives",
};
