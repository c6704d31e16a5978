/* SPDX-License-Identifier: Apache-2.0 */
/* ReFrame's performance logs, as its builtin configuration writes them (reframe/core/settings.py
 * and logging.py of 4.11.0-dev1, 7547971; its tutorial shows the same header): fields parted by
 * "|", result and time first, then a test's attributes by name; in the place of "perfvalues" there
 * are five fields of every performance variable. A file has one header; where that changes, the
 * file is put aside as .h0, .h1, ... and a new one is begun. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plots/format/format.h"
#include "plots/track/metrics.h"
#include "support/file.h"
#include "support/lines.h"
#include "support/memory.h"
#include "support/units.h"

struct line {
    char *text;
    size_t n;
    FILE *f;
};

static void begin(struct line *line)
{
    line->f = open_memstream(&line->text, &line->n);
    S4D_ASSERT(line->f != NULL, "no memory for a line");
}

static char *end(struct line *line)
{
    fclose(line->f);
    return line->text;
}

/* A field of its own: nothing in it parts fields or lines. */
static void field(struct line *line, const char *text)
{
    if (ftell(line->f) > 0)
        putc('|', line->f);
    for (const char *c = text; *c; c++)
        putc(*c == '|' ? '/' : iscntrl((unsigned char)*c) ? ' ' : *c, line->f);
}

static void number(struct line *line, double value, const char *none)
{
    char text[400];
    field(line, isnan(value) ? none : s4d_format_number(value, text, sizeof text));
}

static void integer(struct line *line, const json_t *value)
{
    number(line, json_is_integer(value) ? (double)json_integer_value(value) : NAN, "null");
}

/* Of files and tests: what shells and other programs take without quotes. */
static char *plain(const char *text)
{
    char *name = s4d_strdup(text), *to = name;
    for (const char *c = text; *c; c++)
        if (isalnum((unsigned char)*c) || (*c && strchr(".-=+", *c)))
            *to++ = *c;
        else if (to > name && to[-1] != '_')
            *to++ = '_';
    while (to > name && to[-1] == '_')
        to--;
    *to = '\0';
    if (strspn(name, ".") == strlen(name)) {
        free(name);
        return s4d_strdup("unnamed");
    }
    return name;
}

static char *header_of(const struct s4d_outcome *o)
{
    static const char *const before[] = {"result",
                                         "job_completion_time",
                                         "descr",
                                         "env_vars",
                                         "environ",
                                         "exclusive_access",
                                         "extra_resources",
                                         "job_completion_time_unix",
                                         "job_exitcode",
                                         "job_nodelist",
                                         "job_submit_time",
                                         "jobid",
                                         "modules",
                                         "name",
                                         "num_cpus_per_task",
                                         "num_gpus_per_node",
                                         "num_tasks",
                                         "num_tasks_per_core",
                                         "num_tasks_per_node",
                                         "num_tasks_per_socket",
                                         "partition"};
    static const char *const of_value[] = {"value", "unit", "ref", "lower_thres", "upper_thres"};
    static const char *const after[] = {"short_name", "system", "unique_name",
                                        "use_multithreading"};
    struct line line;
    begin(&line);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        field(&line, before[i]);
    for (int i = 0; i < o->n; i++)
        for (size_t k = 0; k < sizeof of_value / sizeof *of_value; k++) {
            char *name = s4d_asprintf("%s_%s", o->v[i].name, of_value[k]);
            field(&line, name);
            free(name);
        }
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        field(&line, after[i]);
    return end(&line);
}

static const char *text_at(const json_t *record, const char *path, const char *none)
{
    const char *text = json_string_value(s4d_at_path(record, path));
    return text && *text ? text : none;
}

static void describe(struct line *line, const struct s4d_outcome *o, const char *name)
{
    char time[64];
    time_t at = (time_t)o->time_s;
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &utc);
    json_t *environment = s4d_at_path(o->record, "provenance.environment");
    char *variables = environment ? json_dumps(environment, JSON_COMPACT) : NULL;
    bool failed = o->failure != NULL;
    for (int i = 0; i < o->n; i++)
        failed |= o->v[i].worse != NULL;
    field(line, failed ? "fail" : "pass");
    field(line, time);
    field(line, o->failure ? o->failure : o->label);
    field(line, variables ? variables : "{}");
    field(line, "builtin");
    field(line, "false"); /* exclusive_access */
    field(line, "{}");
    number(line, (double)o->time_s, "null");
    field(line, "null"); /* job_exitcode */
    field(line, text_at(o->record, "provenance.environment.SLURM_JOB_NODELIST",
                        text_at(o->record, "provenance.host", "null")));
    field(line, "null"); /* job_submit_time */
    field(line, text_at(o->record, "provenance.environment.SLURM_JOB_ID", "null"));
    field(line, "");
    field(line, name);
    integer(line, json_object_get(o->record, "threads"));
    field(line, "null"); /* num_gpus_per_node */
    integer(line, json_object_get(o->record, "gpus"));
    for (int i = 0; i < 3; i++) /* num_tasks_per_core, per_node, per_socket */
        field(line, "null");
    free(variables);
}

