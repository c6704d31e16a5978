/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plots/track/intake.h"
#include "plots/track/store_internal.h"
#include "support/memory.h"

/* The id of a row of a table of names; one that is not there is made. -1 with *err. */
static int64_t name_id(struct s4d_store *store, const char *table, const char *column,
                       const char *name, struct s4d_error *err)
{
    char *find = s4d_asprintf("SELECT id FROM %s WHERE %s = ?", table, column),
         *make = s4d_asprintf("INSERT INTO %s (%s) VALUES (?)", table, column);
    int64_t id = -1;
    sqlite3_stmt *s = s4d_store_sql(store, err, find, "t", name);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    if (rc == 1)
        id = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    if (rc == 0 && s4d_store_run(store, err, make, "t", name) == 0)
        id = sqlite3_last_insert_rowid(store->db);
    free(find);
    free(make);
    return id;
}

static int64_t series_id(struct s4d_store *store, const struct s4d_intake *in,
                         struct s4d_error *err)
{
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT id FROM series WHERE key = ?", "t", in->key);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    int64_t id = rc == 1 ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    if (rc == 0 &&
        s4d_store_run(store, err,
                      "INSERT INTO series (key, host_class, backend, kind, workload, gpus, grid, "
                      "options, model_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      "tttttittt", in->key, in->host_class, in->backend, in->kind, in->workload,
                      in->gpus, in->grid, in->options, in->model_version) == 0)
        id = sqlite3_last_insert_rowid(store->db);
    return id;
}

static int known(struct s4d_store *store, const struct s4d_intake *in, struct s4d_error *err)
{
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT text FROM record WHERE hash = ?", "i", in->hash);
    int rc = s ? 1 : -1, found = 0;
    while (s && !found && (rc = s4d_store_step(store, s, err)) == 1) {
        json_t *old =
            json_loadb(sqlite3_column_blob(s, 0), (size_t)sqlite3_column_bytes(s, 0), 0, NULL);
        found = json_equal(old, in->record);
        json_decref(old);
    }
    sqlite3_finalize(s);
    return rc < 0 ? -1 : found;
}

static int insert(struct s4d_store *store, const struct s4d_intake *in, const char *line, size_t n,
                  struct s4d_error *err)
{
    int64_t series = series_id(store, in, err),
            commit = series < 0 ? -1 : name_id(store, "git_commit", "name", in->commit, err),
            environment =
                commit < 0 ? -1 : name_id(store, "environment", "text", in->environment, err);
    if (environment < 0)
        return -1;
    return s4d_store_run(store, err,
                         "INSERT INTO record (hash, series, night, time, git_commit, environment, "
                         "text) VALUES (?, ?, ?, ?, ?, ?, ?)",
                         "iiiiiib", in->hash, series, (int64_t)in->night, in->time_s, commit,
                         environment, line, n);
}

int s4d_store_add(struct s4d_store *store, const char *line, size_t n, const char *where,
                  bool *is_new, struct s4d_error *err)
{
    struct s4d_intake in;
    S4D_ASSERT(store->within, "add without begin");
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        n--;
    if (s4d_intake(&in, line, n, where, err))
        return -1;
    int rc = known(store, &in, err);
    *is_new = rc == 0;
    if (rc == 0)
        rc = insert(store, &in, line, n, err);
    s4d_intake_free(&in);
    return rc < 0 ? -1 : 0;
}
