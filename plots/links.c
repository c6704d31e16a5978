/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/links.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plots/gnuplot.h"
#include "support/lines.h"
#include "support/memory.h"

const char *const s4d_links_values[] = {"mean", "peak", NULL};
static const char columns[] = "link\tkind\tclass\tcapacity_Bps\tbytes\tbusy_s\tmean_use\tpeak_use";
enum { COLUMNS = 8, TICS = 40, PLACES = 1 << 24 };

/* --- reading ------------------------------------------------------------------------------- */

/* The number at *text, which moves behind its digits. */
static double leading_number(char **text)
{
    double value = 0;
    for (; isdigit((unsigned char)**text); ++*text)
        value = 10 * value + (**text - '0');
    return value;
}

/* "n12.nic3.out" into sort "n", place 12, part "nic3.out". */
static void split_name(struct s4d_links_row *r)
{
    size_t letters = strcspn(r->link, "0123456789.-");
    char *end = r->link + letters;
    if (isdigit((unsigned char)*end))
        r->place = (int)fmin(leading_number(&end), PLACES);
    r->sort = s4d_strdup(r->link);
    r->sort[letters] = '\0';
    r->part = s4d_strdup(*end == '.' ? end + 1 : *end ? end : r->link);
}

static bool number(const char *text, double max, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && errno == 0 && *value >= 0 && *value <= max;
}

static const char *read_row(struct s4d_links_table *t, char *line)
{
    char *cell[COLUMNS], *rest = line;
    int n = 0;
    for (char *c; (c = strsep(&rest, "\t")) != NULL; n++)
        if (n < COLUMNS)
            cell[n] = c;
    if (n != COLUMNS)
        return "expected eight columns";
    struct s4d_links_row r = {.link = NULL};
    if (!number(cell[3], 1e300, &r.capacity_Bps) || !number(cell[4], 1e300, &r.bytes) ||
        !number(cell[5], 1e300, &r.busy_s) || !number(cell[6], 1 + 1e-6, &r.mean_use) ||
        !number(cell[7], 1 + 1e-6, &r.peak_use))
        return "expected numbers: capacity, bytes and busy time from 0, shares from 0 to 1";
    if (!cell[0][0] || strpbrk(cell[0], "\"\\'") || strlen(cell[0]) > 100)
        return "expected the name of a link";
    r.link = s4d_strdup(cell[0]);
    r.kind = s4d_strdup(cell[1]);
    split_name(&r);
    s4d_push(t->row, t->n, t->cap, r);
    return NULL;
}

static const char *read_line(struct s4d_links_table *t, char *line, bool *headed)
{
    if (line[0] == '#') {
        free(t->about);
        t->about = s4d_strdup(line + 1 + (line[1] == ' '));
        return NULL;
    }
    if (*headed)
        return read_row(t, line);
    *headed = true;
    return strcmp(line, columns) == 0 ? NULL : "expected the head of a table of links";
}

static int read_lines(struct s4d_links_table *t, struct s4d_lines *in, struct s4d_error *err)
{
    bool headed = false;
    int got;
    while ((got = s4d_lines_next(in, err)) > 0) {
        const char *wrong = read_line(t, in->line, &headed);
        if (wrong)
            return s4d_fail(err, S4D_EXIT_DATA, in->where, "%s", wrong);
    }
    if (got == 0 && t->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, in->name, "holds no link");
    return got;
}

int s4d_links_parse(struct s4d_links_table *t, struct s4d_lines *in, struct s4d_error *err)
{
    *t = (struct s4d_links_table){.about = s4d_strdup("")};
    if (read_lines(t, in, err) == 0)
        return 0;
    return s4d_hint(err, "scale4d simulate --links FILE writes such a table");
}

int s4d_links_read(struct s4d_links_table *t, const char *file, struct s4d_error *err)
{
    struct s4d_lines lines;
    *t = (struct s4d_links_table){0};
    int rc = s4d_lines_open(&lines, file, S4D_LINKS_LINE_MAX, err);
    if (rc == 0)
        rc = s4d_links_parse(t, &lines, err);
    s4d_lines_close(&lines);
    return rc;
}

void s4d_links_free(struct s4d_links_table *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->row[i].link);
        free(t->row[i].kind);
        free(t->row[i].sort);
        free(t->row[i].part);
    }
    free(t->row);
    free(t->about);
    *t = (struct s4d_links_table){0};
}

/* --- by kind ------------------------------------------------------------------------------- */

struct kind {
    const char *name;
    int links, used;
    double bytes, mean, peak, busy_s; /* mean: summed */
};

static struct kind *kind_of(struct kind **list, int *n, int *cap, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (strcmp((*list)[i].name, name) == 0)
            return &(*list)[i];
    s4d_push(*list, *n, *cap, (struct kind){.name = name});
    return &(*list)[*n - 1];
}

