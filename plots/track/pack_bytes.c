/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and texts of a record as few bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "plots/track/pack.h"
#include "support/error.h"
#include "support/memory.h"

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

enum { SHORT = 3, SHORT_CODE = 8 }; /* low bytes that are left out; the code of none behind them */

unsigned char *s4d_numbers_encode(const double *number, const double *reference, int n,
                                  size_t *size)
{
    size_t head = ((size_t)n + 1) / 2, to = head;
    unsigned char *bytes = s4d_calloc(1, head + 8 * (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        uint64_t differs = bits_of(number[i]) ^ bits_of(reference[i]);
        int code = 0;
        if (differs && (differs & 0xffffff) == 0) {
            code = SHORT_CODE;
            differs >>= 8 * SHORT;
        }
        for (; differs; differs >>= 8, code++)
            bytes[to++] = (unsigned char)differs;
        bytes[i / 2] |= (unsigned char)(code << (i % 2 ? 4 : 0));
    }
    *size = to;
    return bytes;
}

bool s4d_numbers_decode(const unsigned char *bytes, size_t size, const double *reference, int n,
                        double *number)
{
    size_t at = ((size_t)n + 1) / 2;
    if (size < at)
        return false;
    for (int i = 0; i < n; i++) {
        int code = bytes[i / 2] >> (i % 2 ? 4 : 0) & 15, low = code > SHORT_CODE ? SHORT : 0,
            count = code > SHORT_CODE ? code - SHORT_CODE : code;
        uint64_t bits = bits_of(reference[i]);
        if (low + count > 8 || size - at < (size_t)count)
            return false;
        for (int k = 0; k < count; k++)
            bits ^= (uint64_t)bytes[at++] << (8 * (low + k));
        memcpy(&number[i], &bits, sizeof bits);
    }
    return at == size;
}

/* Of records of 2 kB: more memory than this is not looked at, and is cleared for each. */
enum { LEVEL = 6, WINDOW_BITS = 15, MEMORY_LEVEL = 5 };

struct s4d_deflater {
    z_stream z;
};

static z_stream *restart(struct s4d_deflater **state)
{
    int rc;
    if (!*state) {
        *state = s4d_calloc(1, sizeof **state);
        rc = deflateInit2(&(*state)->z, LEVEL, Z_DEFLATED, -WINDOW_BITS, MEMORY_LEVEL,
                          Z_DEFAULT_STRATEGY);
    } else {
        rc = deflateReset(&(*state)->z);
    }
    S4D_ASSERT(rc == Z_OK, "zlib cannot begin: %d", rc);
    return &(*state)->z;
}

unsigned char *s4d_deflate(struct s4d_deflater **state, const char *dictionary, size_t n_dictionary,
                           const char *text, size_t n, size_t *size)
{
    z_stream *z = restart(state);
    int rc = deflateSetDictionary(z, (const Bytef *)dictionary, (uInt)n_dictionary);
    S4D_ASSERT(rc == Z_OK, "zlib takes no dictionary: %d", rc);
    uLong most = deflateBound(z, (uLong)n);
    unsigned char *bytes = s4d_malloc(most + 1);
    z->next_in = (z_const Bytef *)text;
    z->avail_in = (uInt)n;
    z->next_out = bytes;
    z->avail_out = (uInt)most;
    rc = deflate(z, Z_FINISH);
    S4D_ASSERT(rc == Z_STREAM_END, "zlib says %d", rc);
    *size = z->total_out;
    return bytes;
}

void s4d_deflate_free(struct s4d_deflater *state)
{
    if (state)
        deflateEnd(&state->z);
    free(state);
}

char *s4d_inflate(const char *dictionary, size_t n_dictionary, const unsigned char *bytes,
                  size_t size, size_t *n)
{
    z_stream z = {0};
    int rc = inflateInit2(&z, -WINDOW_BITS);
    S4D_ASSERT(rc == Z_OK, "zlib cannot begin: %d", rc);
    size_t cap = n_dictionary + 8 * size + 64;
    char *text = s4d_malloc(cap + 1);
    rc = inflateSetDictionary(&z, (const Bytef *)dictionary, (uInt)n_dictionary);
    z.next_in = (z_const Bytef *)bytes;
    z.avail_in = (uInt)size;
    while (rc == Z_OK && cap <= 4 * (size_t)S4D_RECORD_MAX) {
        z.next_out = (Bytef *)text + z.total_out;
        z.avail_out = (uInt)(cap - z.total_out);
        rc = inflate(&z, Z_NO_FLUSH);
        if (rc == Z_OK && z.avail_out > 0)
            break; /* it ends too early */
        if (rc == Z_OK)
            text = s4d_realloc(text, (cap *= 2) + 1);
    }
    *n = z.total_out;
    bool whole = rc == Z_STREAM_END && z.avail_in == 0;
    inflateEnd(&z);
    if (!whole) {
        free(text);
        return NULL;
    }
    text[*n] = '\0';
    return text;
}
