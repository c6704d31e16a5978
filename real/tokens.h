/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sequences that a model is trained on come from. */
#ifndef S4D_REAL_TOKENS_H
#define S4D_REAL_TOKENS_H

#include <stdint.h>

#include "support/error.h"

struct s4d_token_source {
    void *self;
    /* Sequence j of the global batch of iteration i has index i * global_batch + j. Fills its
     * seq_length + 1 tokens: inputs are the first seq_length, targets the last. A target below zero
     * is not kept. Called in any order, by one thread at a time; the same index gives the same
     * tokens on every rank. 0, or -1 with *err (a file that cannot be read, a token outside the
     * vocabulary). */
    int (*sequence)(void *self, int64_t index, int32_t *tokens, struct s4d_error *err);
};

#endif
