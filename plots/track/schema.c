/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the store's tables: row n brings version n to n + 1. A row that was once
 * published never changes; what is new is a row more. */
#include "plots/track/schema.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/file.h"
#include "support/memory.h"

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

int s4d_schema_damaged(const char *file, const char *how, struct s4d_error *err)
{
    s4d_fail(err, S4D_EXIT_DATA, file, "the store is damaged: %.300s", how);
    return s4d_hint(err,
                    "nothing was written. Save what can be read in a new store: scale4d track "
                    "export --store %.200s | scale4d track add --store NEW -; more may come back "
                    "from: sqlite3 %.200s .recover | sqlite3 NEW",
                    file, file);
}

static int full(const char *file, struct s4d_error *err)
{
    s4d_fail(err, S4D_EXIT_OUTPUT, file, "the disk is full: nothing of this was stored");
    return s4d_hint(err,
                    "what was there before is whole; make room, and add the same again: what is "
                    "there is not added twice");
}

int s4d_schema_fail(sqlite3 *db, const char *file, struct s4d_error *err)
{
    int why = errno; /* SQLite does not always keep it */
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        s4d_fail(err, S4D_EXIT_TIMEOUT, file, "another process is writing it, and did not end");
        return s4d_hint(err, "try again; `fuser %.200s` says who has it open", file);
    case SQLITE_CORRUPT:
        return s4d_schema_damaged(file, sqlite3_errmsg(db), err);
    case SQLITE_NOTADB:
        s4d_fail(err, S4D_EXIT_DATA, file, "is no SQLite database");
        return s4d_hint(err, "nothing was written; --store FILE names another");
    case SQLITE_FULL:
        return full(file, err);
    case SQLITE_IOERR:
        why = sqlite3_system_errno(db) ? sqlite3_system_errno(db) : why;
        if (why == ENOSPC || why == EDQUOT || why == EFBIG)
            return full(file, err);
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "%s%s%s", sqlite3_errmsg(db), why ? ": " : "",
                        why ? strerror(why) : "");
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", sqlite3_errmsg(db));
        return s4d_hint(err,
                        "the store writes files beside it, too: its folder must take new ones");
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

static int future(const char *file, int version, int newest, struct s4d_error *err)
{
    s4d_fail(err, S4D_EXIT_DATA, file,
             "expected a store of version %d at most, this is of version %d", newest, version);
    return s4d_hint(err, "a newer scale4d wrote it: use that one; nothing was written");
}

int s4d_schema_migrate(sqlite3 *db, const char *file, const char *const *rows, int n,
                       struct s4d_error *err)
{
    int version = 0, rc = 0;
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) ||
        number(db, "PRAGMA user_version", &version)) /* another process may have been here */
        return s4d_schema_fail(db, file, err);
    if (version > n)
        rc = future(file, version, n, err);
    for (; rc == 0 && version < n; version++) {
        char *stamp = s4d_asprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                   S4D_APPLICATION_ID, version + 1);
        if (sqlite3_exec(db, rows[version], NULL, NULL, NULL) ||
            sqlite3_exec(db, stamp, NULL, NULL, NULL))
            rc = s4d_schema_fail(db, file, err);
        free(stamp);
    }
    if (rc == 0 && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
        rc = s4d_schema_fail(db, file, err);
    if (rc)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* SELECT of a file that is no database fails here first. */
static int check(sqlite3 *db, const char *file, bool write, int *version, struct s4d_error *err)
{
    int application = 0, tables = 0;
    /* At one moment: another process may be making the store, and a table without the application's
     * number would be someone else's. */
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) ||
        number(db, "PRAGMA application_id", &application) ||
        number(db, "PRAGMA user_version", version) ||
        number(db, "SELECT count(*) FROM sqlite_schema", &tables) ||
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
        return s4d_schema_fail(db, file, err);
    if (application != S4D_APPLICATION_ID && (tables > 0 || application != 0 || !write)) {
        s4d_fail(err, S4D_EXIT_DATA, file, "is a SQLite database, but no store of scale4d");
        return s4d_hint(err, "nothing was written; --store FILE names another");
    }
    if (*version > VERSIONS)
        return future(file, *version, VERSIONS, err);
    if (*version < VERSIONS && !write) {
        s4d_fail(err, S4D_EXIT_DATA, file, "is of version %d, expected %d", *version, VERSIONS);
        return s4d_hint(err, "scale4d track add /dev/null brings it up to date");
    }
    return 0;
}

/* Before the first byte is written: that a damage lies elsewhere does not make the store whole.
 * Large ones would take seconds, and SQLite looks at every page that it uses. */
static int check_pages(sqlite3 *db, const char *file, struct s4d_error *err)
{
    enum { MOST_BYTES = 64 << 20 };
    sqlite3_stmt *s = NULL;
    int pages = 0, size = 0;
    if (number(db, "PRAGMA page_count", &pages) || number(db, "PRAGMA page_size", &size))
        return s4d_schema_fail(db, file, err);
    if ((int64_t)pages * size > MOST_BYTES)
        return 0;
    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &s, NULL) ||
        sqlite3_step(s) != SQLITE_ROW) {
        sqlite3_finalize(s);
        return s4d_schema_fail(db, file, err);
    }
    const char *found = (const char *)sqlite3_column_text(s, 0);
    int rc = 0;
    if (!found || strcmp(found, "ok") != 0)
        rc = s4d_schema_damaged(file, found ? found : "it cannot be checked", err);
    sqlite3_finalize(s);
    return rc;
}

