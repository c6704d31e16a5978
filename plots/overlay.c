/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/overlay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plots/rows.h"
#include "support/memory.h"
#include "support/quote.h"

static double number(const json_t *record, const char *key)
{
    const json_t *v = json_object_get(record, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text(const json_t *record, const char *object, const char *key)
{
    return json_string_value(
        json_object_get(object != NULL ? json_object_get(record, object) : record, key));
}

static int gpus_of(const json_t *record)
{
    return (int)json_integer_value(json_object_get(record, "gpus"));
}

/* Of a figure that draws its own points only: whether the record belongs to one. */
static char *at_a_point(const struct s4d_experiment *e, const json_t *record, const char *machine)
{
    const char *workload = text(record, "workload", "name");
    if (e->several_machines && machine == NULL)
        return s4d_strdup("it says of no machine, and the figure has several");
    for (int i = 0; i < e->n_points; i++) {
        const struct s4d_point *p = &e->point[i];
        if (workload != NULL && strcmp(p->workload, workload) == 0 && p->gpus == gpus_of(record) &&
            (!e->several_machines || strcmp(p->machine, machine) == 0))
            return NULL;
    }
    return s4d_asprintf("%s on %d GPUs%s%s is no point of the figure, which starts with %s on %d",
                        workload != NULL ? workload : "it", gpus_of(record),
                        e->several_machines ? " of " : "", e->several_machines ? machine : "",
                        e->point[0].workload, e->point[0].gpus);
}

/* Why a record cannot be drawn; NULL: it can. */
static char *misfit(const struct s4d_experiment *e, const json_t *record, const char *machine)
{
    static const char *const rates[] = {"flops_per_s", "iteration_time_s"};
    const char *kind = text(record, NULL, "kind");
    if (kind == NULL || (strcmp(kind, "simulate") != 0 && strcmp(kind, "train") != 0))
        return s4d_asprintf("expected a record of simulate or train, found %s",
                            kind != NULL ? s4d_quote(kind).text : "none");
    if (gpus_of(record) < 1)
        return s4d_strdup("it has no gpus");
    for (int i = 0; i < 2; i++)
        if (!(number(record, rates[i]) > 0))
            return s4d_asprintf("it has no %s", rates[i]);
    const char *needs = s4d_rows_kinds[e->rows].needs;
    if (needs != NULL && !json_is_object(json_object_get(record, needs)))
        return s4d_asprintf("it has no %s, which the figure draws", needs);
    for (int i = 0; i < e->added_needs.n; i++)
        if (!(number(record, e->added_needs.v[i]) > 0))
            return s4d_asprintf("it has no %s, which the figure draws", e->added_needs.v[i]);
    return e->added == S4D_ADDED_POINTS ? at_a_point(e, record, machine) : NULL;
}

/* "LABEL=FILE", where that is no file itself: its place after the '=' and the label, else the
 * file's name without folder and extension. */
static const char *split(const char *argument, char **label)
{
    const char *equals = strchr(argument, '=');
    if (equals != NULL && equals > argument && access(argument, F_OK) != 0) {
        *label = s4d_asprintf("%.*s", (int)(equals - argument), argument);
        return equals + 1;
    }
    const char *slash = strrchr(argument, '/'), *name = slash != NULL ? slash + 1 : argument;
    const char *dot = strrchr(name, '.');
    *label = s4d_asprintf("%.*s",
                          (int)(dot != NULL && dot > name ? dot - name : (long)strlen(name)), name);
    return argument;
}

static char *series_name(const char *label, const json_t *record, bool measured)
{
    const char *series = text(record, "experiment", "series");
    char *name = s4d_asprintf("+%.80s%s%.80s%s", label, series != NULL ? " " : "",
                              series != NULL ? series : "", measured ? ", measured" : "");
    for (char *c = name; *c != '\0'; c++) /* a word of gnuplot's, a field of data.tsv */
        if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\')
            *c = ' ';
    return name;
}

/* A series is sorted by GPUs; a new one comes last. */
static void insert(struct s4d_overlay *o, struct s4d_added added)
{
    int at = o->n;
    bool seen = false;
    for (int i = 0; i < o->n; i++) {
        if (strcmp(o->v[i].series, added.series) != 0)
            continue;
        if (gpus_of(o->v[i].record) <= gpus_of(added.record))
            at = i + 1;
        else if (!seen)
            at = i;
        seen = true;
    }
    s4d_push(o->v, o->n, o->cap, added);
    memmove(&o->v[at + 1], &o->v[at], (size_t)(o->n - 1 - at) * sizeof *o->v);
    o->v[at] = added;
}

static int add_records(struct s4d_overlay *o, const struct s4d_experiment *e,
                       const struct s4d_records *records, const char *file, const char *label)
{
    int fit = 0;
    for (int i = 0; i < records->n; i++) {
        const json_t *r = records->v[i];
        bool measured = json_object_get(r, "backend") != NULL;
        const char *machine = text(r, "machine", "name");
        char *why = misfit(e, r, machine);
        if (why != NULL) {
            s4d_warn("%s:%d: not drawn: %s", file, i + 1, why);
            free(why);
            continue;
        }
        insert(o, (struct s4d_added){series_name(label, r, measured), r, machine, measured});
        fit++;
    }
    return fit;
}

int s4d_overlay_add(struct s4d_overlay *o, const struct s4d_experiment *e, const char *argument,
                    struct s4d_error *err)
{
    if (e->added == S4D_ADDED_NONE)
        return s4d_fail(err, S4D_EXIT_DATA, e->folder,
                        "its axes are not those of a record: nothing can be added");
    char *label;
    const char *file = split(argument, &label);
    struct s4d_records records = {0};
    int rc = s4d_records_load(&records, file, err);
    if (rc == 0 && add_records(o, e, &records, file, label) == 0) {
        rc =
            s4d_fail(err, S4D_EXIT_DATA, file, "none of its %d records fits the figure", records.n);
        s4d_hint(err, "scale4d simulate --json, sweep and scale4d-run train --json write such");
    }
    s4d_push(o->files, o->n_files, o->cap_files, records);
    free(label);
    return rc;
}

void s4d_overlay_free(struct s4d_overlay *o)
{
    for (int i = 0; i < o->n; i++)
        free(o->v[i].series);
    for (int i = 0; i < o->n_files; i++)
        s4d_records_free(&o->files[i]);
    free(o->v);
    free(o->files);
    *o = (struct s4d_overlay){.n = 0};
}

/* A loop over no words would read the file once nevertheless, and warn that it holds nothing. */
static const char lines[] =
    "added_lines(y) = words(added) == 0 ? '' : 'for [i=1:words(added)] data "
    "using 3:(is_added(i) ? '.y.' : NaN) with linespoints linecolor rgb \"#cc79a7\" linewidth 2 "
    "dashtype i pointtype 4 + i title added_title(i),'";

char *s4d_overlay_gnuplot(const struct s4d_overlay *o)
{
    char *out_text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&out_text, &n);
    S4D_ASSERT(out != NULL, "no memory for gnuplot's statements");
    double least[2] = {1e99, 1e99}, most[2] = {-1e99, -1e99};
    fputs("added = '", out);
    for (int i = 0; i < o->n; i++) {
        const double at[] = {gpus_of(o->v[i].record), number(o->v[i].record, "flops_per_s") / 1e15};
        for (int k = 0; k < 2; k++) {
            least[k] = fmin(least[k], at[k]);
            most[k] = fmax(most[k], at[k]);
        }
        if (i > 0 && strcmp(o->v[i].series, o->v[i - 1].series) == 0)
            continue;
        fputs(i ? " \"" : "\"", out);
        for (const char *c = o->v[i].series; *c != '\0'; c++)
            fputs(*c == '\'' ? "''" : (char[]){*c, '\0'}, out);
        fputc('"', out);
    }
    fputs("'; added_gpus = '", out);
    for (int i = 0; i < o->n; i++)
        fprintf(out, "%d ", gpus_of(o->v[i].record));
    fprintf(out,
            "'; added_gpus_min = %.17g; added_gpus_max = %.17g; added_pflops_min = %.17g; "
            "added_pflops_max = %.17g; min(a, b) = a < b ? a : b; max(a, b) = a > b ? a : b; "
            "added_title(i) = substr(word(added, i), 2, -1); "
            "is_added(i) = strcol(1) eq word(added, i); %s",
            least[0], most[0], least[1], most[1], lines);
    fclose(out);
    return out_text;
}
