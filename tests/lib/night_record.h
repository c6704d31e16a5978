/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a night's training, for tests of what is made of them. */
#ifndef S4D_TESTS_NIGHT_RECORD_H
#define S4D_TESTS_NIGHT_RECORD_H

#include <jansson.h>

/* JSON with ' for "; fails the test where it is none. */
json_t *night_json(const char *text);
void night_near(double got, double expected, double tolerance);

#define NIGHT_INPUTS                                                                               \
    "'rank_order': 'y,x,z,pipe,data', 'recompute': 'full', 'cache_layers': 0, "                    \
    "'precision': 'bf16', 'gradient_type': 'f32', 'gradient_reduce': 'at-end', "                   \
    "'loss_scaling': false, 'clip_norm': 1.0"
#define NIGHT_RECORD(workload, gpus, grid, batch, overlap)                                         \
    "{'kind': 'train', 'backend': 'cuda', 'workload': {'name': '" workload "'}, 'gpus': " gpus     \
    ", 'grid': '" grid "', 'global_batch': " batch ", 'micro_batch': 1, 'overlap': '" overlap      \
    "', " NIGHT_INPUTS "}"

#endif
