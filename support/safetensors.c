/* SPDX-License-Identifier: Apache-2.0 */
/* Reading safetensors: the header's claims against the file, then blocks by pread (a mapping would
 * turn a file cut short behind our back into a signal). */
#include "support/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "support/half.h"
#include "support/memory.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

const char *const s4d_dtype_names[S4D_DTYPES] = {"F64", "F32", "F16",     "BF16",    "I64",
                                                 "I32", "I16", "I8",      "U64",     "U32",
                                                 "U16", "U8",  "F8_E4M3", "F8_E5M2", "BOOL"};
const int s4d_dtype_bytes[S4D_DTYPES] = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1, 1, 1};

struct s4d_safetensors {
    char *file;
    int fd;
    int64_t size, data; /* bytes of the file; where the tensors' bytes begin */
    json_t *header;     /* owns the names */
    struct s4d_safetensor *tensors, **by_name;
    int n;
};

const char *s4d_safetensor_shape(const struct s4d_safetensor *t, char *text, size_t room)
{
    size_t at = (size_t)snprintf(text, room, "[");
    for (int d = 0; d < t->dims && at < room; d++)
        at += (size_t)snprintf(text + at, room - at, "%s%" PRId64, d ? ", " : "", t->shape[d]);
    if (at < room)
        snprintf(text + at, room - at, "]");
    return text;
}

/* "FILE: NAME" of a tensor, for errors. */
struct where {
    char text[512];
};
static struct where where(const struct s4d_safetensors *st, const char *name)
{
    struct where w;
    snprintf(w.text, sizeof w.text, "%.255s: %.250s", st->file, name);
    return w;
}
#define FAIL(name, ...) s4d_fail(err, S4D_EXIT_DATA, where(st, name).text, __VA_ARGS__)

