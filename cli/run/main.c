/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run: starts MPI, makes sure that all ranks were asked the same, and finds the command.
 * Rank 0 speaks on standard output. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/command.h"
#include "real/watch.h"
#include "support/completion.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/record.h"

static const struct s4d_run_command completion;
static const struct s4d_run_command *const commands[] = {
    &s4d_run_train,  &s4d_run_calibrate, &s4d_run_collective, &s4d_run_preflight,
    &s4d_run_layers, &s4d_run_nightly,   &completion,         NULL,
};

static void help(FILE *out)
{
    fprintf(out, "Usage: mpirun -n N scale4d-run COMMAND [OPTION...]\n\n"
                 "Trains large models with the 4D parallel schedule, a process a device.\n\n");
    for (int i = 0; commands[i] != NULL; i++)
        fprintf(out, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\nscale4d-run COMMAND --help (or scale4d-run help COMMAND) shows its options.\n"
                 "It runs alone, too: one rank.\n");
}

static void write_completion(void)
{
    struct s4d_completion rows[sizeof commands / sizeof *commands] = {{.command = NULL}};
    for (int n = 0; commands[n] != NULL; n++)
        rows[n] = (struct s4d_completion){commands[n]->name, commands[n]->options, NULL};
    s4d_completion_bash("scale4d-run", rows, stdout);
}

static int run_completion(struct s4d_world *w, int argc, char **argv)
{
    static const struct s4d_option_group none[] = {{.options = NULL}};
    struct s4d_texts shell = {.usage = "bash"};
    struct s4d_error err;
    int rc = s4d_options_argv(none,
                              "Prints the completion of the shell. In ~/.bashrc: "
                              "source <(scale4d-run completion bash)",
                              argc, argv, NULL, &shell, &err);
    if (rc == 0 && (shell.n != 1 || strcmp(shell.v[0], "bash") != 0))
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected a shell: bash");
    if (rc == 0)
        write_completion();
    s4d_texts_free(&shell);
    return s4d_world_agree(w, rc < 0 ? &err : NULL);
}

static const struct s4d_run_command completion = {
    .name = "completion", .summary = "print the completion of bash", .run = run_completion};

static const struct s4d_run_command *find(const char *name, struct s4d_error *err)
{
    const char *names[16];
    int n = 0;
    for (; commands[n] != NULL; n++) {
        if (strcmp(commands[n]->name, name) == 0)
            return commands[n];
        names[n] = commands[n]->name;
    }
    s4d_fail(err, S4D_EXIT_USAGE, "", "expected a command, got %s", s4d_quote(name).text);
    s4d_hint_nearest(err, name, names, n);
    return NULL;
}

/* Of program and command line: what must be the same on all ranks before anything else can be. */
static int check_same(const struct s4d_world *w, int argc, char **argv, struct s4d_error *err)
{
    static const char *const names[] = {"version of scale4d-run", "command line"};
    uint64_t values[2] = {0xcbf29ce484222325u, 0xcbf29ce484222325u};
    for (const char *c = s4d_commit; *c; c++)
        values[0] = (values[0] ^ (unsigned char)*c) * 0x100000001b3u;
    for (int i = 1; i < argc; i++)
        for (const char *c = argv[i]; c == argv[i] || c[-1]; c++) /* the end of each, too */
            values[1] = (values[1] ^ (unsigned char)*c) * 0x100000001b3u;
    return s4d_world_same(w, names, values, 2, err);
}

static int run(struct s4d_world *w, const char *name, int argc, char **argv)
{
    struct s4d_error err;
    char title[64];
    const struct s4d_run_command *command = find(name, &err);
    int code = s4d_world_agree(w, command ? NULL : &err);
    if (code)
        return code;
    snprintf(title, sizeof title, "scale4d-run %s", command->name);
    argv[0] = title;
    return command->run(w, argc, argv);
}

static int dispatch(struct s4d_world *w, int argc, char **argv)
{
    struct s4d_error err;
    int code = s4d_world_agree(w, check_same(w, argc, argv, &err) ? &err : NULL);
    if (code)
        return code;
    if (argc < 2) {
        if (w->rank == 0)
            help(stderr);
        return S4D_EXIT_USAGE;
    }
    bool asked = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "-?") == 0 || (asked && argc == 2)) {
        help(stdout);
        return S4D_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("scale4d-run %s (%s)\n", s4d_version, s4d_commit);
        return S4D_EXIT_OK;
    }
    if (asked)
        return run(w, argv[2], 2, (char *[]){argv[1], "--help", NULL});
    return run(w, argv[1], argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    struct s4d_world w;
    struct s4d_error err;
    s4d_watch_prepare();
    if (s4d_world_open(&w, &argc, &argv, &err)) {
        s4d_world_abort(&w, &err);
    }
    if (w.rank != 0 && !freopen("/dev/null", "w", stdout))
        s4d_warn("rank %d cannot be silenced", w.rank);
    int code = dispatch(&w, argc, argv);
    s4d_watch_stop();
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == S4D_EXIT_OK) {
        s4d_fail(&err, S4D_EXIT_OUTPUT, "standard output", "cannot be written");
        code = s4d_error_print(&err);
    }
    s4d_world_close(&w);
    return code;
}
