/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/devices.h"

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
