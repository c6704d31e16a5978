/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the report. */
#ifndef S4D_PLOTS_PAGE_INTERNAL_H
#define S4D_PLOTS_PAGE_INTERNAL_H

#include "plots/format/format.h" /* for: s4d_write_escaped */
#include "plots/page/pictures.h"
#include "plots/page/report.h"

/* HTML that is written before its pictures are drawn: text, a picture, text, ... */
struct s4d_piece {
    char *html;
    int picture; /* after it; -1: none */
    char *label; /* of the picture, plain text */
};

/* A series on the page. */
struct s4d_row {
    const struct s4d_series *series;
    const struct s4d_series_standing *standing;
    const struct s4d_finding *finding; /* its worst, or NULL */
    char *title;                       /* "gpt-5b, 64 GPUs, 2x2x4x4" */
    const struct s4d_metric *metric;   /* the one that stands for it; NULL: no night has any */
    double last, before; /* of the last night, and the level that it is held against; NAN: none */
    int nights;          /* drawn */
    int spark;           /* picture, or -1 */
    struct s4d_piece *v; /* its section; n 0: it has none */
    int n, cap;
};

struct s4d_page {
    struct s4d_store *store;
    const struct s4d_verdict *verdict;
    struct s4d_report_options options;
    struct s4d_pictures pictures;
    struct s4d_row *row;
    int n;
};

/* series.c: fills what the table shows; with a section the pieces, too. */
int s4d_row_fill(struct s4d_page *page, struct s4d_row *row, bool section, struct s4d_error *err);
void s4d_row_free(struct s4d_row *row);

/* steps.c: the levels of a metric over all its nights, judged window by window as the verdict does.
 * Returns how many, in *steps; -1 with *err. */
int s4d_steps_of(const struct s4d_points *points, bool simulated,
                 const struct s4d_verdict_options *options, struct s4d_step **steps,
                 struct s4d_error *err);

/* changes.c: a table of nights on which the commit or the environment was another one than on the
 * night before: the last of them, and those beside a change of level. Writes nothing where there is
 * none. */
int s4d_write_changes(FILE *out, struct s4d_store *store, const struct s4d_points *points,
                      const struct s4d_step *steps, int n_steps, struct s4d_error *err);

/* table.c */
int s4d_write_table(FILE *out, const struct s4d_page *page, struct s4d_error *err);
/* words.c: what people call things. */
const char *s4d_standing_word(enum s4d_standing standing); /* "worse", "to watch", ... */
char *s4d_metric_title(const char *name);                  /* "bus bandwidth z-gather" */
struct s4d_when {
    char text[48];
};
struct s4d_when s4d_long_date(int day);   /* "Monday 30 November 2026" */
struct s4d_when s4d_short_date(int day);  /* "30 Nov 2026" */
struct s4d_when s4d_percent(double part); /* "−3.1 %", with a minus sign; "" of a NAN */
/* <span class="standing worse">worse</span> */
void s4d_write_standing(FILE *out, enum s4d_standing standing);
/* "lost 3.1 % ..." without the series' name, as HTML; with_cause: the cause below it. */
void s4d_write_finding(FILE *out, const struct s4d_finding *finding, bool with_cause);

#endif
