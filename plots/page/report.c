/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/page/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plots/page/internal.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/record.h" /* for: s4d_version */

struct s4d_report_options s4d_report_defaults(void)
{
    return (struct s4d_report_options){.nights = 365, .sections = 100};
}

static enum s4d_standing worst(const struct s4d_verdict *v)
{
    enum s4d_standing s = S4D_STANDING_WORSE;
    while (s > S4D_STANDING_SAME && v->count[s] == 0)
        s--;
    return s;
}

/* What is to be known in five seconds. */
static char *headline(const struct s4d_verdict *v)
{
    int worse = v->count[S4D_STANDING_WORSE] - v->told[S4D_STANDING_WORSE],
        missing = v->count[S4D_STANDING_MISSING],
        watch = v->count[S4D_STANDING_WATCH] - v->told[S4D_STANDING_WATCH];
    char *more = missing > 0 ? s4d_asprintf(", %d missing", missing) : s4d_strdup(""), *text;
    if (worse > 0)
        text = s4d_asprintf("%d regression%s%s", worse, worse == 1 ? "" : "s", more);
    else if (missing > 0)
        text = s4d_asprintf("No regression, but %d series missing", missing);
    else if (watch > 0)
        text = s4d_asprintf("No regression; %d to watch", watch);
    else if (v->count[S4D_STANDING_TOO_FEW] == v->n_rows)
        text = s4d_strdup("Too few nights to judge");
    else if (v->count[S4D_STANDING_TOO_FEW] + v->count[S4D_STANDING_SAME] == v->n_rows)
        text = s4d_strdup("Nothing changed");
    else
        text = s4d_strdup("No regression");
    free(more);
    return text;
}

static int write_asset(FILE *out, const char *name, struct s4d_error *err)
{
    char *file = s4d_asprintf("%s/plots/page/%s", s4d_data_folder(), name), *text = NULL;
    size_t n;
    int rc = s4d_file_read(file, &text, &n, err);
    if (rc == 0)
        fputs(text, out);
    free(text);
    free(file);
    return rc;
}

static int write_head(FILE *out, const struct s4d_page *page, struct s4d_error *err)
{
    char *said = headline(page->verdict);
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          out);
    s4d_write_escaped(out, said);
    fprintf(out, ": night of %s</title>\n<style>\n", s4d_date(page->verdict->night).text);
    free(said);
    int rc = write_asset(out, "report.css", err);
    fputs("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#series\">Skip to the series</a>\n",
          out);
    return rc;
}

static const struct s4d_row *row_of(const struct s4d_page *page, const struct s4d_series *series)
{
    for (int i = 0; i < page->n; i++)
        if (page->row[i].series == series)
            return &page->row[i];
    return NULL;
}

/* Every standing that series have, the worst first. */
static void write_counts(FILE *out, const struct s4d_verdict *v)
{
    fputs("<p class=\"counts\">", out);
    fprintf(out, "Of %d series", v->n_rows);
    for (int s = S4D_STANDING_WORSE, n = 0; s >= 0; s--)
        if (v->count[s] > 0) {
            fprintf(out, "%s%d ", n++ ? ", " : ": ", v->count[s]);
            s4d_write_standing(out, s);
        }
    fputs(".</p>\n", out);
}

/* With those that show its cause in it. */
static void write_finding(FILE *out, const struct s4d_page *page, int at)
{
    const struct s4d_finding *all = page->verdict->v, *f = &all[at];
    const struct s4d_row *row = row_of(page, f->series);
    int next = at + 1;
    fprintf(out, "<li class=\"%s\"><a href=\"#s%lld\">", s4d_standing_name(f->standing),
            (long long)f->series->id);
    s4d_write_escaped(out, row ? row->title : f->series->label);
    fputs("</a> <span class=\"sub\">", out);
    s4d_write_escaped(out, f->series->host_class);
    fputs("</span><br>", out);
    s4d_write_finding(out, f, f->of < 0 || !s4d_finding_cause(&all[f->of]));
    for (; next < page->verdict->n && all[next].of == at; next++) {
        fputs(next == at + 1 ? "\n<ul class=\"findings\">\n" : "", out);
        write_finding(out, page, next);
    }
    fputs(next > at + 1 ? "</ul></li>\n" : "</li>\n", out);
}

static void write_verdict(FILE *out, const struct s4d_page *page)
{
    const struct s4d_verdict *v = page->verdict;
    char *said = headline(v);
    fprintf(out, "<header class=\"verdict %s\">\n<p class=\"when\">Night of %s</p>\n<h1>",
            s4d_standing_name(worst(v)), s4d_long_date(v->night).text);
    s4d_write_escaped(out, said);
    fputs("</h1>\n", out);
    write_counts(out, v);
    if (v->n > 0)
        fputs("<ol class=\"findings\">\n", out);
    for (int i = 0; i < v->n; i++)
        if (v->v[i].of < 0)
            write_finding(out, page, i);
    if (v->n > 0)
        fputs("</ol>\n", out);
    fputs("</header>\n<main>\n", out);
    free(said);
}

