/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/layout.h"

#include <stdlib.h>
#include <string.h>

#include "plots/track/schema.h"
#include "plots/track/store_internal.h"
#include "support/memory.h"
#include "support/random.h"

static int damaged(struct s4d_store *store, int64_t id, struct s4d_error *err)
{
    char how[64];
    snprintf(how, sizeof how, "layout %lld cannot be read", (long long)id);
    return s4d_schema_damaged(store->file, how, err);
}

static void take(void *to, const struct s4d_metric *metric, const char *name, const json_t *numbers,
                 const json_t *over)
{
    struct s4d_layout *layout = to;
    int n = json_is_array(numbers) ? (int)json_array_size(numbers) : 1;
    struct s4d_slots s = {.metric = metric,
                          .name = s4d_strdup(name),
                          .slot = s4d_malloc((size_t)n * sizeof *s.slot),
                          .n = n,
                          .over = over ? (int)json_integer_value(over) : -1};
    for (int i = 0; i < n; i++)
        s.slot[i] = (int)json_integer_value(
            json_is_array(numbers) ? json_array_get(numbers, (size_t)i) : numbers);
    s4d_push(layout->slots, layout->n, layout->cap, s);
}

/* From `first`: its shape, and where the metrics are: in the record with ordinals for numbers a
 * metric's value is its place. */
static bool read_first(struct s4d_layout *layout)
{
    char *ordinals = s4d_pack_ordinals(&layout->first);
    json_t *places = ordinals ? json_loads(ordinals, 0, NULL) : NULL;
    free(ordinals);
    if (!places)
        return false;
    layout->shape = s4d_pack_shape(&layout->first);
    s4d_metrics_of(places, take, layout);
    json_decref(places);
    return true;
}

static void layout_free(struct s4d_layout *layout)
{
    for (int i = 0; i < layout->n; i++) {
        free(layout->slots[i].name);
        free(layout->slots[i].slot);
    }
    free(layout->slots);
    free(layout->shape);
    s4d_packed_free(&layout->first);
    free(layout);
}

void s4d_layouts_forget(struct s4d_store *store)
{
    struct s4d_layout *layout, *next;
    HASH_ITER(hh, store->layouts, layout, next)
    {
        HASH_DEL(store->layouts, layout);
        layout_free(layout);
    }
    store->of_last = NULL;
}

/* A copy of n bytes of a column, with '\0' behind them. */
static char *column(sqlite3_stmt *s, int at, size_t *n)
{
    *n = (size_t)sqlite3_column_bytes(s, at);
    char *bytes = s4d_malloc(*n + 1);
    if (*n)
        memcpy(bytes, sqlite3_column_blob(s, at), *n);
    bytes[*n] = '\0';
    return bytes;
}

static struct s4d_layout *from_row(sqlite3_stmt *s, int64_t id)
{
    static const double zero[1];
    struct s4d_layout *layout = s4d_calloc(1, sizeof *layout);
    size_t n;
    layout->id = id;
    layout->series = sqlite3_column_int64(s, 0);
    layout->first.text = column(s, 1, &layout->first.n);
    char *bytes = column(s, 2, &n);
    layout->first.numbers = (int)(n / sizeof(double));
    layout->first.number = s4d_calloc((size_t)layout->first.numbers + 1, sizeof(double));
    bool good = n % sizeof(double) == 0;
    for (int i = 0; i < layout->first.numbers; i++) { /* as eight bytes, the low one first */
        unsigned char one[9] = {8};
        memcpy(one + 1, bytes + 8 * i, 8);
        good &= s4d_numbers_decode(one, sizeof one, zero, 1, &layout->first.number[i]);
    }
    free(bytes);
    if (good && read_first(layout))
        return layout;
    layout_free(layout);
    return NULL;
}

struct s4d_layout *s4d_layout_get(struct s4d_store *store, int64_t id, struct s4d_error *err)
{
    struct s4d_layout *layout = store->of_last;
    if (layout && layout->id == id)
        return layout;
    HASH_FIND(hh, store->layouts, &id, sizeof id, layout);
    if (!layout) {
        sqlite3_stmt *s = s4d_store_sql(
            store, err, "SELECT series, text, numbers FROM layout WHERE id = ?", "i", id);
        int rc = s ? s4d_store_step(store, s, err) : -1;
        layout = rc == 1 ? from_row(s, id) : NULL;
        s4d_store_done(s);
        if (layout)
            HASH_ADD(hh, store->layouts, id, sizeof layout->id, layout);
        else if (rc >= 0)
            damaged(store, id, err);
    }
    store->of_last = layout;
    return layout;
}

static int64_t insert(struct s4d_store *store, int64_t series, int64_t shape,
                      const struct s4d_packed *record, struct s4d_error *err)
{
    unsigned char *bytes = s4d_malloc(8 * (size_t)record->numbers + 1);
    for (int i = 0; i < record->numbers; i++) {
        uint64_t bits;
        memcpy(&bits, &record->number[i], sizeof bits);
        for (int k = 0; k < 8; k++)
            bytes[8 * i + k] = (unsigned char)(bits >> (8 * k));
    }
    int rc = s4d_store_run(
        store, err, "INSERT INTO layout (series, shape, text, numbers) VALUES (?, ?, ?, ?)", "iibb",
        series, shape, record->text, record->n, bytes, 8 * (size_t)record->numbers);
    free(bytes);
    return rc ? -1 : sqlite3_last_insert_rowid(store->db);
}

/* Two shapes of the same hash are told apart by the shapes themselves. */
static int64_t find(struct s4d_store *store, int64_t series, int64_t hash, const char *shape,
                    struct s4d_error *err)
{
    sqlite3_stmt *s = s4d_store_sql(
        store, err, "SELECT id FROM layout WHERE series = ? AND shape = ?", "ii", series, hash);
    int rc = s ? 1 : -1;
    int64_t found = 0;
    while (s && !found && (rc = s4d_store_step(store, s, err)) == 1) {
        int64_t id = sqlite3_column_int64(s, 0);
        const struct s4d_layout *layout = s4d_layout_get(store, id, err);
        if (!layout)
            rc = -1;
        if (!layout)
            break;
        if (strcmp(layout->shape, shape) == 0)
            found = id;
    }
    s4d_store_done(s);
    return rc < 0 ? -1 : found;
}

struct s4d_layout *s4d_layout_for(struct s4d_store *store, int64_t series,
                                  const struct s4d_packed *record, struct s4d_error *err)
{
    char *shape = s4d_pack_shape(record);
    struct s4d_layout *last = store->of_last;
    if (last && last->series == series && strcmp(last->shape, shape) == 0) {
        free(shape);
        return last;
    }
    int64_t hash = (int64_t)s4d_hash_text(shape), id = find(store, series, hash, shape, err);
    if (id == 0)
        id = insert(store, series, hash, record, err);
    free(shape);
    return id < 0 ? NULL : s4d_layout_get(store, id, err);
}

char *s4d_layout_read(const struct s4d_layout *layout, const unsigned char *numbers,
                      size_t n_numbers, const unsigned char *text, size_t n_text, size_t *n)
{
    const struct s4d_packed *first = &layout->first;
    struct s4d_packed p = {.numbers = first->numbers};
    char *json = NULL;
    p.number = s4d_malloc(((size_t)p.numbers + 1) * sizeof *p.number);
    if (s4d_numbers_decode(numbers, n_numbers, first->number, p.numbers, p.number) &&
        (p.text = s4d_inflate(first->text, first->n, text, n_text, &p.n)) != NULL)
        json = s4d_unpack(&p, n);
    s4d_packed_free(&p);
    return json;
}
