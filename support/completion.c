/* SPDX-License-Identifier: Apache-2.0 */
#include "support/completion.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* In the word after it. */
static bool has_value(const struct s4d_option *o)
{
    return o->type != S4D_OPT_FLAG && !o->bare;
}

static void option_words(const struct s4d_option *o, FILE *out)
{
    fprintf(out, " --%s", o->name);
    if (o->key)
        fprintf(out, " -%c", o->key);
}

/* The pattern of a case: "--batch | -b". */
static void option_pattern(const struct s4d_option *o, FILE *out)
{
    fprintf(out, "        --%s", o->name);
    if (o->key)
        fprintf(out, " | -%c", o->key);
    fputs(") ", out);
}

static void names_of(const char *command, FILE *out)
{
    fprintf(out, "words=$(scale4d %s 2>/dev/null | awk '!/^#/ { print $1 }') ;;\n", command);
}

/* What may follow the option: the names of its kind where it has some, its choices, or a file; of a
 * number nothing is offered. */
static void value_words(const struct s4d_option *o, FILE *out)
{
    if (strcmp(o->name, "machine") == 0) {
        names_of("machines", out);
    } else if (strcmp(o->name, "workload") == 0) {
        names_of("workloads", out);
    } else if (o->type == S4D_OPT_CHOICE) {
        fputs("words=\"", out);
        for (int i = 0; o->choices[i]; i++)
            fprintf(out, "%s%s", i ? " " : "", o->choices[i]);
        fputs("\" ;;\n", out);
    } else if (o->type == S4D_OPT_TEXT) {
        fputs("return ;;\n", out); /* files, by -o default */
    } else {
        fputs("compopt +o default; return ;;\n", out);
    }
}

static void command_case(const struct s4d_completion *c, FILE *out)
{
    static const struct s4d_option_group none[] = {{.options = NULL}};
    const struct s4d_option_group *groups = c->options ? c->options : none;
    fprintf(out, "    %s)\n        case $prev in\n", c->command);
    for (const struct s4d_option_group *g = groups; g->options; g++)
        for (const struct s4d_option *o = g->options; o->name; o++)
            if (has_value(o)) {
                option_pattern(o, out);
                value_words(o, out);
            }
    fputs("        *) case $cur in\n            -*) words=\"", out);
    for (const struct s4d_option_group *g = groups; g->options; g++)
        for (const struct s4d_option *o = g->options; o->name; o++)
            option_words(o, out);
    fputs(" --help --usage\" ;;\n", out);
    if (c->names) {
        fputs("            *) ", out);
        names_of(c->names, out);
    }
    fputs("            esac ;;\n        esac ;;\n", out);
}

/* A shell function's name of the program's: '_' for what is no letter or digit. */
static void function_name(const char *program, FILE *out)
{
    fputc('_', out);
    for (const char *c = program; *c; c++)
        fputc(isalnum((unsigned char)*c) ? *c : '_', out);
}

void s4d_completion_bash(const char *program, const struct s4d_completion *commands, FILE *out)
{
    fprintf(out,
            "# SPDX-License-Identifier: Apache-2.0\n"
            "# Bash completion of %s, written by: %s completion bash\n",
            program, program);
    function_name(program, out);
    fputs("()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
          "    COMPREPLY=()\n"
          "    # --option=value comes as three words\n"
          "    if [[ $cur == = ]]; then cur=\n"
          "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    if ((COMP_CWORD == 1)); then\n        words=\"",
          out);
    for (const struct s4d_completion *c = commands; c->command; c++)
        fprintf(out, "%s ", c->command);
    fputs("help --help --version\"\n    else\n    case ${COMP_WORDS[1]} in\n", out);
    for (const struct s4d_completion *c = commands; c->command; c++)
        command_case(c, out);
    fputs("    esac\n    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
          "complete -o default -F ",
          out);
    function_name(program, out);
    fprintf(out, " %s\n", program);
}
