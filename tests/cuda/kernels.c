/* SPDX-License-Identifier: Apache-2.0 */
/* Every CUDA kernel, compiled for the CPU from its own file, against the host's kernel of that op:
 * with the blocks and grids that a GPU would get, with one thread, and with odd numbers of both.
 * Attention's products are plain loops here. Speaks TAP; needs no CUDA and no MPI.
 *
 *   build/tests/cuda_kernels [SEED] */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/compare.h"
#include "tests/cuda/cpu_work.h"

static bool run(void *self, const struct s4d_call *call, const struct s4d_room *rooms, bool f64)
{
    (void)rooms; /* host memory will do */
    return s4d_cpu_run(call, *(const enum s4d_cpu_shapes *)self, f64);
}

/* Scratch of 32 query heads of 128 with 8 of keys, over 2^20 tokens in bf16: the scores of 64 query
 * rows at a time, of one head a group. Forward 8 * 64 * 2^20 scores of 4 + 2 bytes, 3 GiB; backward
 * twice that, and sums of dk and dv in fp32, 2 * 2^20 * 8 * 128 * 4 bytes, 8 GiB. All scores of all
 * heads would be 32 * 2^40 of 2 bytes, 64 TiB. And a tile of 1,024 rows where the cache holds it.
 */
static bool attention_is_narrow(void)
{
    const int64_t gib = (int64_t)1 << 30;
    struct s4d_op op = {.kind = S4D_OP_ATTENTION_FORWARD};
    struct s4d_call call = {.op = &op};
    struct s4d_cuda_work w = {.tile_bytes = S4D_CUDA_TILE_BYTES};
    op.c.attention.batch = 1;
    op.c.attention.seq = 1 << 20;
    op.c.attention.heads = 32;
    op.c.attention.kv_heads = 8;
    op.c.attention.head_dim = 128;
    call.operand[0].type = S4D_BF16;
    int64_t forward = s4d_cuda_scratch_bytes(&w, &call);
    op.kind = S4D_OP_ATTENTION_BACKWARD;
    int64_t backward = s4d_cuda_scratch_bytes(&w, &call);
    op.kind = S4D_OP_ATTENTION_FORWARD;
    op.c.attention.heads = op.c.attention.kv_heads = 1;
    op.c.attention.seq = 2048;
    int64_t all = s4d_cuda_scratch_bytes(&w, &call);
    return forward == 3 * gib && backward == 14 * gib && all == 1024 * 2048 * (4 + 2);
}

int main(int argc, char **argv)
{
    static enum s4d_cpu_shapes shapes[S4D_CPU_SHAPES] = {S4D_CPU_AS_LAUNCHED, S4D_CPU_ONE_THREAD,
                                                         S4D_CPU_ODD};
    const struct s4d_op_runner runners[S4D_CPU_SHAPES] = {{"as launched", &shapes[0], run},
                                                          {"one thread", &shapes[1], run},
                                                          {"odd blocks", &shapes[2], run}};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    bool narrow = attention_is_narrow();
    printf("%s - attention of a million tokens never has the scores of all\n",
           narrow ? "ok" : "not ok");
    return s4d_compare_kernels(seed, runners, S4D_CPU_SHAPES, 1) > 0 || !narrow;
}
