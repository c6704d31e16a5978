/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors: beside, to the disk, renamed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "support/memory.h"
#include "support/replace.h"
#include "support/safetensors.h"

enum { BUFFER = 1 << 20 };

struct s4d_safetensors_writer {
    struct s4d_replacement to;
    int64_t expected, written; /* bytes of all tensors */
    size_t buffered;
    unsigned char buffer[BUFFER];
};

static int put(struct s4d_safetensors_writer *w, const void *bytes, size_t n, struct s4d_error *err)
{
    for (const char *at = bytes; n;) {
        ssize_t wrote = write(fileno(w->to.out), at, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return s4d_fail(err, S4D_EXIT_OUTPUT, w->to.name, "cannot write %s: %s", w->to.partial,
                            strerror(errno));
        at += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

static int flush(struct s4d_safetensors_writer *w, struct s4d_error *err)
{
    size_t n = w->buffered;
    w->buffered = 0;
    return put(w, w->buffer, n, err);
}

static int append(struct s4d_safetensors_writer *w, const void *bytes, size_t n,
                  struct s4d_error *err)
{
    if (w->buffered + n > BUFFER && flush(w, err))
        return -1;
    if (n > BUFFER)
        return put(w, bytes, n, err);
    memcpy(w->buffer + w->buffered, bytes, n);
    w->buffered += n;
    return 0;
}

/* The header as text, in the order given. *bytes: of all tensors. */
static char *make_header(const struct s4d_safetensor *tensors, int n, const char *const *metadata,
                         int64_t *bytes)
{
    json_t *header = json_object(), *texts = json_object();
    for (int i = 0; metadata && metadata[i]; i += 2)
        json_object_set_new(texts, metadata[i], json_string(metadata[i + 1]));
    if (json_object_size(texts))
        json_object_set(header, "__metadata__", texts);
    json_decref(texts);
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        const struct s4d_safetensor *t = &tensors[i];
        int64_t size = s4d_dtype_bytes[t->dtype];
        json_t *shape = json_array();
        for (int d = 0; d < t->dims; d++) {
            size *= t->shape[d];
            json_array_append_new(shape, json_integer(t->shape[d]));
        }
        S4D_ASSERT(!json_object_get(header, t->name), "%s twice", t->name);
        json_object_set_new(header, t->name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", s4d_dtype_names[t->dtype],
                                      "shape", shape, "data_offsets", (json_int_t)*bytes,
                                      (json_int_t)(*bytes + size)));
        *bytes += size;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    S4D_ASSERT(text, "a name that is not UTF-8");
    json_decref(header);
    return text;
}

/* The size, the text, and spaces until the tensors begin at a multiple of 8 bytes. */
static int write_header(struct s4d_safetensors_writer *w, const char *text, struct s4d_error *err)
{
    size_t n = strlen(text), padding = (8 - n % 8) % 8;
    uint64_t size = n + padding;
    return append(w, &size, 8, err) || append(w, text, n, err) ||
                   append(w, "        ", padding, err)
               ? -1
               : 0;
}

int s4d_safetensors_create(const char *file, const struct s4d_safetensor *tensors, int n,
                           const char *const *metadata, struct s4d_safetensors_writer **out,
                           struct s4d_error *err)
{
    struct stat s;
    *out = NULL;
    if (stat(file, &s) == 0 && !S_ISREG(s.st_mode)) /* renaming would replace /dev/null */
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "expected a file to replace, found %s",
                        S_ISDIR(s.st_mode) ? "a folder" : "a device or pipe");
    struct s4d_safetensors_writer *w = s4d_calloc(1, sizeof *w);
    char *text = make_header(tensors, n, metadata, &w->expected);
    int rc = s4d_replace_open(&w->to, file, err) || write_header(w, text, err);
    free(text);
    if (rc) {
        s4d_safetensors_abandon(w);
        return -1;
    }
    *out = w;
    return 0;
}

int s4d_safetensors_write(struct s4d_safetensors_writer *w, const void *bytes, size_t n,
                          struct s4d_error *err)
{
    w->written += (int64_t)n;
    S4D_ASSERT(w->written <= w->expected, "%s: %" PRId64 " bytes of %" PRId64, w->to.name,
               w->written, w->expected);
    return append(w, bytes, n, err);
}

int s4d_safetensors_finish(struct s4d_safetensors_writer *w, struct s4d_error *err)
{
    S4D_ASSERT(w->written == w->expected, "%s: %" PRId64 " bytes of %" PRId64, w->to.name,
               w->written, w->expected);
    int rc = s4d_replace_close(&w->to, flush(w, err), err);
    free(w);
    return rc;
}

void s4d_safetensors_abandon(struct s4d_safetensors_writer *w)
{
    if (!w)
        return;
    s4d_replace_close(&w->to, -1, NULL);
    free(w);
}
