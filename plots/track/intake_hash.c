/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a record's canonical form, without writing it: FNV-1a 64 over its values, keys in the
 * order of their bytes, numbers as their 64 bits, the low byte first. It is part of the store's
 * format: a record's hash must never change. */
#include <stdlib.h>
#include <string.h>

#include "plots/track/intake.h"
#include "support/memory.h"

static uint64_t add_bytes(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t add_bits(uint64_t h, uint64_t bits)
{
    for (int i = 0; i < 8; i++)
        h = (h ^ (bits >> (8 * i) & 255)) * 0x100000001b3u;
    return h;
}

struct pair {
    const char *key;
    const json_t *value;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static uint64_t add_value(uint64_t h, const json_t *v);

static uint64_t add_object(uint64_t h, const json_t *object)
{
    size_t n = json_object_size(object), i = 0;
    struct pair *pairs = s4d_malloc((n + 1) * sizeof *pairs);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) pairs[i++] = (struct pair){key, value};
    qsort(pairs, n, sizeof *pairs, by_key);
    for (i = 0; i < n; i++)
        h = add_value(add_bytes(h, pairs[i].key, strlen(pairs[i].key) + 1), pairs[i].value);
    free(pairs);
    return h;
}

/* A letter of its type, the value, and of those of any length an end. */
static uint64_t add_value(uint64_t h, const json_t *v)
{
    static const char letters[] = {
        [JSON_OBJECT] = '{', [JSON_ARRAY] = '[', [JSON_STRING] = '"', [JSON_INTEGER] = 'i',
        [JSON_REAL] = 'r',   [JSON_TRUE] = 't',  [JSON_FALSE] = 'f',  [JSON_NULL] = 'n'};
    h = add_bytes(h, &letters[json_typeof(v)], 1);
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return add_bytes(add_object(h, v), "}", 1);
    case JSON_ARRAY:
        for (size_t i = 0; i < json_array_size(v); i++)
            h = add_value(h, json_array_get(v, i));
        return add_bytes(h, "]", 1);
    case JSON_STRING:
        return add_bytes(h, json_string_value(v), json_string_length(v) + 1);
    case JSON_INTEGER:
        return add_bits(h, (uint64_t)json_integer_value(v));
    case JSON_REAL: {
        double x = json_real_value(v);
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return add_bits(h, bits);
    }
    default:
        return h;
    }
}

int64_t s4d_intake_hash(const json_t *record)
{
    return (int64_t)add_value(0xcbf29ce484222325u, record);
}
