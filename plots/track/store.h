/* SPDX-License-Identifier: Apache-2.0 */
/* The store of nightly records: one SQLite file.
 *
 * A record is kept as it came, byte for byte, and once: the hash of its canonical form (keys
 * sorted, no spaces) finds it again. Records with the same inputs are a series; a series' records
 * of one UTC date are a night. Writers wait for each other; what a call has returned 0 for is on
 * the disk.
 *
 * Errors: exit 65 (no store there, not a store, damaged, of a newer program), 74 (cannot be
 * written, disk full), 75 (another process held it for too long), each with a hint. */
#ifndef S4D_PLOTS_TRACK_STORE_H
#define S4D_PLOTS_TRACK_STORE_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "plots/track/metrics.h"
#include "support/error.h"

struct s4d_store;
enum s4d_store_mode {
    S4D_STORE_READ, /* of one that is there */
    S4D_STORE_WRITE /* makes it where it is not, and brings an older one up to date */
};

/* SCALE4D_STORE, else XDG_DATA_HOME/scale4d/track.sqlite, else ~/.local/share/...; "" without HOME,
 * which opening refuses (exit 64). Caller frees. */
char *s4d_store_default(void);
/* file NULL: the default, whose folders are made for writing. */
int s4d_store_open(struct s4d_store **store, const char *file, enum s4d_store_mode mode,
                   struct s4d_error *err);
void s4d_store_close(struct s4d_store *store); /* NULL: nothing */
const char *s4d_store_file(const struct s4d_store *store);

/* A night is a number of days since 1970-01-01; as text YYYY-MM-DD. */
enum { S4D_LAST_NIGHT = INT_MAX };
struct s4d_date {
    char text[16];
};
struct s4d_date s4d_date(int day);
/* 0, or -1: no date of the calendar. */
int s4d_date_parse(const char *text, int *day);

/* --- adding --------------------------------------------------------------------------------- */

/* Begin, any number of adds, commit. close without commit leaves the store as it was. */
int s4d_store_begin(struct s4d_store *store, struct s4d_error *err);
int s4d_store_commit(struct s4d_store *store, struct s4d_error *err);
/* One record: a JSON object on one line of n bytes, with or without its newline. *is_new: false
 * where the store has it already. where: "file:line", for the message. 0; -1 (exit 65: the record
 * is wrong, and the transaction goes on without it; others: the store failed). */
int s4d_store_add(struct s4d_store *store, const char *line, size_t n, const char *where,
                  bool *is_new, struct s4d_error *err);
/* By how much the record added last is older than its series' last one was: a clock went backwards,
 * or it comes late. At most 0: it is not. */
int64_t s4d_store_behind_s(const struct s4d_store *store);
/* Of the record added last: its time, or the beginning of its night if that is later, in seconds
 * since 1970; whether the add failed for the record alone, and the transaction goes on. */
int64_t s4d_store_time_s(const struct s4d_store *store);
bool s4d_store_refused(const struct s4d_store *store);

/* --- reading -------------------------------------------------------------------------------- */

struct s4d_series {
    int64_t id;
    char *host_class, *backend; /* backend: "simulated", "host", "cuda" */
    char *kind;                 /* "train", "simulate", "collective", "rates", ... */
    char *workload, *grid;      /* "" where it has none */
    char *model_version;        /* of a simulated one, else "": measuring does not depend on it */
    char *options;              /* the other inputs: canonical JSON of an object */
    char *label;                /* one line for people, told apart from every other of the list */
    int64_t gpus;               /* 0: it says none */
    int64_t records;
    int nights, first, last; /* how many, and the days of the first and the last */
    /* Of a simulated one: the series that differs from it in model_version alone and began after it
     * (the next such), 0: none. It is the same experiment since times were expected to change. */
    int64_t newer;
};
struct s4d_series_list {
    struct s4d_series *v;
    int n, cap;
};
/* All series, by host class, backend, kind, workload, GPUs, grid and options. */
int s4d_store_series(struct s4d_store *store, struct s4d_series_list *list, struct s4d_error *err);
void s4d_series_list_free(struct s4d_series_list *list);