static int read_at(const struct s4d_safetensors *st, int64_t at, void *out, int64_t n,
                   struct s4d_error *err)
{
    while (n > 0) {
        ssize_t got = pread(st->fd, out, (size_t)(n < 1 << 30 ? n : 1 << 30), at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return s4d_fail(err, S4D_EXIT_DATA, st->file, "cannot read byte %" PRId64 ": %s", at,
                            got ? strerror(errno) : "the file has become shorter");
        out = (char *)out + got;
        at += got;
        n -= got;
    }
    return 0;
}

static int open_file(struct s4d_safetensors *st, struct s4d_error *err)
{
    struct stat s;
    /* Non-blocking: a pipe without a writer is refused, not waited for. */
    st->fd = open(st->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (st->fd < 0 || fstat(st->fd, &s))
        return s4d_fail(err, S4D_EXIT_DATA, st->file, "cannot open: %s", strerror(errno));
    if (!S_ISREG(s.st_mode))
        return s4d_fail(err, S4D_EXIT_DATA, st->file, "expected a file, found %s",
                        S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    st->size = s.st_size;
    return 0;
}

static int read_header(struct s4d_safetensors *st, struct s4d_error *err)
{
    uint64_t n;
    if (st->size < 8)
        return s4d_fail(err, S4D_EXIT_DATA, st->file,
                        "expected the 8 bytes of a header's size, found %" PRId64, st->size);
    if (read_at(st, 0, &n, 8, err))
        return -1;
    if (n > S4D_SAFETENSORS_HEADER_MAX)
        return s4d_fail(err, S4D_EXIT_DATA, st->file,
                        "expected a header of at most %d bytes, found a size of %" PRIu64
                        " (is this a safetensors file?)",
                        S4D_SAFETENSORS_HEADER_MAX, n);
    if ((int64_t)n > st->size - 8)
        return s4d_fail(err, S4D_EXIT_DATA, st->file,
                        "the header's size is %" PRIu64 " bytes, the file has %" PRId64
                        " behind it (cut short?)",
                        n, st->size - 8);
    st->data = 8 + (int64_t)n;
    char *text = s4d_malloc(n + 1);
    json_error_t json;
    int rc = read_at(st, 8, text, (int64_t)n, err);
    if (!rc && !(st->header = json_loadb(text, n, JSON_REJECT_DUPLICATES, &json)))
        rc = s4d_fail(err, S4D_EXIT_DATA, st->file, "header, byte %d: %s", 8 + json.position,
                      json.text);
    free(text);
    return rc;
}

static int read_dtype(const struct s4d_safetensors *st, json_t *o, struct s4d_safetensor *t,
                      struct s4d_error *err)
{
    const char *name = json_string_value(json_object_get(o, "dtype"));
    if (!name)
        return FAIL(t->name, "expected \"dtype\", a text");
    for (int i = 0; i < S4D_DTYPES; i++)
        if (strcmp(name, s4d_dtype_names[i]) == 0) {
            t->dtype = (enum s4d_dtype)i;
            return 0;
        }
    return FAIL(t->name,
                "unknown dtype \"%.40s\" (F64, F32, F16, BF16, I8 to I64, U8 to U64, "
                "F8_E4M3, F8_E5M2, BOOL)",
                name);
}

static int read_shape(const struct s4d_safetensors *st, json_t *o, struct s4d_safetensor *t,
                      struct s4d_error *err)
{
    json_t *shape = json_object_get(o, "shape");
    size_t dims = json_array_size(shape);
    if (!json_is_array(shape) || dims > S4D_SAFETENSORS_DIMS)
        return FAIL(t->name, "expected \"shape\", a list of at most %d numbers",
                    S4D_SAFETENSORS_DIMS);
    t->dims = (int)dims;
    t->elements = 1;
    for (size_t d = 0; d < dims; d++) {
        json_t *size = json_array_get(shape, d);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return FAIL(t->name, "\"shape\": expected whole numbers from 0");
        t->shape[d] = json_integer_value(size);
        if (__builtin_mul_overflow(t->elements, t->shape[d], &t->elements))
            return FAIL(t->name, "\"shape\": more elements than 64 bits count");
    }
    if (__builtin_mul_overflow(t->elements, (int64_t)s4d_dtype_bytes[t->dtype], &t->bytes))
        return FAIL(t->name, "\"shape\": more bytes than 64 bits count");
    return 0;
}

static int read_offsets(const struct s4d_safetensors *st, json_t *o, struct s4d_safetensor *t,
                        struct s4d_error *err)
{
    json_t *offsets = json_object_get(o, "data_offsets");
    json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return FAIL(t->name, "expected \"data_offsets\": [begin, end]");
    int64_t first = json_integer_value(begin), last = json_integer_value(end);
    int64_t room = st->size - st->data;
    if (first < 0 || last < first || last > room)
        return FAIL(t->name,
                    "expected \"data_offsets\" within the file's %" PRId64
                    " bytes of tensors, found [%" PRId64 ", %" PRId64 "]",
                    room, first, last);
    if (last - first != t->bytes) {
        char shape[128];
        return FAIL(t->name, "shape %s of %s is %" PRId64 " bytes, \"data_offsets\" are %" PRId64,
                    s4d_safetensor_shape(t, shape, sizeof shape), s4d_dtype_names[t->dtype],
                    t->bytes, last - first);
    }
    t->begin = st->data + first;
    return 0;
}

static int read_metadata(const struct s4d_safetensors *st, json_t *o, struct s4d_error *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(o))
        return FAIL("__metadata__", "expected a map of texts");
    json_object_foreach(o, key, value) if (!json_is_string(value)) return FAIL(
        "__metadata__", "\"%.60s\": expected a text", key);
    return 0;
}

static int read_tensors(struct s4d_safetensors *st, struct s4d_error *err)
{
    const char *name;
    json_t *o;
    if (!json_is_object(st->header))
        return s4d_fail(err, S4D_EXIT_DATA, st->file, "header: expected a map of tensors");
    st->tensors = s4d_calloc(json_object_size(st->header), sizeof *st->tensors);
    json_object_foreach(st->header, name, o)
    {
        struct s4d_safetensor *t = &st->tensors[st->n];
        if (strcmp(name, "__metadata__") == 0) {
            if (read_metadata(st, o, err))
                return -1;
            continue;
        }
        t->name = name;
        if (!json_is_object(o) || json_object_size(o) != 3)
            return FAIL(name, "expected {\"dtype\", \"shape\", \"data_offsets\"} and nothing else");
        if (read_dtype(st, o, t, err) || read_shape(st, o, t, err) || read_offsets(st, o, t, err))
            return -1;
        st->n++;
    }
    return 0;
}

/* By their first byte; an empty tensor before the one that begins where it does. */
static int by_begin(const void *a, const void *b)
{
    const struct s4d_safetensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct s4d_safetensor *const *)a)->name,
                  (*(struct s4d_safetensor *const *)b)->name);
}

