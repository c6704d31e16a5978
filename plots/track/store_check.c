/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a store is whole: SQLite's own check of its pages, then every record read and held
 * against its hash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/intake.h" /* for: s4d_intake_hash */
#include "plots/track/schema.h"
#include "plots/track/store_internal.h"

struct checking {
    void (*tell)(void *to, const char *fault);
    void *to;
    int64_t records, faults;
};

static int check_record(void *to, const struct s4d_stored *r)
{
    struct checking *c = to;
    char text[100], hash[17] = "";
    json_t *record = r->line ? json_loads(r->line, 0, NULL) : NULL;
    if (record)
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)s4d_intake_hash(record));
    json_decref(record);
    c->records++;
    if (strcmp(hash, r->hash) != 0) {
        c->faults++;
        snprintf(text, sizeof text, "record %s of %s cannot be read as it was added", r->hash,
                 s4d_date(r->day).text);
        c->tell(c->to, text);
    }
    return 0;
}

static int check_pages(struct s4d_store *store, struct checking *c, struct s4d_error *err)
{
    sqlite3_stmt *s = s4d_store_sql(store, err, "PRAGMA integrity_check", "");
    int rc = s ? 1 : -1;
    while (s && (rc = s4d_store_step(store, s, err)) == 1)
        if (strcmp(s4d_store_text(s, 0), "ok") != 0) {
            c->faults++;
            c->tell(c->to, s4d_store_text(s, 0));
        }
    s4d_store_done(s);
    return rc;
}

int s4d_store_check(struct s4d_store *store, void (*tell)(void *to, const char *fault), void *to,
                    int64_t *records, struct s4d_error *err)
{
    struct checking c = {.tell = tell, .to = to};
    int rc = check_pages(store, &c, err);
    if (rc == 0)
        rc = s4d_store_records(store, 0, INT_MIN, INT_MAX, check_record, &c, err);
    *records = c.records;
    return rc < 0 ? -1 : c.faults > 0;
}

int s4d_store_damage(const struct s4d_store *store, struct s4d_error *err)
{
    return s4d_schema_damaged(store->file, "see above", err);
}
