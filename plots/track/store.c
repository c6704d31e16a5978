/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/store.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/track/schema.h"
#include "plots/track/store_internal.h"
#include "support/memory.h"
#include "support/quote.h"
#include "support/units.h"

enum { WAIT_ms = 30000, WAIT_MOST_s = 86400 };

char *s4d_store_default(void)
{
    const char *own = getenv("SCALE4D_STORE"), *data = getenv("XDG_DATA_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        return s4d_strdup(own);
    if (data && *data)
        return s4d_asprintf("%s/scale4d/track.sqlite", data);
    if (!home || !*home)
        return s4d_strdup(""); /* refused when it is opened */
    return s4d_asprintf("%s/.local/share/scale4d/track.sqlite", home);
}

/* The folders above the file, as far as they can be made: opening it says the rest. */
static void make_folders(const char *file)
{
    char *path = s4d_strdup(file);
    for (char *slash = *path ? strchr(path + 1, '/') : NULL; slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    free(path);
}

/* For another process that writes. */
static int wait_for(int *ms, struct s4d_error *err)
{
    const char *text = getenv("SCALE4D_STORE_WAIT");
    double wait_s = WAIT_ms / 1e3;
    if (text && *text && (s4d_parse_time(text, &wait_s, NULL) || wait_s > WAIT_MOST_s))
        return s4d_fail(err, S4D_EXIT_USAGE, "SCALE4D_STORE_WAIT",
                        "expected a time of at most a day, as 30 s, got %s", s4d_quote(text).text);
    *ms = (int)ceil(wait_s * 1e3);
    return 0;
}

int s4d_store_fail(struct s4d_store *store, struct s4d_error *err)
{
    return s4d_schema_fail(store->db, store->file, err);
}

int s4d_store_open(struct s4d_store **store, const char *file, enum s4d_store_mode mode,
                   struct s4d_error *err)
{
    struct s4d_store *s = s4d_calloc(1, sizeof *s);
    s->file = file ? s4d_strdup(file) : s4d_store_default();
    s->mode = mode;
    if (!file && mode == S4D_STORE_WRITE)
        make_folders(s->file);
    int wait_ms = WAIT_ms, rc = wait_for(&wait_ms, err);
    if (rc == 0)
        rc = s4d_schema_open(&s->db, s->file, mode == S4D_STORE_WRITE, wait_ms, err);
    if (rc) {
        s4d_store_close(s);
        return -1;
    }
    *store = s;
    return 0;
}

void s4d_store_forget(struct s4d_store *store)
{
    s4d_layouts_forget(store);
    free(store->last_commit.text);
    free(store->last_environment.text);
    free(store->last_series.text);
    store->last_commit = store->last_environment = store->last_series = (struct s4d_name){0};
}

void s4d_store_close(struct s4d_store *store)
{
    if (!store)
        return;
    for (int i = 0; i < store->n_statements; i++)
        sqlite3_finalize(store->statement[i].prepared);
    free(store->statement);
    s4d_store_forget(store);
    s4d_deflate_free(store->deflater);
    sqlite3_close(store->db);
    for (int i = 0; i < store->n_commits; i++)
        free(store->commit[i]);
    free(store->commit);
    free(store->file);
    free(store);
}

const char *s4d_store_file(const struct s4d_store *store)
{
    return store->file;
}

/* Prepared once: the texts are literals of these files, so their addresses tell them apart. */
static sqlite3_stmt *prepared(struct s4d_store *store, const char *sql)
{
    for (int i = 0; i < store->n_statements; i++)
        if (store->statement[i].sql == sql)
            return store->statement[i].prepared;
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL) != SQLITE_OK)
        return NULL;
    s4d_push(store->statement, store->n_statements, store->cap_statements,
             (struct s4d_statement){sql, s});
    return s;
}

static sqlite3_stmt *bind(struct s4d_store *store, struct s4d_error *err, const char *sql,
                          const char *types, va_list ap)
{
    sqlite3_stmt *s = prepared(store, sql);
    int rc = s ? SQLITE_OK : SQLITE_ERROR;
    for (int i = 0; rc == SQLITE_OK && types[i]; i++) {
        if (types[i] == 'i') {
            rc = sqlite3_bind_int64(s, i + 1, va_arg(ap, int64_t));
        } else if (types[i] == 't') {
            rc = sqlite3_bind_text(s, i + 1, va_arg(ap, const char *), -1, SQLITE_STATIC);
        } else {
            const void *bytes = va_arg(ap, const void *);
            rc = sqlite3_bind_blob64(s, i + 1, bytes, va_arg(ap, size_t), SQLITE_STATIC);
        }
    }
    if (rc == SQLITE_OK)
        return s;
    s4d_store_fail(store, err);
    s4d_store_done(s);
    return NULL;
}

sqlite3_stmt *s4d_store_sql(struct s4d_store *store, struct s4d_error *err, const char *sql,
                            const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    sqlite3_stmt *s = bind(store, err, sql, types, ap);
    va_end(ap);
    return s;
}

void s4d_store_done(sqlite3_stmt *statement)
{
    if (statement) {
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
    }
}

int s4d_store_step(struct s4d_store *store, sqlite3_stmt *statement, struct s4d_error *err)
{
    int rc = sqlite3_step(statement);
    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : s4d_store_fail(store, err);
}

int s4d_store_run(struct s4d_store *store, struct s4d_error *err, const char *sql,
                  const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    sqlite3_stmt *s = bind(store, err, sql, types, ap);
    va_end(ap);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    s4d_store_done(s);
    return rc < 0 ? -1 : 0;
}

const char *s4d_store_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

int s4d_store_begin(struct s4d_store *store, struct s4d_error *err)
{
    S4D_ASSERT(store->mode == S4D_STORE_WRITE, "a store opened for reading");
    s4d_store_forget(store); /* another process may have pruned them */
    if (s4d_store_run(store, err, "BEGIN IMMEDIATE", ""))
        return -1;
    store->within = true;
    return 0;
}

int s4d_store_commit(struct s4d_store *store, struct s4d_error *err)
{
    store->within = false;
    if (s4d_store_run(store, err, "COMMIT", "") == 0)
        return 0;
    s4d_store_forget(store);
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}