void s4d_links_print(const struct s4d_links_table *t, FILE *out)
{
    struct kind *list = NULL;
    int n = 0, cap = 0;
    for (int i = 0; i < t->n; i++) {
        const struct s4d_links_row *r = &t->row[i];
        struct kind *k = kind_of(&list, &n, &cap, r->kind);
        k->links++;
        k->used += r->bytes > 0;
        k->bytes += r->bytes;
        k->mean += r->mean_use;
        k->peak = fmax(k->peak, r->peak_use);
        k->busy_s = fmax(k->busy_s, r->busy_s);
    }
    fprintf(out, "# %s\n%-12s %8s %8s %14s %12s %9s %9s\n%-12s %8s %8s %14s %12s %9s %9s\n",
            t->about, "kind", "links", "used", "bytes", "busiest", "mean use", "peak use", "", "",
            "", "(GB)", "(ms)", "(%)", "(%)");
    for (int i = 0; i < n; i++)
        fprintf(out, "%-12s %8d %8d %14.3f %12.3f %9.2f %9.2f\n", list[i].name, list[i].links,
                list[i].used, list[i].bytes / 1e9, 1e3 * list[i].busy_s,
                100 * list[i].mean / list[i].links, 100 * list[i].peak);
    free(list);
}

/* --- the map ------------------------------------------------------------------------------- */

struct panel {
    const char *sort;
    const char **part; /* rows, in the order of the file */
    int n_parts, cap_parts;
    int last_place;
};

static int part_number(struct panel *p, const char *part, int near)
{
    if (near < p->n_parts && strcmp(p->part[near], part) == 0)
        return near;
    for (int i = 0; i < p->n_parts; i++)
        if (strcmp(p->part[i], part) == 0)
            return i;
    s4d_push(p->part, p->n_parts, p->cap_parts, part);
    return p->n_parts - 1;
}

static struct panel *panel_of(struct panel **list, int *n, int *cap, const char *sort)
{
    for (int i = 0; i < *n; i++)
        if (strcmp((*list)[i].sort, sort) == 0)
            return &(*list)[i];
    s4d_push(*list, *n, *cap, (struct panel){.sort = sort});
    return &(*list)[*n - 1];
}

static void write_panel(const struct s4d_links_table *t, struct panel *p,
                        enum s4d_links_value value, FILE *out)
{
    int number = -1;
    for (int i = 0; i < t->n; i++) {
        const struct s4d_links_row *r = &t->row[i];
        if (strcmp(r->sort, p->sort) != 0)
            continue;
        number = part_number(p, r->part, number + 1);
        p->last_place = r->place > p->last_place ? r->place : p->last_place;
        fprintf(out, "%d\t%d\t%.6g\t%s\n", r->place, number,
                100 * (value == S4D_LINKS_PEAK ? r->peak_use : r->mean_use), r->part);
    }
    fputs("\n\n", out);
}

static const char *sort_title(const char *sort)
{
    return strcmp(sort, "n") == 0 ? "node" : sort;
}

static void write_script(const struct panel *panel, int n, const char *value, FILE *out)
{
    fprintf(
        out,
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Use of links: a panel a sort of place, a column a place, a row a part. scale4d links "
        "sets terminal, output, data.\n"
        "set datafile separator \"\\t\"\n"
        "set palette defined (0 '#f7f7f7', 1 '#fee090', 50 '#f46d43', 100 '#a50026')\n"
        "set cbrange [0:100]\nset cblabel \"%s use (%%)\"\nunset key\nset tics out nomirror\n"
        "set multiplot layout 1,%d\n",
        value, n);
    for (int i = 0; i < n; i++) {
        const struct panel *p = &panel[i];
        fprintf(out, "set title \"by %s\" noenhanced\nset xlabel \"%s\"\n", sort_title(p->sort),
                sort_title(p->sort));
        fprintf(out, "set xrange [-0.5:%d.5]\nset yrange [%d.5:-0.5]\nset xtics autofreq\n",
                p->last_place, p->n_parts - 1);
        if (p->last_place < 10)
            fprintf(out, "set xtics 1\n");
        fprintf(out, "set ytics font ',8' noenhanced (");
        for (int k = 0; k < p->n_parts; k += p->n_parts / TICS + 1)
            fprintf(out, "%s'%s' %d", k ? ", " : "", p->part[k], k);
        fprintf(out, ")\n");
        fprintf(out,
                "plot data index %d using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid "
                "noborder linecolor palette\n",
                i);
    }
    fprintf(out, "unset multiplot\n");
}

static int close_file(FILE *out, const char *file, struct s4d_error *err)
{
    bool bad = out == NULL || ferror(out) != 0;
    if ((out != NULL && fclose(out) != 0) || bad)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    return 0;
}

int s4d_links_draw(const struct s4d_links_table *t, enum s4d_links_value value, const char *stem,
                   struct s4d_error *err)
{
    struct panel *panel = NULL;
    int n = 0, cap = 0;
    for (int i = 0; i < t->n; i++)
        panel_of(&panel, &n, &cap, t->row[i].sort);
    char *data = s4d_asprintf("%s.tsv", stem), *script = s4d_asprintf("%s.gp", stem);
    FILE *out = fopen(data, "w");
    for (int i = 0; i < n && out; i++)
        write_panel(t, &panel[i], value, out);
    int rc = close_file(out, data, err);
    out = rc == 0 ? fopen(script, "w") : NULL;
    if (out)
        write_script(panel, n, s4d_links_values[value], out);
    if (rc == 0)
        rc = close_file(out, script, err) || s4d_gnuplot(script, data, stem, err) ? -1 : 0;
    for (int i = 0; i < n; i++)
        free(panel[i].part);
    free(panel);
    free(data);
    free(script);
    return rc;
}
