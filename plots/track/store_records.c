/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plots/track/schema.h"
#include "plots/track/store_internal.h"
#include "support/memory.h"
#include "support/quote.h"

int s4d_store_damaged(struct s4d_store *store, int64_t record, struct s4d_error *err)
{
    char how[64];
    snprintf(how, sizeof how, "record %s cannot be read", s4d_store_hash(store, record).text);
    return s4d_schema_damaged(store->file, how, err);
}

/* From the columns layout, numbers and text. NULL with *err. */
static char *line_of(struct s4d_store *store, sqlite3_stmt *s, int column, int64_t record,
                     size_t *n, struct s4d_error *err)
{
    const struct s4d_layout *layout = s4d_layout_get(store, sqlite3_column_int64(s, column), err);
    if (!layout)
        return NULL;
    char *line = s4d_layout_read(
        layout, sqlite3_column_blob(s, column + 1), (size_t)sqlite3_column_bytes(s, column + 1),
        sqlite3_column_blob(s, column + 2), (size_t)sqlite3_column_bytes(s, column + 2), n);
    if (!line)
        s4d_store_damaged(store, record, err);
    return line;
}

int s4d_store_record(struct s4d_store *store, int64_t record, char **line, struct s4d_error *err)
{
    size_t n;
    sqlite3_stmt *s = s4d_store_sql(
        store, err, "SELECT layout, numbers, text FROM record WHERE id = ?", "i", record);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    *line = rc == 1 ? line_of(store, s, 0, record, &n, err) : NULL;
    s4d_store_done(s);
    if (rc == 0)
        s4d_fail(err, S4D_EXIT_DATA, store->file, "there is no record %lld", (long long)record);
    return *line ? 0 : -1;
}

int s4d_store_environment(struct s4d_store *store, int64_t environment, json_t **object,
                          struct s4d_error *err)
{
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT text FROM environment WHERE id = ?", "i", environment);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    *object = rc == 1 ? json_loads(s4d_store_text(s, 0), 0, NULL) : NULL;
    s4d_store_done(s);
    if (rc >= 0 && !*object)
        return s4d_fail(err, S4D_EXIT_DATA, store->file, "there is no environment %lld",
                        (long long)environment);
    return rc < 0 ? -1 : 0;
}

/* The row that a statement with the columns id, series, night, hash, layout, numbers, text is at.
 */
static int take_row(struct s4d_store *store, sqlite3_stmt *s,
                    int (*take)(void *to, const struct s4d_stored *record), void *to)
{
    struct s4d_stored r = {.record = sqlite3_column_int64(s, 0),
                           .series = sqlite3_column_int64(s, 1),
                           .day = sqlite3_column_int(s, 2)};
    size_t n;
    snprintf(r.hash, sizeof r.hash, "%016llx", (unsigned long long)sqlite3_column_int64(s, 3));
    char *line = line_of(store, s, 4, r.record, &n, NULL);
    r.line = line;
    int ended = take(to, &r);
    free(line);
    return ended;
}

/* In the order in which they were added. Where a page of them is damaged, on behind it: *lost
 * counts how often. */
