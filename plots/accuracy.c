/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/accuracy.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/csv.h"
#include "support/memory.h"
#include "support/units.h"

enum { MACHINE, LIBRARY, OP, RANKS, PER_NODE, SIZE, BUSBW, OUTLIER, NOTE, SOURCE };
static const char header[] =
    "machine,library,op,ranks,ranks_per_node,total_MiB,busbw_GBps,outlier,note,source";

/* A positive number of a field, times scale. */
static int number(const char *text, const char *name, double scale, const char *where,
                  double *value, struct s4d_error *err)
{
    struct s4d_error why;
    if (s4d_parse_number(text, 0, 1e15, value, &why) || *value <= 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "%s: expected a number above 0, got '%s'", name,
                        text);
    *value *= scale;
    return 0;
}

static int count(const char *text, const char *name, int least, const char *where, int *value,
                 struct s4d_error *err)
{
    struct s4d_error why;
    int64_t parsed;
    if (s4d_parse_int(text, least, 1 << 20, &parsed, &why))
        return s4d_fail(err, S4D_EXIT_DATA, where, "%s: %s", name, why.text);
    *value = (int)parsed;
    return 0;
}

static int read_row(void *context, char *const field[], const char *where, struct s4d_error *err)
{
    struct s4d_accuracy_list *list = context;
    struct s4d_accuracy_row row = {.simulated_Bps = NAN, .constants_Bps = NAN, .held_out_Bps = NAN};
    row.outlier = strcmp(field[OUTLIER], "yes") == 0;
    if (!row.outlier && strcmp(field[OUTLIER], "no") != 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "outlier: expected yes or no, got '%s'",
                        field[OUTLIER]);
    if (count(field[RANKS], "ranks", 2, where, &row.ranks, err) ||
        count(field[PER_NODE], "ranks_per_node", 1, where, &row.ranks_per_node, err) ||
        number(field[SIZE], "total_MiB", 1048576, where, &row.bytes, err) ||
        number(field[BUSBW], "busbw_GBps", 1e9, where, &row.measured_Bps, err))
        return -1;
    row.machine = s4d_strdup(field[MACHINE]);
    row.library = s4d_strdup(field[LIBRARY]);
    row.op = s4d_strdup(field[OP]);
    row.note = s4d_strdup(field[NOTE]);
    row.source = s4d_strdup(field[SOURCE]);
    s4d_push(list->v, list->n, list->cap, row);
    return 0;
}

int s4d_accuracy_read(struct s4d_accuracy_list *list, const char *file, struct s4d_error *err)
{
    if (s4d_csv_read(file, header, read_row, list, err))
        return -1;
    if (list->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, file, "no measurement in it");
    return 0;
}

void s4d_accuracy_free(struct s4d_accuracy_list *list)
{
    for (int i = 0; i < list->n; i++) {
        char *texts[] = {list->v[i].machine, list->v[i].library, list->v[i].op, list->v[i].note,
                         list->v[i].source};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            free(texts[j]);
    }
    free(list->v);
    *list = (struct s4d_accuracy_list){0};
}

void s4d_accuracy_kernels_free(struct s4d_accuracy_kernels *list)
{
    for (int i = 0; i < list->n; i++) {
        free(list->v[i].series);
        free(list->v[i].label);
        free(list->v[i].note);
    }
    free(list->v);
    *list = (struct s4d_accuracy_kernels){0};
}

static bool same_series(const struct s4d_accuracy_row *a, const struct s4d_accuracy_row *b)
{
    return strcmp(a->machine, b->machine) == 0 && strcmp(a->library, b->library) == 0 &&
           strcmp(a->op, b->op) == 0;
}

int s4d_accuracy_series(const struct s4d_accuracy_list *list, int from)
{
    int to = from;
    while (to < list->n && same_series(&list->v[from], &list->v[to]))
        to++;
    return to;
}

