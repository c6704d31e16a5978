/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all series. The script of the page makes its heads buttons; without it, it is a
 * table whose worst rows come first. */
#include <math.h>
#include <string.h>

#include "plots/page/internal.h"
#include "plots/track/verdict_internal.h" /* for: s4d_metric_shown */

static double change_of(const struct s4d_row *row)
{
    return row->last / row->before - 1;
}

/* A cell with what it is sorted by; label: what a phone shows before it. */
static void open_cell(FILE *out, const char *class, const char *label, double sort)
{
    fprintf(out, "<td class=\"%s\" data-label=\"%s\"", class, label);
    if (!isnan(sort))
        fprintf(out, " data-sort=\"%.9g\"", sort);
    putc('>', out);
}

static void write_name(FILE *out, const struct s4d_row *row)
{
    fputs("<th scope=\"row\" class=\"name\">", out);
    if (row->n > 0)
        fprintf(out, "<a href=\"#s%lld\">", (long long)row->series->id);
    s4d_write_escaped(out, row->title);
    if (row->n > 0)
        fputs("</a>", out);
    fputs(" <span class=\"sub\">", out);
    s4d_write_escaped(out, row->series->label);
    fputs("</span></th>", out);
}

static int write_row(FILE *out, const struct s4d_page *page, const struct s4d_row *row,
                     struct s4d_error *err)
{
    enum s4d_standing standing = row->standing->standing;
    int rc = 0;
    fprintf(out, "<tr data-standing=\"%s\">", s4d_standing_name(standing));
    open_cell(out, "state", "Standing", (double)standing);
    s4d_write_standing(out, standing);
    fputs("</td>", out);
    write_name(out, row);
    open_cell(out, "number", "Last night", row->last);
    if (row->metric && !isnan(row->last))
        fputs(s4d_metric_shown(row->metric, row->last).text, out);
    fputs("</td>", out);
    open_cell(out, "number", "Change", change_of(row));
    fputs(s4d_percent(change_of(row)).text, out);
    fputs("</td>", out);
    open_cell(out, "trend", "60 nights", NAN);
    if (row->spark >= 0) {
        char label[120];
        snprintf(label, sizeof label, "the last %d nights", row->nights < 60 ? row->nights : 60);
        rc = s4d_picture_take(&page->pictures, row->spark, out, "spark", label, err);
    }
    fputs("</td>", out);
    open_cell(out, "number", "Nights", row->series->nights);
    fprintf(out, "%d</td></tr>\n", row->series->nights);
    return rc;
}

/* Hidden until the script that works them is there. */
static void write_filter(FILE *out, const struct s4d_page *page)
{
    fputs("<form class=\"filter\" id=\"filter\" hidden>\n"
          "<label>Find <input type=\"search\" id=\"find\" autocomplete=\"off\" "
          "placeholder=\"model, machine, grid\"></label>\n"
          "<label>Show <select id=\"show\"><option value=\"\">all standings</option>",
          out);
    for (int s = S4D_STANDING_WORSE; s >= 0; s--)
        if (page->verdict->count[s] > 0)
            fprintf(out, "<option value=\"%s\">%s (%d)</option>", s4d_standing_name(s),
                    s4d_standing_word(s), page->verdict->count[s]);
    fprintf(
        out,
        "</select></label>\n<output id=\"shown\" for=\"find show\">%d of %d</output>\n</form>\n",
        page->n, page->n);
}

int s4d_write_table(FILE *out, const struct s4d_page *page, struct s4d_error *err)
{
    int rc = 0;
    fputs("<section aria-labelledby=\"series\">\n<h2 id=\"series\">All series</h2>\n", out);
    write_filter(out, page);
    fputs("<table class=\"series\" id=\"table\">\n<caption>Change is of the last night against the "
          "level before: that before a change, else the median of the nights judged.</caption>\n"
          "<thead><tr><th scope=\"col\" aria-sort=\"descending\">Standing</th>"
          "<th scope=\"col\">Series</th>"
          "<th scope=\"col\" class=\"number\">Last night</th>"
          "<th scope=\"col\" class=\"number\">Change</th>"
          "<th scope=\"col\" data-plain>60 nights</th>"
          "<th scope=\"col\" class=\"number\">Nights</th></tr></thead>\n<tbody>\n",
          out);
    for (int i = 0; i < page->n && rc == 0; i++)
        rc = write_row(out, page, &page->row[i], err);
    fputs(
        "</tbody>\n</table>\n<p class=\"note\" id=\"nothing\" hidden>No series is like that.</p>\n"
        "</section>\n",
        out);
    return rc;
}
