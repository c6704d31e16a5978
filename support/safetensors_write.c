/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors: beside, to the disk, renamed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "support/memory.h"
#include "support/safetensors.h"

enum { BUFFER = 1 << 20 };

struct s4d_safetensors_writer {
    char *file, *partial;
    int fd;
    int64_t expected, written; /* bytes of all tensors */
    size_t buffered;
    unsigned char buffer[BUFFER];
};

static int fail(const struct s4d_safetensors_writer *w, const char *what, struct s4d_error *err)
{
    return s4d_fail(err, S4D_EXIT_OUTPUT, w->file, "cannot %s %s: %s", what, w->partial,
                    strerror(errno));
}

/* Opens FILE.partial, left by a killed process or not, for us alone. The one that holds the lock
 * may have renamed it since we opened it: then what we hold is FILE, and we open again. */
static int open_partial(struct s4d_safetensors_writer *w, struct s4d_error *err)
{
    for (;;) {
        struct stat ours, named;
        w->fd = open(w->partial, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (w->fd < 0)
            return fail(w, "create", err);
        if (flock(w->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
            return s4d_fail(err, S4D_EXIT_OUTPUT, w->file, "another process is writing %s",
                            w->partial);
        if (fstat(w->fd, &ours) == 0 && stat(w->partial, &named) == 0 &&
            ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
            break;
        close(w->fd);
    }
    return ftruncate(w->fd, 0) ? fail(w, "empty", err) : 0;
}

static int put(struct s4d_safetensors_writer *w, const void *bytes, size_t n, struct s4d_error *err)
{
    for (const char *at = bytes; n;) {
        ssize_t wrote = write(w->fd, at, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return fail(w, "write", err);
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
    w->file = s4d_strdup(file);
    w->partial = s4d_asprintf("%s.partial", file);
    char *text = make_header(tensors, n, metadata, &w->expected);
    int rc = open_partial(w, err);
    if (rc) {
        if (w->fd >= 0)
            close(w->fd);
        w->fd = -1; /* it is not ours to remove */
    } else {
        rc = write_header(w, text, err);
    }
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
    S4D_ASSERT(w->written <= w->expected, "%s: %" PRId64 " bytes of %" PRId64, w->file, w->written,
               w->expected);
    return append(w, bytes, n, err);
}

/* The folder's entry too, so that a power cut leaves the old file or the new one. */
static void sync_folder(const char *file)
{
    char *folder = s4d_strdup(file), *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* some file systems know none of a folder; the file itself is on disk */
        close(fd);
    }
    free(folder);
}

int s4d_safetensors_finish(struct s4d_safetensors_writer *w, struct s4d_error *err)
{
    S4D_ASSERT(w->written == w->expected, "%s: %" PRId64 " bytes of %" PRId64, w->file, w->written,
               w->expected);
    int rc = flush(w, err);
    if (!rc && fsync(w->fd))
        rc = fail(w, "write", err);
    if (!rc && rename(w->partial, w->file))
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, w->file, "cannot rename %s to it: %s", w->partial,
                      strerror(errno));
    if (rc) {
        s4d_safetensors_abandon(w);
        return rc;
    }
    sync_folder(w->file);
    close(w->fd);
    w->fd = -1; /* FILE.partial is not ours any more */
    s4d_safetensors_abandon(w);
    return 0;
}

void s4d_safetensors_abandon(struct s4d_safetensors_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0) {
        unlink(w->partial);
        close(w->fd);
    }
    free(w->file);
    free(w->partial);
    free(w);
}
