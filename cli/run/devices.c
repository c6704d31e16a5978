/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/devices.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

static json_t *named(const struct s4d_world *w, json_t *own)
{
    json_t *whole = json_pack("{s:i, s:s}", "rank", w->rank, "host", w->host);
    json_object_update(whole, own);
    json_decref(own);
    return whole;
}

static json_t *parse_all(const char *text, const int *begin, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_loads(text + begin[i], 0, NULL));
    return all;
}

json_t *s4d_devices_gather(const struct s4d_world *w, json_t *own)
{
    json_t *whole = named(w, own), *all = NULL;
    char *text = json_dumps(whole, JSON_COMPACT), *texts = NULL;
    int bytes = (int)strlen(text) + 1, total = 0;
    int *length = s4d_calloc((size_t)w->size, sizeof *length),
        *begin = s4d_calloc((size_t)w->size, sizeof *begin);
    MPI_Gather(&bytes, 1, MPI_INT, length, 1, MPI_INT, 0, w->comm);
    for (int i = 0; i < w->size && w->rank == 0; total += length[i++])
        begin[i] = total;
    texts = s4d_malloc((size_t)total + 1);
    MPI_Gatherv(text, bytes, MPI_CHAR, texts, length, begin, MPI_CHAR, 0, w->comm);
    if (w->rank == 0)
        all = parse_all(texts, begin, w->size);
    free(texts);
    free(length);
    free(begin);
    free(text);
    json_decref(whole);
    return all;
}

const char *s4d_device_words(const json_t *devices, int rank, char *text, size_t size)
{
    static const char *const keys[] = {"host", "name", "uuid", "serial", "pci"};
    const json_t *d = json_array_get(devices, (size_t)rank);
    int n = snprintf(text, size, "rank %d", rank), said = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && n < (int)size; i++) {
        const char *word = json_string_value(json_object_get(d, keys[i]));
        if (word)
            n += snprintf(text + n, size - (size_t)n, "%s%s", said++ ? ", " : " (", word);
    }
    if (said && n < (int)size)
        snprintf(text + n, size - (size_t)n, ")");
    return text;
}

/* Of two moments: what a device is, and what was so at either. */
static json_t *entry_of(const json_t *before, const json_t *after)
{
    json_t *entry = json_copy((json_t *)before), *then = json_object_get(after, "now");
    json_t *now = json_object_get(entry, "now");
    if (now)
        json_object_set(entry, "before", now);
    json_object_del(entry, "now");
    if (then)
        json_object_set(entry, "after", then);
    return entry;
}

/* Whether all entries have it alike. */
static bool is_common(const json_t *entries, const char *key, const json_t *value)
{
    size_t i;
    json_t *entry;
    if (strcmp(key, "rank") == 0 || strcmp(key, "before") == 0 || strcmp(key, "after") == 0)
        return false;
    json_array_foreach((json_t *)entries, i, entry)
    {
        if (!json_equal(json_object_get(entry, key), value))
            return false;
    }
    return true;
}

json_t *s4d_devices_provenance(const json_t *before, const json_t *after)
{
    json_t *entries = json_array(), *all = json_object(), *entry, *value;
    size_t i;
    const char *key;
    json_array_foreach((json_t *)before, i, entry)
        json_array_append_new(entries, entry_of(entry, json_array_get(after, i)));
    json_object_foreach(json_array_get(entries, 0), key, value)
    {
        if (is_common(entries, key, value))
            json_object_set(all, key, value);
    }
    json_object_foreach(all, key, value) json_array_foreach(entries, i, entry)
        json_object_del(entry, key);
    return json_pack("{s:o, s:o}", "all", all, "ranks", entries);
}

/* By how much a counter of "now" has grown; 0 where it is not known. */
static double growth(const json_t *before, const json_t *after, const char *key)
{
    const json_t *a = json_object_get(json_object_get(before, "now"), key),
                 *b = json_object_get(json_object_get(after, "now"), key);
    return json_is_number(a) && json_is_number(b) ? json_number_value(b) - json_number_value(a) : 0;
}

/* What hardware does to protect itself, where the library has no counter of it; or "". */
static const char *held_back_now(const json_t *after)
{
    static const char *const reasons[] = {"hardware-thermal", "thermal", "power-brake",
                                          "hardware-slowdown"};
    json_t *now = json_object_get(after, "now"), *reason;
    size_t i;
    if (json_object_get(now, "throttled_thermal_s"))
        return "";
    json_array_foreach(json_object_get(now, "throttle"), i, reason)
    {
        for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++)
            if (strcmp(json_string_value(reason), reasons[k]) == 0)
                return reasons[k];
    }
    return "";
}

void s4d_devices_warn(const json_t *before, const json_t *after)
{
    json_t *device;
    size_t i;
    json_array_foreach((json_t *)before, i, device)
    {
        const json_t *then = json_array_get(after, i);
        double heat_s = growth(device, then, "throttled_thermal_s"),
               errors = growth(device, then, "ecc_uncorrected");
        char words[256];
        s4d_device_words(before, (int)i, words, sizeof words);
        if (heat_s >= 0.01) /* assumed: less changes no iteration that anybody sees */
            s4d_warn("%s was held back by its temperature for %.2f s of the run", words, heat_s);
        if (held_back_now(then)[0])
            s4d_warn("%s is held back at the end of the run: %s", words, held_back_now(then));
        if (errors > 0)
            s4d_warn("%s met %.0f memory errors that could not be corrected", words, errors);
    }
}
