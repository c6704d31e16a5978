/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a command line. argp reads it; a scan before it finds every error, because argp
 * would take abbreviations, print messages of its own and exit. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/nearest.h"
#include "support/option_field.h"
#include "support/option_help.h"
#include "support/quote.h"

enum { KEY_FIRST = 0x100, KEY_HELP = '?', KEY_H = 'h', KEY_USAGE = 0x80000 };

struct command {
    const struct s4d_option **option;
    void **field;
    int n;
    struct s4d_texts *positional;
    const struct argp *argp;
    char *help; /* with the defaults, before any option is set */
    struct s4d_error *err;
    bool helped;
};

/* --- the scan ------------------------------------------------------------------------------ */

static int find_long(const struct command *c, const char *name, size_t length)
{
    for (int i = 0; i < c->n; i++) {
        if (strlen(c->option[i]->name) == length && strncmp(c->option[i]->name, name, length) == 0)
            return i;
    }
    return -1;
}

static int find_short(const struct command *c, char letter)
{
    for (int i = 0; i < c->n; i++) {
        if (c->option[i]->key && c->option[i]->key == letter)
            return i;
    }
    return -1;
}

static int fail_unknown_long(const struct command *c, const char *name)
{
    const char **names = s4d_calloc((size_t)c->n + 2, sizeof *names);
    for (int i = 0; i < c->n; i++)
        names[i] = c->option[i]->name;
    names[c->n] = "help";
    names[c->n + 1] = "usage";
    const char *near = s4d_nearest(name, names, c->n + 2);
    free(names);
    char text[80];
    snprintf(text, sizeof text, "--%.70s", name);
    s4d_fail(c->err, S4D_EXIT_USAGE, "", "unknown option %s", s4d_quote(text).text);
    return near ? s4d_hint(c->err, "did you mean --%s?", near)
                : s4d_hint(c->err, "--help lists the options");
}

static int fail_where(const struct command *c, const char *name, const char *text)
{
    char where[90];
    snprintf(where, sizeof where, "--%.80s", name);
    return s4d_fail(c->err, S4D_EXIT_USAGE, where, "%s", text);
}

/* Checks the long option argv[*i]; moves *i to its value where that is the next argument. */
static int scan_long(const struct command *c, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if (!equals && (strcmp(name, "help") == 0 || strcmp(name, "usage") == 0))
        return 0;
    int at = find_long(c, name, length);
    if (at < 0) {
        char *given = s4d_strdup(name);
        given[length] = '\0';
        int rc = fail_unknown_long(c, given);
        free(given);
        return rc;
    }
    const struct s4d_option *o = c->option[at];
    if (o->type == S4D_OPT_FLAG)
        return equals ? fail_where(c, o->name, "expected no value") : 0;
    if (!equals && !o->bare && ++*i >= argc)
        return fail_where(c, o->name, "expected a value, found the end of the line");
    return 0;
}

/* The same for short ones: "-b 8", "-b8", "-vb8". */
static int scan_short(const struct command *c, int argc, char **argv, int *i)
{
    for (const char *letter = argv[*i] + 1; *letter; letter++) {
        int at = find_short(c, *letter);
        if (*letter == KEY_HELP || (*letter == KEY_H && at < 0))
            continue;
        char text[3] = {'-', *letter, '\0'};
        if (at < 0) {
            s4d_fail(c->err, S4D_EXIT_USAGE, "", "unknown option %s", s4d_quote(text).text);
            return s4d_hint(c->err, "--help lists the options");
        }
        if (c->option[at]->type == S4D_OPT_FLAG)
            continue;
        if (letter[1] == '\0' && ++*i >= argc)
            return s4d_fail(c->err, S4D_EXIT_USAGE, text,
                            "expected a value, found the end of the line");
        return 0;
    }
    return 0;
}

static int scan(const struct command *c, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        int rc = 0;
        if (strncmp(argv[i], "--", 2) == 0)
            rc = scan_long(c, argc, argv, &i);
        else if (argv[i][0] == '-' && argv[i][1])
            rc = scan_short(c, argc, argv, &i);
        if (rc)
            return -1;
    }
    return 0;
}

/* --- argp ---------------------------------------------------------------------------------- */

static int set(struct command *c, int at, const char *text)
{
    const struct s4d_option *o = c->option[at];
    if (s4d_option_set(o, c->field[at],
                       text      ? text
                       : o->bare ? o->bare
                                 : "true",
                       S4D_FROM_ARGV, c->err) == 0)
        return 0;
    if (c->err && c->err->where[0] == '\0')
        snprintf(c->err->where, sizeof c->err->where, "--%s", o->name);
    if (c->err)
        c->err->exit = S4D_EXIT_USAGE;
    return EINVAL;
}