/* Of this connection. synchronous: what is committed survives the loss of power. Reading the last
 * nights of all series goes over the same 64 MiB of pages for each of them. */
static int settings(sqlite3 *db, bool write)
{
    return sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA synchronous = FULL;", NULL, NULL,
                        NULL) ||
           sqlite3_exec(db,
                        write ? "PRAGMA cache_size = -32768"
                              : "PRAGMA cache_size = -65536; PRAGMA query_only = ON; BEGIN",
                        NULL, NULL, NULL);
}

/* Of a new file, before its first table. Pages of 8 KiB waste less behind records of half a kB. The
 * change to WAL does not wait for others by itself. */
static int first_settings(sqlite3 *db, int wait_ms)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int rc = SQLITE_BUSY;
    for (int waited_ms = 0; waited_ms <= wait_ms; waited_ms += 10) {
        rc = sqlite3_exec(db,
                          "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL;"
                          "PRAGMA journal_mode = WAL;",
                          NULL, NULL, NULL);
        if (rc != SQLITE_BUSY && rc != SQLITE_LOCKED)
            break;
        nanosleep(&moment, NULL);
    }
    return rc;
}

static int prepare(sqlite3 *db, const char *file, bool write, int wait_ms, struct s4d_error *err)
{
    int version = 0;
    if (check(db, file, write, &version, err))
        return -1;
    if (settings(db, write))
        return s4d_schema_fail(db, file, err);
    if (!write)
        return 0;
    if (version == VERSIONS)
        return check_pages(db, file, err);
    if (version == 0 && first_settings(db, wait_ms))
        return s4d_schema_fail(db, file, err);
    return s4d_schema_migrate(db, file, versions, VERSIONS, err);
}

/* Reading: what opening it would not say well. */
static int check_file(const char *file, bool write, struct s4d_error *err)
{
    struct stat about;
    bool there = stat(file, &about) == 0;
    if (!*file) {
        s4d_fail(err, S4D_EXIT_USAGE, "--store", "expected a file, nothing says where it is");
        return s4d_hint(err, "--store FILE or SCALE4D_STORE; else HOME must be set");
    }
    if (there && !S_ISREG(about.st_mode))
        return s4d_fail(err, write ? S4D_EXIT_OUTPUT : S4D_EXIT_DATA, file,
                        "expected a store, this is %s",
                        S_ISDIR(about.st_mode) ? "a folder" : "no ordinary file");
    if (!there && !write) {
        s4d_fail(err, S4D_EXIT_DATA, file, "there is no store");
        return s4d_hint(err, "scale4d track add FILE makes it; --store FILE or SCALE4D_STORE says "
                             "where it is");
    }
    if (!write && access(file, R_OK) != 0)
        return s4d_fail(err, S4D_EXIT_DATA, file, "cannot be read: %s", strerror(errno));
    return there ? 0 : s4d_file_writable(file, err);
}

/* The name of a file that nobody writes, as SQLite's URI: in a folder that takes no new files a
 * store is read without those that a writer would need beside it. */
static char *unwritten(const char *file)
{
    char *uri = s4d_malloc(3 * strlen(file) + 40), *to = uri + sprintf(uri, "file:");
    for (const char *c = file; *c; c++)
        to += strchr("%?#", *c) ? sprintf(to, "%%%02X", (unsigned char)*c) : sprintf(to, "%c", *c);
    strcpy(to, "?immutable=1");
    return uri;
}

static bool has_log(const char *file)
{
    struct stat about;
    char *log = s4d_asprintf("%s-wal", file);
    bool has = stat(log, &about) == 0 && about.st_size > 0;
    free(log);
    return has;
}

static int open_file(sqlite3 **db, const char *file, int flags, int wait_ms)
{
    /* ":memory:" is no file to SQLite, unless a folder stands before it. */
    bool plain = file[0] == '/' || flags & SQLITE_OPEN_URI;
    char *path = s4d_asprintf("%s%s", plain ? "" : "./", file);
    int rc = sqlite3_open_v2(path, db, flags, NULL);
    free(path);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(*db, 1);
        sqlite3_busy_timeout(*db, wait_ms);
    }
    return rc;
}

int s4d_schema_open(sqlite3 **db, const char *file, bool write, int wait_ms, struct s4d_error *err)
{
    *db = NULL;
    if (check_file(file, write, err))
        return -1;
    int rc = open_file(db, file, SQLITE_OPEN_READWRITE | (write ? SQLITE_OPEN_CREATE : 0), wait_ms);
    rc = rc ? s4d_schema_fail(*db, file, err) : prepare(*db, file, write, wait_ms, err);
    int why = *db ? sqlite3_errcode(*db) & 0xff : 0;
    if (rc && !write && (why == SQLITE_CANTOPEN || why == SQLITE_READONLY) && !has_log(file)) {
        char *uri = unwritten(file);
        sqlite3_close(*db);
        rc = open_file(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, wait_ms);
        rc = rc ? s4d_schema_fail(*db, file, err) : prepare(*db, file, write, wait_ms, err);
        free(uri);
    }
    if (rc) {
        sqlite3_close(*db);
        *db = NULL;
    }
    return rc;
}
