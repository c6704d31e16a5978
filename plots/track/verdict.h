/* SPDX-License-Identifier: Apache-2.0 */
/* What a night says about every series of the store: lost, gained, changed, missing, or nothing.
 *
 * A measured series is judged by the change points of its last nights (plots/track/change_points.h)
 * and by reference values where a file gives them (plots/track/reference.h); a simulated one must
 * be what it was, to the last digit. One change shows in several metrics of a series: it is one
 * finding, with the others listed; and in the rates that were measured alone for what is trained:
 * their finding is one under it. Reads the store, changes nothing. */
#ifndef S4D_PLOTS_TRACK_VERDICT_H
#define S4D_PLOTS_TRACK_VERDICT_H

#include <jansson.h>
#include <stdio.h>

#include "plots/track/change_points.h"
#include "plots/track/store.h"
#include "support/option.h" /* for: struct s4d_texts */

enum s4d_finding_kind {
    S4D_FINDING_CHANGE,    /* a change point */
    S4D_FINDING_REFERENCE, /* a night's value outside what the reference allows */
    S4D_FINDING_SIMULATED, /* a simulated record that is not the one before it */
    S4D_FINDING_MISSING    /* a series that was there, and is not this night */
};

/* How a series or a finding stands; the worst last. */
enum s4d_standing {
    S4D_STANDING_SAME,    /* nothing changed */
    S4D_STANDING_TOO_FEW, /* nights, to say anything */
    S4D_STANDING_BETTER,  /* confirmed, and for the better */
    S4D_STANDING_NOTED,   /* a changed model_version, and what it changed */
    S4D_STANDING_WATCH,   /* one night off its level: a second one would confirm it */
    S4D_STANDING_MISSING, /* this night has no record of it */
    S4D_STANDING_WORSE    /* a confirmed regression: the verdict fails */
};

/* A change of one metric, or its distance from a reference. */
struct s4d_metric_change {
    const struct s4d_metric *metric;
    char *name;           /* "busbw_Bps.z-gather" */
    int since;            /* the night it changed on: the first at the new level */
    int nights;           /* from then on, this one included */
    double before, after; /* levels in the metric's unit; of a reference: its value, the night's */
    double part;          /* after / before - 1; NAN: of something that is no number, or of 0 */
    double p;             /* of a change point, else NAN */
    double deviations;    /* the change in its standard errors; else NAN */
};

struct s4d_finding {
    enum s4d_finding_kind kind;
    enum s4d_standing standing;
    const struct s4d_series *series; /* of the verdict's list */
    /* The figure that people know first (FLOP/s, or the first of the table that changed); then the
     * others that changed within two nights of it. A missing series has none. */
    struct s4d_metric_change *v;
    int n, cap;
    int since;           /* the night; of a missing series the first without it */
    int before;          /* the night before that one with a record, or -1 */
    char *commit_before; /* of that night's record, "" where it has none */
    char *commit_since;  /* of the first record since: the change is after the one, up to this */
    int64_t environment_before, environment_since; /* of the same records, in the store */
    char *environment;     /* what of these differs: "NCCL_ALGO, workload.hash"; NULL: nothing */
    int64_t record_before; /* the last record before the change, 0: none */
    int64_t record_now;    /* the last record of this night, 0: none */
    double lower, upper;   /* of a reference: signed fractions, NAN: no limit */
    char *differs;         /* of a simulated one: the keys that differ, "machine.hash, loss"; of a
                            * missing one: what its record of kind failure says; or NULL */
    char *model_before;    /* of a simulated one: the model_version before */
    char *text;            /* one line for people */
    int of; /* of rates: the place in the list of the finding whose cause this one shows, right
             * before it; else -1 */
    json_t *cause; /* what it is put down to, for cli/track/cause.c to fill; NULL: unknown */
};

/* A row for every series that the verdict speaks of. */
struct s4d_series_standing {
    const struct s4d_series *series;
    enum s4d_standing standing;
    int nights; /* that were judged: since the last restart, in the window */
    char *text; /* of its worst finding, else why nothing is said; "" where nothing changed */
};

struct s4d_verdict_options {
    int night;          /* S4D_LAST_NIGHT: the last of the store */
    int window;         /* nights that are looked back on: 60 */
    int retired;        /* days after which a series that no longer runs is not missed: 14 */
    bool missing_fails; /* a series that is missing fails the verdict, too */
    char *references;   /* a file, or NULL; borrowed */
    struct s4d_change_options change;
};
struct s4d_verdict_options s4d_verdict_defaults(void);

struct s4d_verdict {
    struct s4d_verdict_options options;
    int night;                       /* the night judged */
    int least_nights;                /* of a measured series, for a verdict on it */
    struct s4d_series_list list;     /* all series of the store */
    struct s4d_series_standing *row; /* in the list's order; retired ones are left out */
    int n_rows;
    struct s4d_finding
        *v; /* the worst first: by standing, then size; under one those that show its cause */
    int n, cap;
    int count[S4D_STANDING_WORSE + 1]; /* rows of each standing */
    int told[S4D_STANDING_WORSE + 1];  /* of these, rows that only show the cause of another's */
    struct s4d_texts unused;           /* "file:line" of references that no series has */
    char *text;                        /* the first line of the page */
};

/* 0; -1 with *err: the store's errors, a wrong reference file (65), a store without records (65).
 */
int s4d_verdict_of(struct s4d_verdict *verdict, struct s4d_store *store,
                   const struct s4d_verdict_options *options, struct s4d_error *err);
void s4d_verdict_free(struct s4d_verdict *verdict);
/* Whether something got worse, or is missing where that fails. */
bool s4d_verdict_failed(const struct s4d_verdict *verdict);

/* The verdict's text, then a line a finding (below it its cause, and the rates that show it), then
 * what is too short to judge. */
void s4d_verdict_print(const struct s4d_verdict *verdict, FILE *out);
/* {kind: verdict, night, standing, text, counts, options, findings: [{kind, standing, series:
 * {...}, metric, since, nights, before, after, change, p, deviations, commits: [A, B], also: [...],
 * text, cause, rates: [FINDING, ...]}], series: [...]}; new reference. */
json_t *s4d_verdict_record(const struct s4d_verdict *verdict);
/* What it is put down to, in words; NULL: unknown. */
const char *s4d_finding_cause(const struct s4d_finding *finding);
/* Whether the series of rates is measured of what `of` trains: no input of both differs. */
bool s4d_series_measures(const struct s4d_series *rates, const struct s4d_series *of);
/* "worse", "missing", ...; "change", "reference", ... */
const char *s4d_standing_name(enum s4d_standing standing);
const char *s4d_finding_kind_name(enum s4d_finding_kind kind);

/* What the verdict and the report see alike: the nights since the last restart that are judged, of
 * `points`; levels has points->n places. Returns how many; *first: the index of the first in
 * points. */
int s4d_levels(const struct s4d_points *points, struct s4d_level *levels, int *first);

#endif