static int add_positional(struct command *c, const char *text)
{
    if (c->positional) {
        s4d_texts_add(c->positional, text);
        return 0;
    }
    s4d_fail(c->err, S4D_EXIT_USAGE, "", "expected options only, found %s", s4d_quote(text).text);
    return EINVAL;
}

/* The usage line not by argp_state_help: it is silent under ARGP_NO_ERRS. */
static int help(struct command *c, struct argp_state *state, bool whole)
{
    if (whole)
        fputs(c->help, stdout);
    else
        argp_help(c->argp, stdout, ARGP_HELP_USAGE, state->name);
    c->helped = true;
    return ECANCELED;
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    struct command *c = state->input;
    if (key == ARGP_KEY_ARG)
        return add_positional(c, text);
    if (key == KEY_HELP || (key == KEY_H && find_short(c, KEY_H) < 0))
        return help(c, state, true);
    if (key == KEY_USAGE)
        return help(c, state, false);
    if (key >= KEY_FIRST && key < KEY_FIRST + c->n)
        return set(c, key - KEY_FIRST, text);
    int at = key > 0 && key < KEY_FIRST ? find_short(c, (char)key) : -1;
    return at < 0 ? ARGP_ERR_UNKNOWN : set(c, at, text);
}

/* What argp parses, and its usage line shows. */
static struct argp_option *argp_rows(const struct command *c)
{
    struct argp_option *rows = NULL;
    int n = 0, cap = 0;
    for (int k = 0; k < c->n; k++) {
        const struct s4d_option *o = c->option[k];
        const char *argument = o->argument ? o->argument : "VALUE";
        s4d_push(rows, n, cap,
                 (struct argp_option){.name = o->name,
                                      .key = o->key ? o->key : KEY_FIRST + k,
                                      .arg = o->type == S4D_OPT_FLAG ? NULL : argument,
                                      .flags = o->bare ? OPTION_ARG_OPTIONAL : 0});
    }
    s4d_push(rows, n, cap, (struct argp_option){.name = "help", .key = KEY_HELP});
    if (find_short(c, KEY_H) < 0) /* of those used to it; help lists -? */
        s4d_push(rows, n, cap, (struct argp_option){.key = KEY_H, .flags = OPTION_HIDDEN});
    s4d_push(rows, n, cap, (struct argp_option){.name = "usage", .key = KEY_USAGE});
    s4d_push(rows, n, cap, (struct argp_option){.name = NULL});
    return rows;
}

/* argp moves positional arguments to the end of the array it is given: not of the caller's, which
 * the record keeps. */
static int run_argp(struct command *c, const struct argp *argp, int argc, char **argv)
{
    size_t bytes = ((size_t)argc + 1) * sizeof *argv;
    char **copy = memcpy(s4d_malloc(bytes), argv, bytes);
    c->argp = argp;
    int rc = argp_parse(argp, argc, copy, ARGP_NO_EXIT | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, c);
    free(copy);
    S4D_ASSERT(rc == 0 || rc == EINVAL || rc == ECANCELED, "argp returns %d", rc);
    return c->helped ? 1 : rc ? -1 : 0;
}

static char *render(const char *others, const char *summary, const struct s4d_option_group *groups,
                    void *config, const char *command)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    S4D_ASSERT(out, "no memory for the help");
    s4d_option_help(out, command, others, summary, groups, config);
    fclose(out);
    return text;
}

int s4d_options_argv(const struct s4d_option_group *groups, const char *summary, int argc,
                     char **argv, void *config, struct s4d_texts *positional, struct s4d_error *err)
{
    struct command c = {.positional = positional, .err = err};
    const char *others = !positional ? NULL : positional->usage ? positional->usage : "[NAME...]";
    c.n = s4d_option_flatten(groups, config, &c.option, &c.field);
    int rc = scan(&c, argc, argv);
    if (!rc) {
        struct argp_option *rows = argp_rows(&c);
        struct argp argp = {.options = rows, .parser = on_option, .args_doc = others};
        c.help = render(others, summary, groups, config, argv[0]);
        rc = run_argp(&c, &argp, argc, argv);
        free(c.help);
        free(rows);
    }
    free(c.option);
    free(c.field);
    return rc;
}
