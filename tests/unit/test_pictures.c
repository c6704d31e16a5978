/* SPDX-License-Identifier: Apache-2.0 */
/* Every figure's plot.gp draws its rows, without and with a user's own, and gnuplot has nothing to
 * say. The rows are those of expected.tsv, and of each published point one like its simulated one:
 * what is tested needs points in the right places, not their values. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plots/overlay.h"
#include "plots/published.h"
#include "support/lines.h"
#include "support/memory.h"

static char data[] = "/tmp/scale4d-pictures-XXXXXX";

/* A row under another series' name and provenance. */
static void put_row(FILE *out, const char *series, const char *line, const char *provenance)
{
    const char *first = strchr(line, '\t'), *last = strrchr(line, '\t');
    assert_non_null(first);
    fprintf(out, "%s%.*s\t%s\n", series, (int)(last - first), first, provenance);
}

/* The published number that the row's point has, or NULL. */
static const struct s4d_published *published_of(const struct s4d_published_list *list,
                                                const char *line, bool of_machines)
{
    char workload[100], machine[100];
    int gpus;
    assert_int_equal(sscanf(line, "%*s %99s %d", workload, &gpus), 2);
    for (int i = 0; i < list->n; i++) {
        snprintf(machine, sizeof machine, "\t%s\t", list->v[i].machine);
        if (strcmp(list->v[i].workload, workload) == 0 && list->v[i].gpus == gpus &&
            (!of_machines || strstr(line, machine)))
            return &list->v[i];
    }
    return NULL;
}

/* The first series tells where the points are. */
static void write_data(const char *folder, bool added)
{
    struct s4d_error err = {0};
    struct s4d_published_list published = {0};
    struct s4d_lines lines;
    char series[100] = "";
    bool of_machines = false;
    char *file = s4d_asprintf("%s/expected.tsv", folder),
         *csv = s4d_asprintf("%s/published.csv", folder);
    FILE *out = fopen(data, "w");
    assert_non_null(out);
    if (s4d_published_read(&published, csv, &err) || s4d_lines_open(&lines, file, 65536, &err))
        fail_msg("%s: %s", err.where, err.text);
    while (s4d_lines_next(&lines, &err) > 0) {
        fprintf(out, "%s\n", lines.line);
        if (lines.number == 1)
            of_machines = strstr(lines.line, "\tmachine\t") != NULL;
        if (lines.number == 2)
            snprintf(series, sizeof series, "%.*s\t", (int)strcspn(lines.line, "\t"), lines.line);
        if (lines.number == 1 || strncmp(lines.line, series, strlen(series)) != 0)
            continue;
        const struct s4d_published *p = published_of(&published, lines.line, of_machines);
        if (p)
            put_row(out, "published", lines.line, p->provenance);
        if (added)
            put_row(out, "+mine", lines.line, "measured");
    }
    assert_true(lines.number > 1);
    s4d_lines_close(&lines);
    s4d_published_free(&published);
    assert_int_equal(fclose(out), 0);
    free(file);
    free(csv);
}

static void draw(const char *folder, const struct s4d_overlay *overlay)
{
    char said[1000] = "";
    char *statements = s4d_overlay_gnuplot(overlay), *script = s4d_asprintf("%s.gp", data),
         *command = s4d_asprintf("gnuplot %s 2>&1", script);
    FILE *out = fopen(script, "w");
    assert_non_null(out);
    fprintf(out, "set terminal svg\nset output '/dev/null'\ndata = '%s'\n%s\nload '%s/plot.gp'\n",
            data, statements, folder);
    assert_int_equal(fclose(out), 0);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    said[fread(said, 1, sizeof said - 1, in)] = '\0';
    if (pclose(in) != 0 || said[0])
        fail_msg("%s, %d records of a user's: gnuplot says %s", folder, overlay->n, said);
    unlink(script);
    free(command);
    free(script);
    free(statements);
}

static void test_no_warning(void **state)
{
    glob_t found;
    json_t *record = json_pack("{s:i, s:f}", "gpus", 4096, "flops_per_s", 4e17);
    struct s4d_added mine = {.series = "+mine", .record = record};
    const struct s4d_overlay none = {0}, one = {.v = &mine, .n = 1};
    (void)state;
    assert_int_equal(glob(S4D_DATA_DIR "/paper-figures/*/*", GLOB_ONLYDIR, NULL, &found), 0);
    assert_true(found.gl_pathc >= 8);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        write_data(found.gl_pathv[i], false);
        draw(found.gl_pathv[i], &none);
        write_data(found.gl_pathv[i], true);
        draw(found.gl_pathv[i], &one);
    }
    globfree(&found);
    json_decref(record);
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(data);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_warning)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