int s4d_accuracy_group(const struct s4d_accuracy_list *list, int from)
{
    const struct s4d_accuracy_row *first = &list->v[from];
    int to = from, end = s4d_accuracy_series(list, from);
    while (to < end && list->v[to].ranks == first->ranks &&
           list->v[to].ranks_per_node == first->ranks_per_node)
        to++;
    return to;
}

double s4d_accuracy_checked(const struct s4d_accuracy_row *row)
{
    if (row->outlier)
        return NAN;
    if (!row->input)
        return row->simulated_Bps;
    return row->ranks == row->fit_ranks ? NAN : row->held_out_Bps;
}

double s4d_accuracy_error(const struct s4d_accuracy_row *row)
{
    return 100 * (s4d_accuracy_checked(row) / row->measured_Bps - 1);
}

char *s4d_accuracy_name(const struct s4d_accuracy_row *row)
{
    char *name = s4d_asprintf("%s-%s-%s", row->machine, row->library, row->op), *out = name;
    for (const char *in = name; *in != '\0'; in++) {
        char c = (char)tolower((unsigned char)*in);
        if (isalnum((unsigned char)c) || c == '_')
            *out++ = c;
        else if (out > name && out[-1] != '-' && c != ')')
            *out++ = '-';
    }
    *out = '\0';
    return name;
}

static int closed(FILE *out, const char *file, struct s4d_error *err)
{
    bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    return 0;
}

int s4d_accuracy_data(const struct s4d_accuracy_list *list, const char *file, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (out == NULL)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    fprintf(out, "machine\tlibrary\top\tranks\tranks_per_node\tbytes\tmeasured_GBps\tchecked_GBps\t"
                 "error_percent\tmachine_file_GBps\twithout_tables_GBps\tinput\tfit_ranks\t"
                 "outlier\thow\tnote\tsource\n");
    for (int i = 0; i < list->n; i++) {
        const struct s4d_accuracy_row *r = &list->v[i];
        fprintf(out,
                "%s\t%s\t%s\t%d\t%d\t%.0f\t%.6g\t%.6g\t%.1f\t%.6g\t%.6g\t%s\t%d\t%s\t%s\t%s\t%s\n",
                r->machine, r->library, r->op, r->ranks, r->ranks_per_node, r->bytes,
                r->measured_Bps * 1e-9, s4d_accuracy_checked(r) * 1e-9, s4d_accuracy_error(r),
                r->simulated_Bps * 1e-9, r->constants_Bps * 1e-9, r->input ? "yes" : "no",
                r->fit_ranks, r->outlier ? "yes" : "no", r->how, r->note, r->source);
    }
    return closed(out, file, err);
}

int s4d_accuracy_blocks(const struct s4d_accuracy_list *list, int from, const char *file,
                        struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (out == NULL)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    const struct s4d_accuracy_row *first = &list->v[from];
    fprintf(out, "# %s, %s: %s\n", first->machine, first->library, first->op);
    int end = s4d_accuracy_series(list, from);
    for (int next, i = from; i < end; i = next) {
        const struct s4d_accuracy_row *r = &list->v[i];
        bool fitted = r->input && r->ranks == r->fit_ranks;
        next = s4d_accuracy_group(list, i);
        fprintf(out, "%s\"%d ranks%s\"\n", i > from ? "\n\n" : "", r->ranks,
                fitted                          ? " (fitted on these)"
                : r->input && r->fit_ranks == 0 ? " (input)"
                                                : "");
        for (; i < next; i++) {
            r = &list->v[i];
            fprintf(out, "%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\n", r->bytes / 1048576,
                    r->outlier ? NAN : r->measured_Bps * 1e-9,
                    r->outlier ? r->measured_Bps * 1e-9 : NAN,
                    (r->input && isfinite(r->held_out_Bps) ? r->held_out_Bps : r->simulated_Bps) *
                        1e-9,
                    r->simulated_Bps * 1e-9, r->constants_Bps * 1e-9);
        }
    }
    return closed(out, file, err);
}
