/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the store's tables: row n brings version n to n + 1. A row that was once
 * published never changes; what is new is a row more. */
#include "plots/track/schema.h"

#include <string.h>
#include <unistd.h>

#include "support/memory.h"

#include <stdlib.h>

static const char *const versions[] = {
    "CREATE TABLE series ("
    "  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, host_class TEXT NOT NULL,"
    "  backend TEXT NOT NULL, kind TEXT NOT NULL, workload TEXT NOT NULL, gpus INTEGER NOT NULL,"
    "  grid TEXT NOT NULL, options TEXT NOT NULL, model_version TEXT NOT NULL) STRICT;"
    "CREATE TABLE git_commit (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;"
    "CREATE TABLE environment (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;"
    "CREATE TABLE layout ("
    "  id INTEGER PRIMARY KEY, series INTEGER NOT NULL REFERENCES series, shape INTEGER NOT NULL,"
    "  text BLOB NOT NULL, numbers BLOB NOT NULL) STRICT;"
    "CREATE INDEX layout_by_shape ON layout (series, shape);"
    "CREATE TABLE record ("
    "  id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, series INTEGER NOT NULL REFERENCES series,"
    "  night INTEGER NOT NULL, time INTEGER NOT NULL,"
    "  git_commit INTEGER NOT NULL REFERENCES git_commit,"
    "  environment INTEGER NOT NULL REFERENCES environment,"
    "  layout INTEGER NOT NULL REFERENCES layout, numbers BLOB NOT NULL, text BLOB NOT NULL) "
    "STRICT;"
    "CREATE INDEX record_by_hash ON record (hash);"
    "CREATE INDEX record_by_night ON record (series, night);"
    "CREATE TABLE annotation ("
    "  id INTEGER PRIMARY KEY, series INTEGER REFERENCES series, night INTEGER NOT NULL,"
    "  restarts INTEGER NOT NULL, git_commit TEXT NOT NULL, text TEXT NOT NULL,"
    "  author TEXT NOT NULL, time TEXT NOT NULL) STRICT;",
};
enum { VERSIONS = sizeof versions / sizeof *versions };

int s4d_schema_fail(sqlite3 *db, const char *file, struct s4d_error *err)
{
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        s4d_fail(err, S4D_EXIT_TIMEOUT, file, "another process is writing it, and did not end");
        return s4d_hint(err, "try again; `fuser %.200s` says who has it open", file);
    case SQLITE_CORRUPT:
        s4d_fail(err, S4D_EXIT_DATA, file, "the store is damaged: %s", sqlite3_errmsg(db));
        return s4d_hint(err,
                        "nothing was written; save what can be read: scale4d track export --store "
                        "%.200s > records.jsonl, or sqlite3 %.200s .recover | sqlite3 new.sqlite",
                        file, file);
    case SQLITE_NOTADB:
        s4d_fail(err, S4D_EXIT_DATA, file, "is no SQLite database");
        return s4d_hint(err, "nothing was written; --store FILE names another");
    case SQLITE_FULL:
        s4d_fail(err, S4D_EXIT_OUTPUT, file, "the disk is full: nothing of this was stored");
        return s4d_hint(err, "make room, and add the same again: what is there already is not "
                             "added twice");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_IOERR:
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", sqlite3_errmsg(db));
    default:
        return s4d_fail(err, S4D_EXIT_BUG, file, "%s", db ? sqlite3_errmsg(db) : "no memory");
    }
}

static int number(sqlite3 *db, const char *pragma, int *value)
{
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, pragma, -1, &s, NULL);
    if (rc == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        *value = sqlite3_column_int(s, 0);
    return sqlite3_finalize(s) || rc ? -1 : 0;
}

static int migrate(sqlite3 *db, const char *file, struct s4d_error *err)
{
    int version = 0;
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) ||
        number(db, "PRAGMA user_version", &version))
        return s4d_schema_fail(db, file, err);
    for (; version < VERSIONS; version++) {
        char *stamp = s4d_asprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                   S4D_APPLICATION_ID, version + 1);
        int rc = sqlite3_exec(db, versions[version], NULL, NULL, NULL) ||
                 sqlite3_exec(db, stamp, NULL, NULL, NULL);
        free(stamp);
        if (rc)
            return s4d_schema_fail(db, file, err);
    }
    return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) ? s4d_schema_fail(db, file, err) : 0;
}

static int check(sqlite3 *db, const char *file, bool write, struct s4d_error *err)
{
    int application = 0, version = 0, tables = 0;
    if (number(db, "PRAGMA application_id", &application) ||
        number(db, "PRAGMA user_version", &version) ||
        number(db, "SELECT count(*) FROM sqlite_schema", &tables))
        return s4d_schema_fail(db, file, err);
    if (application != S4D_APPLICATION_ID && (tables > 0 || application != 0 || !write)) {
        s4d_fail(err, S4D_EXIT_DATA, file, "is a SQLite database, but no store of scale4d");
        return s4d_hint(err, "nothing was written; --store FILE names another");
    }
    if (version > VERSIONS) {
        s4d_fail(err, S4D_EXIT_DATA, file,
                 "expected a store of version %d at most, this is of version %d", VERSIONS,
                 version);
        return s4d_hint(err, "a newer scale4d wrote it: use that one; nothing was written");
    }
    if (version < VERSIONS && !write) {
        s4d_fail(err, S4D_EXIT_DATA, file, "is of version %d, expected %d", version, VERSIONS);
        return s4d_hint(err, "scale4d track add /dev/null brings it up to date");
    }
    return version < VERSIONS ? migrate(db, file, err) : 0;
}

static int settings(sqlite3 *db, bool write)
{
    return sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON;", NULL, NULL,
                        NULL) ||
           (write && sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;", NULL,
                                  NULL, NULL));
}

int s4d_schema_open(sqlite3 **db, const char *file, bool write, int wait_ms, struct s4d_error *err)
{
    *db = NULL;
    if (!write && access(file, F_OK) != 0) {
        s4d_fail(err, S4D_EXIT_DATA, file, "there is no store");
        return s4d_hint(err, "scale4d track add FILE makes it; --store FILE or SCALE4D_STORE says "
                             "where it is");
    }
    int rc = sqlite3_open_v2(
        file, db, write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY, NULL);
    if (rc == SQLITE_OK)
        sqlite3_busy_timeout(*db, wait_ms);
    rc = rc ? s4d_schema_fail(*db, file, err) : check(*db, file, write, err);
    if (rc == 0 && settings(*db, write))
        rc = s4d_schema_fail(*db, file, err);
    if (rc) {
        sqlite3_close(*db);
        *db = NULL;
    }
    return rc;
}
