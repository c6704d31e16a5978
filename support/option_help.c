/* SPDX-License-Identifier: Apache-2.0 */
#include "support/option_help.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/option_field.h"

/* argp's columns: of a short option, a long one, a text; of the last character. */
enum { SHORT = 2, LONG = 6, TEXT = 29, LAST = 79 };

/* Words, from column `at` on; further lines begin at column `margin`. */
static void wrap(FILE *out, const char *text, int at, int margin)
{
    bool first = true;
    for (const char *word = text; *word;) {
        int n = (int)strcspn(word, " ");
        if (!first && at + 1 + n > LAST) {
            fprintf(out, "\n%*s", margin, "");
            at = margin;
        } else if (!first) {
            fputc(' ', out);
            at++;
        }
        fwrite(word, 1, (size_t)n, out);
        at += n;
        word += n + (word[n] == ' ');
        first = false;
    }
    fputc('\n', out);
}

/* A header, and its text beside it or, where it is too long, below. */
static void print_row(FILE *out, char key, const char *name, const char *argument, bool optional,
                      const char *text)
{
    int at = key ? fprintf(out, "%*s-%c, ", SHORT, "", key) : fprintf(out, "%*s", LONG, "");
    at += fprintf(out, "--%s", name);
    if (argument)
        at += fprintf(out, optional ? "[=%s]" : "=%s", argument);
    if (at > TEXT + 3)
        at = fprintf(out, "\n%*s", TEXT, "") - 1;
    else
        at += fprintf(out, "%*s", at < TEXT ? TEXT - at : 3, "");
    wrap(out, text, at, TEXT);
}

struct row {
    const struct s4d_option *option;
    const void *field;
};

/* By the letter of the short option or, without, the first of the long one; then by name. */
static int by_letter(const void *a, const void *b)
{
    const struct s4d_option *x = ((const struct row *)a)->option,
                            *y = ((const struct row *)b)->option;
    int p = tolower((unsigned char)(x->key ? x->key : x->name[0])),
        q = tolower((unsigned char)(y->key ? y->key : y->name[0]));
    if (p != q)
        return p - q;
    if (!x->key != !y->key)
        return x->key ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void join_choices(const struct s4d_option *o, const char *between, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0, at = 0; o->type == S4D_OPT_CHOICE && o->choices[i] && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? between : "", o->choices[i]);
}

/* The choices stand behind the text unless the header names them all, as --grid=a|b does. */
static void print_option(FILE *out, const struct s4d_option *o, const void *field)
{
    char choices[512], value[160];
    const char *argument = o->argument ? o->argument : "VALUE";
    join_choices(o, "|", choices, sizeof choices);
    if (strcmp(choices, argument) == 0)
        choices[0] = '\0';
    else
        join_choices(o, ", ", choices, sizeof choices);
    bool shown = s4d_option_show(o, field, value, sizeof value);
    char *text = s4d_asprintf("%s%s%s%s%s%s", o->help, choices[0] ? ": " : "", choices,
                              shown ? " (default " : "", shown ? value : "", shown ? ")" : "");
    print_row(out, o->key, o->name, o->type == S4D_OPT_FLAG ? NULL : argument, o->bare != NULL,
              text);
    free(text);
}

static void print_group(FILE *out, const struct s4d_option_group *g, void *config)
{
    struct row *rows = NULL;
    int n = 0, cap = 0;
    for (const struct s4d_option *o = g->options; o->name; o++)
        s4d_push(rows, n, cap, (struct row){o, s4d_option_field(g, o, config)});
    if (n > 1)
        qsort(rows, (size_t)n, sizeof *rows, by_letter);
    if (g->title)
        fprintf(out, " %s\n", g->title);
    for (int i = 0; i < n; i++)
        print_option(out, rows[i].option, rows[i].field);
    fputc('\n', out);
    free(rows);
}

void s4d_option_help(FILE *out, const char *command, const char *others, const char *summary,
                     const struct s4d_option_group *groups, void *config)
{
    bool has_short = false;
    fprintf(out, "Usage: %s [OPTION...]%s%s\n", command, others ? " " : "", others ? others : "");
    wrap(out, summary, 0, 0);
    fputc('\n', out);
    for (const struct s4d_option_group *g = groups; g->options; g++) {
        print_group(out, g, config);
        for (const struct s4d_option *o = g->options; o->name; o++)
            has_short = has_short || (o->key && o->type != S4D_OPT_FLAG);
    }
    print_row(out, '?', "help", NULL, false, "print this list");
    print_row(out, 0, "usage", NULL, false, "print the usage line");
    if (has_short)
        fprintf(out, "\nAn argument of a long option is one of its short option, too.\n");
}
