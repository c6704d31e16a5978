/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/store_internal.h"

/* What nothing refers to any more. A series that is annotated stays: its next record finds it. */
static int sweep(struct s4d_store *store, struct s4d_error *err)
{
    s4d_store_forget(store);
    if (s4d_store_run(store, err, "DELETE FROM layout WHERE id NOT IN (SELECT layout FROM record)",
                      ""))
        return -1;
    return s4d_store_run(store, err,
                         "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM record WHERE "
                         "record.series = series.id) AND NOT EXISTS (SELECT 1 FROM annotation "
                         "WHERE annotation.series = series.id)",
                         "");
}

int s4d_store_prune(struct s4d_store *store, int64_t series, int day, int64_t *records,
                    struct s4d_error *err)
{
    S4D_ASSERT(store->within, "prune without begin");
    if (s4d_store_run(store, err, "DELETE FROM record WHERE night < ?1 AND (?2 = 0 OR series = ?2)",
                      "ii", (int64_t)day, series))
        return -1;
    *records = sqlite3_changes64(store->db);
    return sweep(store, err);
}

int s4d_store_remove(struct s4d_store *store, int64_t record, struct s4d_error *err)
{
    S4D_ASSERT(store->within, "remove without begin");
    if (s4d_store_run(store, err, "DELETE FROM record WHERE id = ?", "i", record))
        return -1;
    if (sqlite3_changes(store->db) == 0)
        return s4d_fail(err, S4D_EXIT_DATA, store->file, "there is no record %lld",
                        (long long)record);
    return sweep(store, err);
}

int s4d_store_shrink(struct s4d_store *store, struct s4d_error *err)
{
    sqlite3_stmt *s = s4d_store_sql(store, err, "PRAGMA incremental_vacuum", "");
    int rc = s ? 1 : -1;
    while (s && (rc = s4d_store_step(store, s, err)) == 1)
        ;
    s4d_store_done(s);
    if (rc == 0) /* of what another process reads now nothing can go yet */
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return rc;
}
