/* SPDX-License-Identifier: Apache-2.0 */
/* A record for the store: any bytes are a record with a series and a night, whose bytes come back,
 * or a clear message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/intake.h"
#include "plots/track/pack.h"

static struct s4d_deflater *deflater;

/* Against a record of other numbers and texts, as the second of a series is. */
static void comes_back(const char *line, size_t n)
{
    static const char first[] = "{\"kind\": \"train\", \"a\": 1, \"b\": [0.5, 2], \"time\": \"x\"}";
    struct s4d_packed p, f, q;
    size_t size, length;
    s4d_pack(&p, line, n);
    s4d_pack(&f, first, sizeof first - 1);
    unsigned char *bytes = s4d_deflate(&deflater, f.text, f.n, p.text, p.n, &size);
    q.text = s4d_inflate(f.text, f.n, bytes, size, &q.n);
    free(bytes);
    q.numbers = p.numbers;
    q.number = calloc((size_t)p.numbers + 1, sizeof(double));
    double *reference = calloc((size_t)p.numbers + 1, sizeof(double));
    if (!q.text || !q.number || !reference)
        abort();
    for (int i = 0; i < p.numbers; i++)
        reference[i] = f.number[i % f.numbers];
    bytes = s4d_numbers_encode(p.number, reference, p.numbers, &size);
    if (!s4d_numbers_decode(bytes, size, reference, p.numbers, q.number))
        abort();
    char *again = s4d_unpack(&q, &length);
    if (!again || length != n || memcmp(again, line, n) != 0)
        abort();
    char *shape = s4d_pack_shape(&q), *ordinals = s4d_pack_ordinals(&q);
    json_t *places = json_loads(ordinals, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(places) || !*shape)
        abort();
    json_decref(places);
    free(shape);
    free(ordinals);
    free(again);
    free(bytes);
    free(reference);
    s4d_packed_free(&p);
    s4d_packed_free(&f);
    s4d_packed_free(&q);
}

/* Bytes of no store at all: refused, or something, but no crash. */
static void decodes(const uint8_t *data, size_t size)
{
    const double reference[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    double number[8];
    size_t n;
    s4d_numbers_decode(data, size, reference, 8, number);
    struct s4d_packed p = {.text = s4d_inflate("dictionary", 10, data, size, &p.n)};
    if (p.text) {
        p.number = number;
        p.numbers = 8;
        free(s4d_unpack(&p, &n));
        free(s4d_pack_shape(&p));
    }
    free(p.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s4d_intake in;
    struct s4d_error err = {0};
    char *line = malloc(size + 1);
    if (!line)
        abort();
    memcpy(line, data, size);
    line[size] = '\0';
    decodes(data, size);
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(record))
        comes_back(line, size);
    json_decref(record);
    if (s4d_intake(&in, line, size, "fuzz:1", &err) == 0) {
        if (!*in.kind || !in.key || !in.host_class || in.hash != s4d_intake_hash(in.record))
            abort();
        s4d_intake_free(&in);
    } else if (err.exit != S4D_EXIT_DATA || !err.text[0] || strncmp(err.where, "fuzz:1", 6) != 0) {
        abort();
    }
    free(line);
    return 0;
}
