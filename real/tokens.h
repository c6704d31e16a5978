/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sequences that a model is trained on come from.
 *
 * A source is a line of tokens; sequence `index` is its tokens [index s, index s + s], s =
 * seq_length: the first s are the inputs, the last s the targets. Sequence j of the global batch of
 * iteration i has index i * global_batch + j, so n iterations take n * global_batch * s + 1 tokens.
 * A file holds floor((tokens - 1) / s) sequences; the one after the last is its first again. */
#ifndef S4D_REAL_TOKENS_H
#define S4D_REAL_TOKENS_H

#include <stdint.h>

#include "support/error.h"

struct s4d_token_source {
    void *self;
    /* Fills the s + 1 tokens of a sequence. A target below zero is not kept. Called in any order,
     * by one thread at a time; the same index gives the same tokens on every rank. 0, or -1 with
     * *err (exit 65): a file that cannot be read, a token outside the vocabulary (its place). */
    int (*sequence)(void *self, int64_t index, int32_t *tokens, struct s4d_error *err);
    void (*close)(void *self); /* NULL: nothing to close */
    int64_t sequences;         /* of a file; 0: there is no end */
};

/* Token t is uniform in [0, vocab_size) and depends on seed and t alone. */
void s4d_tokens_random(struct s4d_token_source *source, uint64_t seed, int64_t vocab_size,
                       int64_t seq_length);

enum s4d_token_type { S4D_TOKENS_BY_VOCABULARY, S4D_TOKENS_U16, S4D_TOKENS_U32 };
extern const char *const s4d_token_type_names[]; /* "auto", "u16", "u32", NULL */

/* A file of little-endian integers and nothing else: by vocabulary, uint32 if it is above 65536,
 * else uint16. 0, or -1 (exit 65): not a regular file, a size that is no multiple of the integer's,
 * fewer than s + 1 tokens. */
int s4d_tokens_file(struct s4d_token_source *source, const char *file, enum s4d_token_type type,
                    int64_t vocab_size, int64_t seq_length, struct s4d_error *err);

/* The bytes of any file, a token each. Also refused: a vocabulary below 256 (exit 64). */
int s4d_tokens_text(struct s4d_token_source *source, const char *file, int64_t vocab_size,
                    int64_t seq_length, struct s4d_error *err);

void s4d_tokens_close(struct s4d_token_source *source);

#endif
