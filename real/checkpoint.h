/* SPDX-License-Identifier: Apache-2.0 */
/* A program's parameters as safetensors with Hugging Face's names and shapes, whole, and back.
 *
 * A parameter is one tensor, or one for each part (hf_part_name); a matrix is (rows, cols), or
 * transposed (hf_transposed); a vector has one dimension. Without MPI: how shards get to the rank
 * that writes is the caller's. */
#ifndef S4D_REAL_CHECKPOINT_H
#define S4D_REAL_CHECKPOINT_H

#include "real/shard.h"

struct s4d_checkpoint;

/* Opens FILE for a program's parameters; every rank does, and finds the same. 0, or -1 (exit 65; *c
 * is NULL): not safetensors, tensors that are missing or that the model does not have (named), a
 * wrong shape, not floats. Taken as they are: names with or without a leading "transformer." or
 * "model."; attention masks and rotary frequencies (ignored); "lm_head.weight" of a tied model if
 * it equals the embedding. The program must outlive it. */
int s4d_checkpoint_open(const struct s4d_program *p, const char *file, struct s4d_checkpoint **c,
                        struct s4d_error *err);
void s4d_checkpoint_close(struct s4d_checkpoint *c); /* NULL is allowed */

/* A rank's shard of parameter `param` (its index): shard_elements of type `as` (F32 or F64),
 * padding zero. Only the shard's bytes are read. 0, or -1 (exit 65). */
int s4d_checkpoint_read(const struct s4d_checkpoint *c, int param, const int coordinate[S4D_AXES],
                        enum s4d_dtype as, void *shard, struct s4d_error *err);

/* Delivers rank `rank`'s shard of parameter `param` (weights or gradients, elements as told to
 * s4d_checkpoint_save) into `shard`. 0, or -1 with *err (a peer failed). */
typedef int s4d_shard_fetch(void *context, int rank, int param, void *shard, struct s4d_error *err);

/* Writes FILE on one rank: for every parameter, in order, fetches from all ranks that
 * s4d_shard_is_saved, in order, so a rank sends its shards by the same two loops. Holds one whole
 * parameter and one shard in memory. After an error of writing the rest is still fetched, so that
 * senders end. metadata: key, value, ..., NULL, or NULL; "format": "pt" is added. 0, or -1: exit 74
 * as s4d_safetensors_create, or fetch's; FILE is as it was. */
int s4d_checkpoint_save(const struct s4d_program *p, const char *file, enum s4d_dtype as,
                        const char *const *metadata, s4d_shard_fetch *fetch, void *context,
                        struct s4d_error *err);

#endif