/* Python's %s of a number and of None. */
static char *line_of(const struct s4d_outcome *o, const char *system, const char *partition,
                     const char *name)
{
    struct line line;
    begin(&line);
    describe(&line, o, name);
    field(&line, partition);
    for (int i = 0; i < o->n; i++) {
        number(&line, o->v[i].value, "None");
        field(&line, o->v[i].unit);
        number(&line, o->v[i].reference, "0");
        number(&line, o->v[i].lower, "None");
        number(&line, o->v[i].upper, "None");
    }
    field(&line, name);
    field(&line, system);
    field(&line, name);
    field(&line, "null");
    return end(&line);
}

int s4d_write_reframe(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err)
{
    char *last = NULL;
    (void)err;
    for (int i = 0; i < outcomes->n; i++) {
        const struct s4d_outcome *o = &outcomes->v[i];
        if (!o->record) /* there was no run: no line, and no other header for the file */
            continue;
        char *system = plain(o->host_class), *name = plain(o->label), *header = header_of(o),
             *line = line_of(o, system, o->backend, name);
        if (!last || strcmp(last, header) != 0)
            fprintf(out, "%s\n", header);
        fprintf(out, "%s\n", line);
        free(last);
        last = header;
        free(system);
        free(name);
        free(line);
    }
    free(last);
    return 0;
}

static int fail(const char *file, struct s4d_error *err)
{
    return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
}

static int make_folders(char *path, struct s4d_error *err)
{
    for (char *c = path + 1;; c++)
        if (*c == '/' || *c == '\0') {
            char was = *c;
            *c = '\0';
            int failed = mkdir(path, 0777) != 0 && errno != EEXIST ? fail(path, err) : 0;
            *c = was;
            if (failed || was == '\0')
                return failed;
        }
}

/* Whether the file is there with this header; with another it is put aside. 1, 0; -1 with *err. */
static int has_header(const char *file, const char *header, struct s4d_error *err)
{
    struct s4d_lines in;
    if (access(file, F_OK) != 0)
        return errno == ENOENT ? 0 : fail(file, err);
    bool same = s4d_lines_open(&in, file, S4D_FILE_MAX, NULL) == 0 &&
                s4d_lines_next(&in, NULL) > 0 && strcmp(in.line, header) == 0;
    s4d_lines_close(&in);
    if (same)
        return 1;
    for (int i = 0;; i++) {
        char *aside = s4d_asprintf("%s.h%d", file, i);
        bool taken = access(aside, F_OK) == 0;
        int rc = taken ? 0 : rename(file, aside);
        free(aside);
        if (!taken)
            return rc ? fail(file, err) : 0;
    }
}

static int append(const struct s4d_outcome *o, const char *folder, struct s4d_error *err)
{
    char *system = plain(o->host_class), *name = plain(o->label), *header = header_of(o),
         *line = line_of(o, system, o->backend, name),
         *below = s4d_asprintf("%s/%s/%s", folder, system, o->backend),
         *file = s4d_asprintf("%s/%.200s.log", below, name);
    int rc = make_folders(below, err), there = rc ? -1 : has_header(file, header, err);
    if (there >= 0) {
        FILE *out = fopen(file, "ae");
        rc = out ? 0 : fail(file, err);
        if (out && fprintf(out, "%s%s%s\n", there ? "" : header, there ? "" : "\n", line) < 0)
            rc = fail(file, err);
        if (out && fclose(out) != 0 && rc == 0)
            rc = fail(file, err);
    } else
        rc = -1;
    free(system);
    free(name);
    free(header);
    free(line);
    free(below);
    free(file);
    return rc;
}

int s4d_write_reframe_folder(const struct s4d_outcomes *outcomes, const char *folder,
                             struct s4d_error *err)
{
    int rc = 0;
    for (int i = 0; i < outcomes->n && rc == 0; i++)
        rc = outcomes->v[i].record ? append(&outcomes->v[i], folder, err) : 0;
    return rc;
}
