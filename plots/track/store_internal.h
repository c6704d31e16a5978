/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the store. */
#ifndef S4D_PLOTS_TRACK_STORE_INTERNAL_H
#define S4D_PLOTS_TRACK_STORE_INTERNAL_H

#include <sqlite3.h>

#include "plots/track/layout.h"
#include "plots/track/store.h"

struct s4d_statement {
    const char *sql;
    sqlite3_stmt *prepared;
};

struct s4d_name {
    char *text;
    int64_t id;
};

struct s4d_store {
    sqlite3 *db;
    char *file;
    enum s4d_store_mode mode;
    bool within; /* between begin and commit */
    struct s4d_statement *statement;
    int n_statements, cap_statements;
    char **commit; /* names by id, as they were asked for */
    int n_commits, cap_commits;
    struct s4d_name last_commit, last_environment,
        last_series;            /* of this transaction's last record */
    struct s4d_layout *layouts; /* by id, as they were asked for */
    struct s4d_deflater *deflater;
    struct s4d_layout *of_last; /* of the record read or added last */
    int64_t behind_s, time_s;   /* of the record added last */
    bool refused;
};

/* *err says what SQLite said of the store, and what to do. -1. */
int s4d_store_fail(struct s4d_store *store, struct s4d_error *err);
/* The statement of a literal with its parameters bound ('i': int64_t, 't': const char *, 'b': const
 * void *, size_t), which stay where they are until s4d_store_done; NULL with *err. One statement
 * is not within itself. */
sqlite3_stmt *s4d_store_sql(struct s4d_store *store, struct s4d_error *err, const char *sql,
                            const char *types, ...);
/* 1: a row, 0: done, -1 with *err. */
int s4d_store_step(struct s4d_store *store, sqlite3_stmt *statement, struct s4d_error *err);
void s4d_store_done(sqlite3_stmt *statement); /* NULL: nothing */
/* What was read of the database, and another process or a rollback may change. */
void s4d_store_forget(struct s4d_store *store);
/* A statement that returns no rows. 0 or -1. */
int s4d_store_run(struct s4d_store *store, struct s4d_error *err, const char *sql,
                  const char *types, ...);
/* A text column, "" for NULL; the statement's until its next step. */
const char *s4d_store_text(sqlite3_stmt *statement, int column);

/* A record that is not what was stored. -1 with *err. */
int s4d_store_damaged(struct s4d_store *store, int64_t record, struct s4d_error *err);

/* Gives every series of the list, in its order, its label. */
void s4d_series_labels(struct s4d_series_list *list);

#endif