/* The tensors cover all bytes behind the header, once. */
static int check_cover(struct s4d_safetensors *st, struct s4d_error *err)
{
    int64_t at = st->data;
    if (st->n)
        qsort(st->tensors, (size_t)st->n, sizeof *st->tensors, by_begin);
    for (int i = 0; i < st->n; i++) {
        const struct s4d_safetensor *t = &st->tensors[i];
        if (t->begin < at)
            return FAIL(t->name, "overlaps %.200s", st->tensors[i - 1].name);
        if (t->begin > at)
            return FAIL(t->name, "%" PRId64 " bytes before it belong to no tensor", t->begin - at);
        at += t->bytes;
    }
    if (at < st->size)
        return s4d_fail(err, S4D_EXIT_DATA, st->file,
                        "%" PRId64 " bytes at the end belong to no tensor", st->size - at);
    st->by_name = s4d_malloc((size_t)(st->n + 1) * sizeof *st->by_name);
    for (int i = 0; i < st->n; i++)
        st->by_name[i] = &st->tensors[i];
    if (st->n)
        qsort(st->by_name, (size_t)st->n, sizeof(struct s4d_safetensor *), by_name);
    return 0;
}

int s4d_safetensors_open(const char *file, struct s4d_safetensors **out, struct s4d_error *err)
{
    struct s4d_safetensors *st = s4d_calloc(1, sizeof *st);
    *out = NULL;
    st->file = s4d_strdup(file);
    if (open_file(st, err) || read_header(st, err) || read_tensors(st, err) ||
        check_cover(st, err)) {
        s4d_safetensors_close(st);
        return -1;
    }
    *out = st;
    return 0;
}

void s4d_safetensors_close(struct s4d_safetensors *st)
{
    if (!st)
        return;
    if (st->fd >= 0)
        close(st->fd);
    json_decref(st->header);
    free(st->by_name);
    free(st->tensors);
    free(st->file);
    free(st);
}

int s4d_safetensors_count(const struct s4d_safetensors *st)
{
    return st->n;
}

const struct s4d_safetensor *s4d_safetensors_get(const struct s4d_safetensors *st, int i)
{
    S4D_ASSERT(i >= 0 && i < st->n, "tensor %d of %d", i, st->n);
    return &st->tensors[i];
}

const struct s4d_safetensor *s4d_safetensors_find(const struct s4d_safetensors *st,
                                                  const char *name)
{
    struct s4d_safetensor key = {.name = name}, *p = &key, **found = NULL;
    if (st->n)
        found = bsearch(&p, st->by_name, (size_t)st->n, sizeof(struct s4d_safetensor *), by_name);
    return found ? *found : NULL;
}

const char *s4d_safetensors_metadata(const struct s4d_safetensors *st, const char *key)
{
    return json_string_value(json_object_get(json_object_get(st->header, "__metadata__"), key));
}