struct s4d_night {
    int day;
    struct s4d_date date;
    double *samples; /* of all its records, in the order of their times */
    int n;
    double median;   /* of all samples */
    double *repeats; /* the median of each record: independent of each other, samples less so */
    int n_repeats;
    int64_t record;      /* the last record of the night that has the metric */
    int64_t environment; /* its; s4d_store_environment */
    const char *commit; /* its provenance.commit, "" where it has none; the store's, until closed */
    int64_t restart;    /* the annotation that lets the history start again at this night, or 0 */
};
struct s4d_points {
    const struct s4d_metric *metric; /* the row of the table */
    char *name;                      /* "busbw_Bps.z-gather" */
    struct s4d_night *v;             /* oldest first; a night without a record is not there */
    int n, cap;
};
struct s4d_history {
    struct s4d_points *v; /* a metric each, in the table's order */
    int n, cap;
};
/* The last `nights` nights (0: all) of a series up to the day `until` (S4D_LAST_NIGHT: its last),
 * of all metrics: one query. */
int s4d_store_history(struct s4d_store *store, int64_t series, int nights, int until,
                      struct s4d_history *history, struct s4d_error *err);
/* The same of one metric; no points where the series has none. */
int s4d_store_points(struct s4d_store *store, int64_t series, const char *metric, int nights,
                     int until, struct s4d_points *points, struct s4d_error *err);
void s4d_points_free(struct s4d_points *points);
void s4d_history_free(struct s4d_history *history);

/* A record's own bytes, without newline, with '\0'; caller frees. 0, or -1 (65: no such record). */
int s4d_store_record(struct s4d_store *store, int64_t record, char **line, struct s4d_error *err);
/* What may change results and is no input: {version, model_version, blas, hashes of workload and
 * machine, environment variables but those of job launchers}; new reference. */
int s4d_store_environment(struct s4d_store *store, int64_t environment, json_t **object,
                          struct s4d_error *err);
/* Its name for people: 16 hexadecimal digits of the hash; "" of none. */
struct s4d_record_hash {
    char text[17];
};
struct s4d_record_hash s4d_store_hash(struct s4d_store *store, int64_t record);
/* Records of a series, oldest first (0: of all, in the order in which they were added), from a
 * night to another, both included: `take` returns 0 to go on; another value ends it and is
 * returned. */
struct s4d_stored {
    int64_t record, series;
    int day;
    char hash[17]; /* its name for people: 16 hex digits */
    const char *line;
};
/* A record that is damaged is taken with line NULL; of all, what lies behind a damaged page is
 * taken, too, before -1 (exit 65). */
int s4d_store_records(struct s4d_store *store, int64_t series, int from, int until,
                      int (*take)(void *to, const struct s4d_stored *record), void *to,
                      struct s4d_error *err);

/* The record with that hash, 16 hex digits, or a beginning of them that is only its own, at least
 * 6. 0; -1 (exit 65). */
int s4d_store_find(struct s4d_store *store, const char *hash, int64_t *record,
                   struct s4d_error *err);
/* Reads every page and every record, and tells each fault in words. 0: none; 1: some; -1. */
int s4d_store_check(struct s4d_store *store, void (*tell)(void *to, const char *fault), void *to,
                    int64_t *records, struct s4d_error *err);

/* The error of a store that has faults: how to save what can be read. -1. */
int s4d_store_damage(const struct s4d_store *store, struct s4d_error *err);

/* --- annotations ---------------------------------------------------------------------------- */

struct s4d_annotation {
    int64_t id, series; /* series 0: all */
    int day;            /* from this night on */
    bool restarts;      /* the history starts again there; else it is a note */
    char *commit;       /* accepted since it, or "" */
    char *text, *author, *time;
};
struct s4d_annotation_list {
    struct s4d_annotation *v;
    int n, cap;
};
/* Within begin and commit. id is given, the rest is the caller's. day < 0: the first night of the
 * commit (65: no record has it). */
int s4d_store_annotate(struct s4d_store *store, struct s4d_annotation *annotation,
                       struct s4d_error *err);
int s4d_store_annotation_remove(struct s4d_store *store, int64_t id, struct s4d_error *err);
int s4d_store_annotations(struct s4d_store *store, struct s4d_annotation_list *list,
                          struct s4d_error *err);
void s4d_annotation_list_free(struct s4d_annotation_list *list);

/* --- removing ------------------------------------------------------------------------------- */

/* Within begin and commit: records of nights before `day` (series 0: of all) go, annotations stay,
 * and a series without records goes if it has no annotation. */
int s4d_store_prune(struct s4d_store *store, int64_t series, int day, int64_t *records,
                    struct s4d_error *err);
int s4d_store_remove(struct s4d_store *store, int64_t record, struct s4d_error *err);
/* After commit: gives what was freed back to the file system. */
int s4d_store_shrink(struct s4d_store *store, struct s4d_error *err);

#endif