static int write_sections(FILE *out, const struct s4d_page *page, struct s4d_error *err)
{
    int rc = 0, shown = 0;
    fputs("<section aria-labelledby=\"each\">\n<h2 id=\"each\">Night by night</h2>\n"
          "<p class=\"note\">Right, the last 60 nights: <span class=\"key k-samples\">a "
          "sample</span>, "
          "<span class=\"key k-median\">a night's median</span>, <span class=\"key k-level\">the "
          "level "
          "between changes</span>. Left, older nights: <span class=\"key k-range\">from the lowest "
          "to "
          "the highest sample</span>.</p>\n"
          "<p class=\"note on-paper\">On paper, only series of which there is something to "
          "say.</p>\n",
          out);
    for (int i = 0; i < page->n; i++)
        shown += page->row[i].n > 0;
    if (shown < page->n)
        fprintf(out,
                "<p class=\"note\">%d of %d series, those with the worst standing first: "
                "--sections says how many.</p>\n",
                shown, page->n);
    for (int i = 0; i < page->n; i++)
        for (int k = 0; k < page->row[i].n && rc == 0; k++) {
            const struct s4d_piece *piece = &page->row[i].v[k];
            fputs(piece->html, out);
            if (piece->picture >= 0)
                rc = s4d_picture_take(&page->pictures, piece->picture, out, "history", piece->label,
                                      err);
        }
    fputs("</section>\n</main>\n", out);
    return rc;
}

static int write_foot(FILE *out, const struct s4d_page *page, struct s4d_error *err)
{
    const struct s4d_verdict_options *o = &page->verdict->options;
    fprintf(
        out,
        "<footer>\n<p>A change counts where at most %g of %d random orders of the last %d "
        "nights have a split as good, it is at least %g %% and %g standard errors, and a second "
        "night confirms it. A simulated record must be what it was, to the last digit.</p>\n"
        "<p>scale4d %s</p>\n</footer>\n<script>\n",
        o->change.p_max, o->change.permutations, o->window, 100 * o->change.magnitude,
        o->change.deviation, s4d_version);
    int rc = write_asset(out, "report.js", err);
    fputs("</script>\n</body>\n</html>\n", out);
    return rc;
}

/* The worst standing first, then as the verdict has its findings, then its series. */
static int by_standing(const void *a, const void *b)
{
    const struct s4d_row *x = a, *y = b;
    if (x->standing->standing != y->standing->standing)
        return x->standing->standing > y->standing->standing ? -1 : 1;
    if (x->finding && y->finding) /* both of the verdict's list, the worst first */
        return (x->finding > y->finding) - (x->finding < y->finding);
    return (x->standing > y->standing) - (x->standing < y->standing);
}

static const struct s4d_finding *finding_of(const struct s4d_verdict *v,
                                            const struct s4d_series *series)
{
    for (int i = 0; i < v->n; i++) /* the worst first */
        if (v->v[i].series == series)
            return &v->v[i];
    return NULL;
}

static int fill(struct s4d_page *page, struct s4d_error *err)
{
    const struct s4d_verdict *v = page->verdict;
    int rc = 0;
    page->row = s4d_calloc((size_t)v->n_rows + 1, sizeof *page->row);
    page->n = v->n_rows;
    for (int i = 0; i < page->n; i++) {
        page->row[i].standing = &v->row[i];
        page->row[i].series = v->row[i].series;
        page->row[i].finding = finding_of(v, v->row[i].series);
    }
    qsort(page->row, (size_t)page->n, sizeof *page->row, by_standing);
    for (int i = 0; i < page->n && rc == 0; i++)
        rc = s4d_row_fill(page, &page->row[i], i < page->options.sections, err);
    return rc;
}

static int write(FILE *out, const struct s4d_page *page, struct s4d_error *err)
{
    int rc = write_head(out, page, err);
    if (rc == 0) {
        write_verdict(out, page);
        rc = s4d_write_table(out, page, err);
    }
    if (rc == 0)
        rc = write_sections(out, page, err);
    return rc ? rc : write_foot(out, page, err);
}

int s4d_report_write(FILE *out, struct s4d_store *store, const struct s4d_verdict *verdict,
                     const struct s4d_report_options *options, struct s4d_error *err)
{
    struct s4d_page page = {.store = store, .verdict = verdict, .options = *options};
    int rc = s4d_pictures_begin(&page.pictures, err);
    if (rc == 0)
        rc = fill(&page, err);
    if (rc == 0)
        rc = s4d_pictures_draw(&page.pictures, err);
    if (rc == 0)
        rc = write(out, &page, err);
    if (rc == 0 && (fflush(out) != 0 || ferror(out)))
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, "the report", "cannot be written: %s", strerror(errno));
    for (int i = 0; i < page.n; i++)
        s4d_row_free(&page.row[i]);
    free(page.row);
    s4d_pictures_end(&page.pictures);
    return rc;
}