static int all_records(struct s4d_store *store, int from, int until,
                       int (*take)(void *to, const struct s4d_stored *record), void *to,
                       int64_t *lost, struct s4d_error *err)
{
    enum { MOST_LOST = 1000000 }; /* in a row: there is no more */
    static const char of_every[] = "SELECT id, series, night, hash, layout, numbers, text FROM "
                                   "record WHERE id >= ? AND night >= ? AND night <= ? ORDER BY id";
    /* Of some nights: series by series from the index, not all of a large store. */
    static const char of_some[] = "SELECT id, series, night, hash, layout, numbers, text FROM "
                                  "record WHERE id >= ?1 AND id IN "
                                  "(SELECT found.id FROM series CROSS JOIN record AS found WHERE "
                                  "found.series = series.id AND "
                                  "found.night >= ?2 AND found.night <= ?3) ORDER BY id";
    bool every = from <= 0 && until == INT_MAX, damaged;
    int64_t next = 1, in_a_row = 0;
    int rc, ended = 0;
    do {
        sqlite3_stmt *s = s4d_store_sql(store, err, every ? of_every : of_some, "iii", next,
                                        (int64_t)from, (int64_t)until);
        rc = s ? 1 : -1;
        while (s && !ended && (rc = s4d_store_step(store, s, err)) == 1) {
            next = sqlite3_column_int64(s, 0) + 1;
            in_a_row = 0;
            ended = take_row(store, s, take, to);
        }
        damaged = every && rc < 0 && (sqlite3_errcode(store->db) & 0xff) == SQLITE_CORRUPT;
        s4d_store_done(s);
        *lost += damaged && in_a_row++ == 0;
        next++;
    } while (damaged && in_a_row < MOST_LOST);
    return ended ? ended : damaged ? 0 : rc;
}

int s4d_store_records(struct s4d_store *store, int64_t series, int from, int until,
                      int (*take)(void *to, const struct s4d_stored *record), void *to,
                      struct s4d_error *err)
{
    int64_t lost = 0;
    if (!series) {
        int rc = all_records(store, from, until, take, to, &lost, err);
        return rc == 0 && lost
                   ? s4d_schema_damaged(store->file, "pages of records cannot be read", err)
                   : rc;
    }
    sqlite3_stmt *s = s4d_store_sql(store, err,
                                    "SELECT id, series, night, hash, layout, numbers, text FROM "
                                    "record WHERE series = ? AND night >= ? AND night <= ? ORDER "
                                    "BY night, time, id",
                                    "iii", series, (int64_t)from, (int64_t)until);
    int rc = s ? 1 : -1, ended = 0;
    while (s && !ended && (rc = s4d_store_step(store, s, err)) == 1)
        ended = take_row(store, s, take, to);
    s4d_store_done(s);
    return ended ? ended : rc < 0 ? -1 : 0;
}

int s4d_store_find(struct s4d_store *store, const char *hash, int64_t *record,
                   struct s4d_error *err)
{
    size_t n = strlen(hash);
    char low[17] = "0000000000000000", high[17] = "ffffffffffffffff";
    if (n < 6 || n > 16 || strspn(hash, "0123456789abcdef") != n) {
        s4d_fail(err, S4D_EXIT_DATA, "",
                 "expected a record's hash, 6 to 16 hexadecimal digits, found %s",
                 s4d_quote(hash).text);
        return s4d_hint(err, "scale4d track show SERIES lists them");
    }
    memcpy(low, hash, n);
    memcpy(high, hash, n);
    /* Half of the hashes are negative; those of one beginning are so together. */
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT id FROM record WHERE hash >= ? AND hash <= ? LIMIT 2",
                      "ii", (int64_t)strtoull(low, NULL, 16), (int64_t)strtoull(high, NULL, 16));
    int n_found = 0, rc = s ? 1 : -1;
    while (s && (rc = s4d_store_step(store, s, err)) == 1) {
        *record = sqlite3_column_int64(s, 0);
        n_found++;
    }
    s4d_store_done(s);
    if (rc < 0 || n_found == 1)
        return rc < 0 ? -1 : 0;
    return s4d_fail(err, S4D_EXIT_DATA, store->file, "%s has the hash %s",
                    n_found ? "more than one record" : "no record", hash);
}

struct s4d_record_hash s4d_store_hash(struct s4d_store *store, int64_t record)
{
    struct s4d_record_hash hash = {""};
    sqlite3_stmt *s =
        s4d_store_sql(store, NULL, "SELECT hash FROM record WHERE id = ?", "i", record);
    if (s && s4d_store_step(store, s, NULL) == 1)
        snprintf(hash.text, sizeof hash.text, "%016llx",
                 (unsigned long long)sqlite3_column_int64(s, 0));
    s4d_store_done(s);
    return hash;
}
