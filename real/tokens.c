/* SPDX-License-Identifier: Apache-2.0 */
/* Token sources: random, a token file, the bytes of a text. */
#include "real/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/memory.h"
#include "support/random.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files are little-endian");

const char *const s4d_token_type_names[] = {"auto", "u16", "u32", NULL};

struct source {
    uint64_t key; /* of a random source */
    int64_t vocab_size, seq_length;
    char *file;
    int fd;
    int width;            /* bytes of a token */
    int64_t n;            /* tokens */
    unsigned char *bytes; /* of a sequence */
};

static int random_sequence(void *self, int64_t index, int32_t *tokens, struct s4d_error *err)
{
    const struct source *s = self;
    (void)err;
    for (int64_t i = 0; i <= s->seq_length; i++) {
        uint64_t t = (uint64_t)(index * s->seq_length + i);
        tokens[i] = (int32_t)(s4d_uniform_at(s->key, t) * (double)s->vocab_size);
    }
    return 0;
}

static int read_at(const struct source *s, int64_t at, unsigned char *out, int64_t n,
                   struct s4d_error *err)
{
    while (n > 0) {
        ssize_t got = pread(s->fd, out, (size_t)n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return s4d_fail(err, S4D_EXIT_DATA, s->file, "cannot read byte %" PRId64 ": %s", at,
                            got ? strerror(errno) : "the file has become shorter");
        out += got;
        at += got;
        n -= got;
    }
    return 0;
}

static uint32_t token_at(const struct source *s, int64_t i)
{
    uint16_t narrow;
    uint32_t wide;
    if (s->width == 1)
        return s->bytes[i];
    if (s->width == 2) {
        memcpy(&narrow, s->bytes + 2 * i, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, s->bytes + 4 * i, sizeof wide);
    return wide;
}

static int bad_token(const struct source *s, int64_t at, uint32_t token, struct s4d_error *err)
{
    s4d_fail(err, S4D_EXIT_DATA, s->file,
             "token %" PRId64 " (byte %" PRId64 "): expected 0 to %" PRId64
             ", the vocabulary's last, found %" PRIu32,
             at, at * s->width, s->vocab_size - 1, token);
    return s4d_hint(err,
                    "the file was made for another vocabulary, or its integers are not uint%d "
                    "(--token-type)",
                    8 * s->width);
}

static int file_sequence(void *self, int64_t index, int32_t *tokens, struct s4d_error *err)
{
    struct source *s = self;
    int64_t sequences = (s->n - 1) / s->seq_length, count = s->seq_length + 1;
    int64_t first = index % sequences * s->seq_length;
    if (read_at(s, first * s->width, s->bytes, count * s->width, err))
        return -1;
    for (int64_t i = 0; i < count; i++) {
        uint32_t token = token_at(s, i);
        if (token >= s->vocab_size)
            return bad_token(s, first + i, token, err);
        tokens[i] = (int32_t)token;
    }
    return 0;
}

static void close_source(void *self)
{
    struct source *s = self;
    if (s->fd >= 0)
        close(s->fd);
    free(s->file);
    free(s->bytes);
    free(s);
}

static struct source *make(struct s4d_token_source *out, int64_t vocab_size, int64_t seq_length)
{
    struct source *s = s4d_calloc(1, sizeof *s);
    S4D_ASSERT(vocab_size > 0 && vocab_size <= INT32_MAX && seq_length > 0,
               "vocabulary %" PRId64 ", sequences of %" PRId64, vocab_size, seq_length);
    s->vocab_size = vocab_size;
    s->seq_length = seq_length;
    s->fd = -1;
    *out = (struct s4d_token_source){.self = s, .close = close_source};
    return s;
}

void s4d_tokens_random(struct s4d_token_source *out, uint64_t seed, int64_t vocab_size,
                       int64_t seq_length)
{
    make(out, vocab_size, seq_length)->key = seed ^ s4d_hash_text("tokens");
    out->sequence = random_sequence;
}

static int open_tokens(struct source *s, struct s4d_error *err)
{
    struct stat st;
    /* Non-blocking: a pipe without a writer is refused, not waited for. */
    s->fd = open(s->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0 || fstat(s->fd, &st))
        return s4d_fail(err, S4D_EXIT_DATA, s->file, "cannot open: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return s4d_fail(err, S4D_EXIT_DATA, s->file, "expected a file, found %s",
                        S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
    if (st.st_size % s->width) {
        s4d_fail(err, S4D_EXIT_DATA, s->file,
                 "expected a multiple of %d bytes (uint%d tokens), found %" PRId64 " bytes",
                 s->width, 8 * s->width, (int64_t)st.st_size);
        return s4d_hint(err, "--tokens takes integers and no header; --text takes a text");
    }
    s->n = st.st_size / s->width;
    if (s->n < s->seq_length + 1)
        return s4d_fail(err, S4D_EXIT_DATA, s->file,
                        "expected at least %" PRId64 " tokens (one sequence and the target of its "
                        "last token), found %" PRId64,
                        s->seq_length + 1, s->n);
    s->bytes = s4d_malloc((size_t)((s->seq_length + 1) * s->width));
    return 0;
}

static int make_file(struct s4d_token_source *out, const char *file, int width, int64_t vocab_size,
                     int64_t seq_length, struct s4d_error *err)
{
    struct source *s = make(out, vocab_size, seq_length);
    s->file = s4d_strdup(file);
    s->width = width;
    out->sequence = file_sequence;
    if (open_tokens(s, err)) {
        s4d_tokens_close(out);
        return -1;
    }
    out->sequences = (s->n - 1) / seq_length;
    return 0;
}

int s4d_tokens_file(struct s4d_token_source *out, const char *file, enum s4d_token_type type,
                    int64_t vocab_size, int64_t seq_length, struct s4d_error *err)
{
    if (type == S4D_TOKENS_BY_VOCABULARY)
        type = vocab_size > 65536 ? S4D_TOKENS_U32 : S4D_TOKENS_U16;
    return make_file(out, file, type == S4D_TOKENS_U32 ? 4 : 2, vocab_size, seq_length, err);
}

int s4d_tokens_text(struct s4d_token_source *out, const char *file, int64_t vocab_size,
                    int64_t seq_length, struct s4d_error *err)
{
    *out = (struct s4d_token_source){0};
    if (vocab_size < 256)
        return s4d_fail(err, S4D_EXIT_USAGE, "--text",
                        "expected a vocabulary of at least 256, one for each byte; the model's is "
                        "%" PRId64,
                        vocab_size);
    return make_file(out, file, 1, vocab_size, seq_length, err);
}

void s4d_tokens_close(struct s4d_token_source *source)
{
    if (source->close)
        source->close(source->self);
    *source = (struct s4d_token_source){0};
}
