/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the store, its versions, and what SQLite's errors mean to people. */
#ifndef S4D_PLOTS_TRACK_SCHEMA_H
#define S4D_PLOTS_TRACK_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>

#include "support/error.h"

/* "S4Dt", in the file's header: a store of ours. */
enum { S4D_APPLICATION_ID = 0x53344474 };

/* Opens the file; for writing makes it where it is not, and brings an older version up to date. 0;
 * -1 with *err and *db NULL. wait_ms: for another process that writes. */
int s4d_schema_open(sqlite3 **db, const char *file, bool write, int wait_ms, struct s4d_error *err);
/* Brings a store of whatever version to version n: row i, SQL, brings version i to i + 1. All of it
 * or nothing. */
int s4d_schema_migrate(sqlite3 *db, const char *file, const char *const *rows, int n,
                       struct s4d_error *err);
/* What SQLite said last, for people. -1. */
int s4d_schema_fail(sqlite3 *db, const char *file, struct s4d_error *err);

/* A store that is damaged: what to do. -1. */
int s4d_schema_damaged(const char *file, const char *how, struct s4d_error *err);

#endif
