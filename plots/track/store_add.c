/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plots/track/intake.h"
#include "plots/track/store_internal.h"
#include "support/memory.h"

/* The id of a name; one that is not there is made. *last: of the record before, which mostly has
 * the same. -1 with *err. */
static int64_t name_id(struct s4d_store *store, struct s4d_name *last, const char *find,
                       const char *make, const char *name, struct s4d_error *err)
{
    if (last->text && strcmp(last->text, name) == 0)
        return last->id;
    sqlite3_stmt *s = s4d_store_sql(store, err, find, "t", name);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    int64_t id = rc == 1 ? sqlite3_column_int64(s, 0) : -1;
    s4d_store_done(s);
    if (rc == 0 && s4d_store_run(store, err, make, "t", name) == 0)
        id = sqlite3_last_insert_rowid(store->db);
    free(last->text);
    *last = (struct s4d_name){.text = id < 0 ? NULL : s4d_strdup(name), .id = id};
    return id;
}

static int64_t commit_id(struct s4d_store *store, const char *name, struct s4d_error *err)
{
    return name_id(store, &store->last_commit, "SELECT id FROM git_commit WHERE name = ?",
                   "INSERT INTO git_commit (name) VALUES (?)", name, err);
}

static int64_t environment_id(struct s4d_store *store, const char *text, struct s4d_error *err)
{
    return name_id(store, &store->last_environment, "SELECT id FROM environment WHERE text = ?",
                   "INSERT INTO environment (text) VALUES (?)", text, err);
}

static int64_t series_id(struct s4d_store *store, const struct s4d_intake *in,
                         struct s4d_error *err)
{
    struct s4d_name *last = &store->last_series; /* repeats follow each other */
    if (last->text && strcmp(last->text, in->key) == 0)
        return last->id;
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT id FROM series WHERE key = ?", "t", in->key);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    int64_t id = rc == 1 ? sqlite3_column_int64(s, 0) : -1;
    s4d_store_done(s);
    if (rc == 0 &&
        s4d_store_run(store, err,
                      "INSERT INTO series (key, host_class, backend, kind, workload, gpus, grid, "
                      "options, model_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      "tttttittt", in->key, in->host_class, in->backend, in->kind, in->workload,
                      in->gpus, in->grid, in->options, in->model_version) == 0)
        id = sqlite3_last_insert_rowid(store->db);
    free(last->text);
    *last = (struct s4d_name){.text = id < 0 ? NULL : s4d_strdup(in->key), .id = id};
    return id;
}

/* Whether the record is there: of those with its hash, the one that is equal. */
static int known(struct s4d_store *store, const struct s4d_intake *in, struct s4d_error *err)
{
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT id FROM record WHERE hash = ?", "i", in->hash);
    int rc = s ? 1 : -1, found = 0;
    while (s && !found && (rc = s4d_store_step(store, s, err)) == 1) {
        char *line;
        if (s4d_store_record(store, sqlite3_column_int64(s, 0), &line, err)) {
            rc = -1;
            break;
        }
        json_t *old = json_loads(line, 0, NULL);
        found = json_equal(old, in->record);
        json_decref(old);
        free(line);
    }
    s4d_store_done(s);
    return rc < 0 ? -1 : found;
}

static int insert(struct s4d_store *store, const struct s4d_intake *in, int64_t series,
                  const char *line, size_t n, struct s4d_error *err)
{
    struct s4d_packed p;
    s4d_pack(&p, line, n);
    int64_t commit = commit_id(store, in->commit, err),
            environment = commit < 0 ? -1 : environment_id(store, in->environment, err);
    struct s4d_layout *layout = environment < 0 ? NULL : s4d_layout_for(store, series, &p, err);
    int rc = -1;
    if (layout) {
        size_t n_numbers, n_text;
        unsigned char *numbers =
                          s4d_numbers_encode(p.number, layout->first.number, p.numbers, &n_numbers),
                      *text = s4d_deflate(&store->deflater, layout->first.text, layout->first.n,
                                          p.text, p.n, &n_text);
        rc = s4d_store_run(store, err,
                           "INSERT INTO record (hash, series, night, time, git_commit, "
                           "environment, layout, numbers, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                           "iiiiiiibb", in->hash, series, (int64_t)in->night, in->time_s, commit,
                           environment, layout->id, numbers, n_numbers, text, n_text);
        free(numbers);
        free(text);
    }
    s4d_packed_free(&p);
    return rc;
}

/* To the record that was added last of those of the series' last night. */
static int compare_clock(struct s4d_store *store, const struct s4d_intake *in, int64_t series,
                         struct s4d_error *err)
{
    sqlite3_stmt *s = s4d_store_sql(store, err,
                                    "SELECT time FROM record WHERE series = ? ORDER BY night DESC, "
                                    "id DESC LIMIT 1",
                                    "i", series);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    store->behind_s = rc == 1 ? sqlite3_column_int64(s, 0) - in->time_s : 0;
    s4d_store_done(s);
    return rc < 0 ? -1 : 0;
}

static int add(struct s4d_store *store, const struct s4d_intake *in, const char *line, size_t n,
               bool *is_new, struct s4d_error *err)
{
    int rc = known(store, in, err);
    *is_new = rc == 0;
    if (rc)
        return rc < 0 ? -1 : 0;
    int64_t series = series_id(store, in, err);
    if (series < 0 || compare_clock(store, in, series, err))
        return -1;
    return insert(store, in, series, line, n, err);
}

int s4d_store_add(struct s4d_store *store, const char *line, size_t n, const char *where,
                  bool *is_new, struct s4d_error *err)
{
    struct s4d_intake in;
    S4D_ASSERT(store->within, "add without begin");
    store->behind_s = 0;
    store->refused = true;
    while (n > 0 && strchr(" \t\r\n", line[n - 1]) && line[n - 1])
        n--;
    char *copy = s4d_malloc(n + 1); /* with an end: a line may be a part of something */
    memcpy(copy, line, n);
    copy[n] = '\0';
    int rc = s4d_intake(&in, copy, n, where, err);
    if (rc == 0) {
        store->refused = false;
        store->time_s =
            in.time_s > (int64_t)in.night * 86400 ? in.time_s : (int64_t)in.night * 86400;
        rc = add(store, &in, copy, n, is_new, err);
        s4d_intake_free(&in);
    }
    free(copy);
    return rc;
}

int64_t s4d_store_behind_s(const struct s4d_store *store)
{
    return store->behind_s;
}

int64_t s4d_store_time_s(const struct s4d_store *store)
{
    return store->time_s;
}

bool s4d_store_refused(const struct s4d_store *store)
{
    return store->refused;
}
