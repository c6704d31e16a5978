/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/memory.h"

extern char **environ;

static const struct terminal {
    const char *suffix, *set;
} terminals[] = {
    {"png", "pngcairo size 1500,675 fontscale 1.15"},
    {"svg", "svg size 1000,450 dynamic background 'white'"},
    {"pdf", "pdfcairo size 25cm,11.25cm"},
};

/* In gnuplot's single quotes, a quote is written twice. */
static char *quoted(const char *text)
{
    char *out = s4d_malloc(2 * strlen(text) + 3), *o = out;
    *o++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            *o++ = '\'';
        *o++ = *text;
    }
    *o++ = '\'';
    *o = '\0';
    return out;
}

/* Starts gnuplot with its output in *said (a pipe to read). Returns 0 or errno. */
static int start(char *settings, const char *script, int *said, pid_t *pid)
{
    int ends[2];
    *said = -1;
    if (pipe(ends) != 0)
        return errno;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    char *argv[] = {"gnuplot", "-e", settings, (char *)script, NULL};
    int rc = posix_spawnp(pid, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (rc != 0)
        close(ends[0]);
    *said = ends[0];
    return rc;
}

/* Everything that comes, of which the first n - 1 bytes are kept. */
static void drain(int in, char *text, size_t n)
{
    size_t kept = 0;
    char part[512];
    for (ssize_t got; (got = read(in, part, sizeof part)) > 0 || (got < 0 && errno == EINTR);)
        for (ssize_t i = 0; i < got && kept + 1 < n; i++)
            text[kept++] = part[i];
    while (kept > 0 && text[kept - 1] == '\n')
        kept--;
    text[kept] = '\0';
    close(in);
}

/* what: what is drawn, for the message. */
static int run(char *settings, const char *script, const char *what, const char *hint,
               struct s4d_error *err)
{
    char said[768] = "";
    int in = -1, status = 0;
    pid_t pid;
    int rc = start(settings, script, &in, &pid);
    if (rc != 0) {
        s4d_fail(err, S4D_EXIT_DEVICE, "gnuplot", "cannot be started: %s", strerror(rc));
        return s4d_hint(err, "apt-get install gnuplot-nox%s", hint);
    }
    drain(in, said, sizeof said);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return s4d_fail(err, S4D_EXIT_DEVICE, script, "gnuplot could not draw %s. It said:\n%s",
                        what, said[0] ? said : "(nothing)");
    if (said[0] != '\0')
        s4d_warn("%s: gnuplot: %s", script, said);
    return 0;
}

static int draw(const struct terminal *terminal, const char *script, const char *data,
                const char *statements, const char *stem, struct s4d_error *err)
{
    char *output = s4d_asprintf("%s.%s", stem, terminal->suffix);
    char *output_quoted = quoted(output), *data_quoted = quoted(data);
    char *settings =
        s4d_asprintf("set terminal %s; set output %s; data = %s%s%s", terminal->set, output_quoted,
                     data_quoted, statements[0] ? "; " : "", statements);
    int rc = run(settings, script, output, "; the data file is there already", err);
    free(output);
    free(output_quoted);
    free(data_quoted);
    free(settings);
    return rc;
}

int s4d_gnuplot_folder(const char *script, const char *folder, struct s4d_error *err)
{
    char *quoted_folder = quoted(folder), *settings = s4d_asprintf("folder = %s", quoted_folder);
    int rc = run(settings, script, "its pictures", "", err);
    free(quoted_folder);
    free(settings);
    return rc;
}

int s4d_gnuplot_with(const char *statements, const char *script, const char *data, const char *stem,
                     struct s4d_error *err)
{
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++)
        if (draw(&terminals[i], script, data, statements, stem, err))
            return -1;
    return 0;
}

int s4d_gnuplot(const char *script, const char *data, const char *stem, struct s4d_error *err)
{
    return s4d_gnuplot_with("", script, data, stem, err);
}
