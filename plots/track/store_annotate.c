/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "plots/track/store_internal.h"
#include "support/memory.h"
#include "support/quote.h"

static int night_of_commit(struct s4d_store *store, struct s4d_annotation *a, struct s4d_error *err)
{
    sqlite3_stmt *s = s4d_store_sql(
        store, err,
        "SELECT min(night) FROM record JOIN git_commit ON git_commit.id = git_commit WHERE name = "
        "?1 AND (?2 = 0 OR series = ?2)",
        "ti", a->commit, a->series);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    bool found = rc == 1 && sqlite3_column_type(s, 0) != SQLITE_NULL;
    if (found)
        a->day = sqlite3_column_int(s, 0);
    s4d_store_done(s);
    if (rc < 0 || found)
        return rc < 0 ? -1 : 0;
    s4d_fail(err, S4D_EXIT_DATA, store->file, "no record is of commit %s",
             s4d_quote(a->commit).text);
    return s4d_hint(err, "scale4d track show lists a series' commits; or name the night");
}

int s4d_store_annotate(struct s4d_store *store, struct s4d_annotation *a, struct s4d_error *err)
{
    S4D_ASSERT(store->within, "annotate without begin");
    if (a->day < 0 && night_of_commit(store, a, err))
        return -1;
    if (s4d_store_run(store, err,
                      "INSERT INTO annotation (series, night, restarts, git_commit, text, author, "
                      "time) VALUES (nullif(?, 0), ?, ?, ?, ?, ?, ?)",
                      "iiitttt", a->series, (int64_t)a->day, (int64_t)a->restarts, a->commit,
                      a->text, a->author, a->time))
        return -1;
    a->id = sqlite3_last_insert_rowid(store->db);
    return 0;
}

int s4d_store_annotation_remove(struct s4d_store *store, int64_t id, struct s4d_error *err)
{
    S4D_ASSERT(store->within, "remove without begin");
    if (s4d_store_run(store, err, "DELETE FROM annotation WHERE id = ?", "i", id))
        return -1;
    if (sqlite3_changes(store->db) == 1)
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, store->file, "there is no annotation %lld", (long long)id);
    return s4d_hint(err, "scale4d track annotate --list shows them");
}

int s4d_store_annotations(struct s4d_store *store, struct s4d_annotation_list *list,
                          struct s4d_error *err)
{
    *list = (struct s4d_annotation_list){0};
    sqlite3_stmt *s = s4d_store_sql(store, err,
                                    "SELECT id, coalesce(series, 0), night, restarts, git_commit, "
                                    "text, author, time FROM annotation ORDER BY night, id",
                                    "");
    int rc = s ? 1 : -1;
    while (s && (rc = s4d_store_step(store, s, err)) == 1)
        s4d_push(list->v, list->n, list->cap,
                 (struct s4d_annotation){.id = sqlite3_column_int64(s, 0),
                                         .series = sqlite3_column_int64(s, 1),
                                         .day = sqlite3_column_int(s, 2),
                                         .restarts = sqlite3_column_int(s, 3) != 0,
                                         .commit = s4d_strdup(s4d_store_text(s, 4)),
                                         .text = s4d_strdup(s4d_store_text(s, 5)),
                                         .author = s4d_strdup(s4d_store_text(s, 6)),
                                         .time = s4d_strdup(s4d_store_text(s, 7))});
    s4d_store_done(s);
    if (rc < 0)
        s4d_annotation_list_free(list);
    return rc < 0 ? -1 : 0;
}

void s4d_annotation_list_free(struct s4d_annotation_list *list)
{
    for (int i = 0; i < list->n; i++) {
        free(list->v[i].commit);
        free(list->v[i].text);
        free(list->v[i].author);
        free(list->v[i].time);
    }
    free(list->v);
    *list = (struct s4d_annotation_list){0};
}