int s4d_safetensors_bytes(const struct s4d_safetensors *st, const struct s4d_safetensor *t,
                          int64_t first, int64_t n, void *out, struct s4d_error *err)
{
    int bytes = s4d_dtype_bytes[t->dtype];
    S4D_ASSERT(first >= 0 && n >= 0 && first <= t->elements - n, "%s: %" PRId64 " + %" PRId64,
               t->name, first, n);
    return read_at(st, t->begin + first * bytes, out, n * bytes, err);
}

static double element(enum s4d_dtype dtype, const unsigned char *bytes)
{
    double d;
    float f;
    uint16_t h;
    switch (dtype) {
    case S4D_DTYPE_F64:
        memcpy(&d, bytes, sizeof d);
        return d;
    case S4D_DTYPE_F32:
        memcpy(&f, bytes, sizeof f);
        return f;
    default:
        memcpy(&h, bytes, sizeof h);
        return dtype == S4D_DTYPE_BF16 ? (double)s4d_bf16_value(h) : s4d_f16_value(h);
    }
}

/* n elements of a row to out, `step` elements apart. */
static void convert(enum s4d_dtype from, const unsigned char *in, int64_t n, enum s4d_dtype as,
                    void *out, int64_t step)
{
    int bytes = s4d_dtype_bytes[from];
    if (from == as && step == 1) {
        memcpy(out, in, (size_t)(n * bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double value = element(from, in + i * bytes);
        if (as == S4D_DTYPE_F64)
            ((double *)out)[i * step] = value;
        else
            ((float *)out)[i * step] = (float)value;
    }
}

/* Rows are read in runs: many at a time where the block is as wide as the tensor. */
enum { RUN_BYTES = 4 << 20 };

static int read_rows(const struct s4d_safetensors *st, const struct s4d_safetensor *t,
                     const struct s4d_safetensors_block *b, enum s4d_dtype as, char *out,
                     struct s4d_error *err)
{
    int64_t width = t->dims ? t->shape[t->dims - 1] : 1, from = s4d_dtype_bytes[t->dtype];
    int64_t to = s4d_dtype_bytes[as], run = 1;
    if (b->cols == width && width * from < RUN_BYTES)
        run = RUN_BYTES / (width * from);
    run = run < b->rows ? run : b->rows;
    unsigned char *bytes = s4d_malloc((size_t)(run * b->cols * from));
    int rc = 0;
    for (int64_t i = 0; i < b->rows && !rc; i += run) {
        int64_t n = run < b->rows - i ? run : b->rows - i;
        rc = read_at(st, t->begin + ((b->row + i) * width + b->col) * from, bytes,
                     n * b->cols * from, err);
        for (int64_t r = 0; r < n && !rc; r++)
            convert(t->dtype, bytes + r * b->cols * from, b->cols, as,
                    out + (i + r) * (b->transposed ? 1 : b->stride) * to,
                    b->transposed ? b->stride : 1);
    }
    free(bytes);
    return rc;
}

int s4d_safetensors_read(const struct s4d_safetensors *st, const struct s4d_safetensor *t,
                         const struct s4d_safetensors_block *b, enum s4d_dtype as, void *out,
                         struct s4d_error *err)
{
    int64_t width = t->dims ? t->shape[t->dims - 1] : 1, rows = width ? t->elements / width : 0;
    S4D_ASSERT(as == S4D_DTYPE_F32 || as == S4D_DTYPE_F64, "%s", s4d_dtype_names[as]);
    S4D_ASSERT(b->row >= 0 && b->rows >= 0 && b->row <= rows - b->rows && b->col >= 0 &&
                   b->cols >= 0 && b->col <= width - b->cols,
               "%s: rows %" PRId64 " + %" PRId64 ", columns %" PRId64 " + %" PRId64, t->name,
               b->row, b->rows, b->col, b->cols);
    if (t->dtype > S4D_DTYPE_BF16)
        return FAIL(t->name, "expected F64, F32, F16 or BF16, found %s", s4d_dtype_names[t->dtype]);
    if (b->rows == 0 || b->cols == 0)
        return 0;
    return read_rows(st, t, b, as, out, err);
}
