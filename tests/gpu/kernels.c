/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel, and products and attention by cuBLAS, on a GPU against the host's. Speaks TAP.
 *
 *   build/tests/gpu_kernels [SEED] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "real/mpi/backend.h"
#include "tests/cuda/compare.h"

enum { ARENA_BYTES = 64 << 20 };

/* A device for each arithmetic, with memory for an op's rooms. */
struct gpu {
    struct s4d_program program;
    struct s4d_device device;
    unsigned char *arena;
};

static int open_gpu(struct gpu *g, enum s4d_type precision, struct s4d_error *err)
{
    const struct s4d_backend *cuda = s4d_backend_of(1);
    struct s4d_backend_options o = {.comm = MPI_COMM_WORLD};
    void *arena;
    g->program = (struct s4d_program){.grid = s4d_grid_make(1, 1, 1, 1)};
    g->program.options.precision = precision;
    if (cuda->absent)
        return s4d_fail(err, S4D_EXIT_DEVICE, "cuda", "%s", cuda->absent);
    if (cuda->open(&g->device, &g->program, &o, err) ||
        g->device.allocate(g->device.self, S4D_DEVICE, ARENA_BYTES, &arena, err))
        return -1;
    g->arena = arena;
    return 0;
}

static struct s4d_buffer bytes_at(unsigned char *at, size_t bytes)
{
    return (struct s4d_buffer){at, S4D_U8, 1, (int64_t)bytes, (int64_t)bytes};
}

/* Where the rooms lie on the device: 256 bytes apart, so that alignments are those of the host. */
static void place(const struct gpu *g, const struct s4d_room *rooms, unsigned char **at)
{
    size_t used = 0;
    for (int k = 0; k < S4D_OPERANDS; k++) {
        at[k] = g->arena + used;
        used += (rooms[k].bytes + 511) / 256 * 256;
    }
    S4D_ASSERT(used <= ARENA_BYTES, "operands of %zu bytes", used);
}

/* The op's operands on the device; that of no room lies where the same address on the host does. */
static struct s4d_call moved(const struct s4d_call *call, const struct s4d_room *rooms,
                             unsigned char *const *at)
{
    struct s4d_call c = *call;
    for (int k = 0; k < S4D_OPERANDS; k++)
        for (int r = 0; r < S4D_OPERANDS; r++) {
            const unsigned char *data = call->operand[k].data;
            if (data && rooms[r].data && data >= rooms[r].data &&
                data < rooms[r].data + rooms[r].bytes)
                c.operand[k].data = at[r] + (data - rooms[r].data);
        }
    return c;
}

static int run_on(struct gpu *g, const struct s4d_call *call, const struct s4d_room *rooms,
                  struct s4d_error *err)
{
    unsigned char *at[S4D_OPERANDS];
    struct s4d_device *d = &g->device;
    place(g, rooms, at);
    struct s4d_call c = moved(call, rooms, at);
    for (int k = 0; k < S4D_OPERANDS; k++) {
        struct s4d_buffer b = bytes_at(at[k], rooms[k].bytes);
        if (rooms[k].data && d->upload(d->self, &b, rooms[k].data, err))
            return -1;
    }
    if ((call->op->kind == S4D_OP_GEMM ? d->gemm : d->kernel)(d->self, &c, 0, err) ||
        d->finish(d->self, err))
        return -1;
    for (int k = 0; k < S4D_OPERANDS; k++) {
        struct s4d_buffer b = bytes_at(at[k], rooms[k].bytes);
        if (rooms[k].data && d->download(d->self, &b, rooms[k].data, err))
            return -1;
    }
    return 0;
}

static bool run(void *self, const struct s4d_call *call, const struct s4d_room *rooms, bool f64)
{
    struct gpu *gpus = self;
    struct s4d_error err;
    if (run_on(&gpus[f64], call, rooms, &err) == 0)
        return true;
    printf("# %s: %s\n# hint: %s\n", err.where, err.text, err.hint);
    return false;
}

int main(int argc, char **argv)
{
    static struct gpu gpus[2];
    struct s4d_op_runner runner = {"on the GPU", gpus, run};
    struct s4d_error err = {0};
    int failed = 1;
    MPI_Init(&argc, &argv);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    if (open_gpu(&gpus[0], S4D_F32, &err) || open_gpu(&gpus[1], S4D_F64, &err)) {
        printf("not ok - a GPU\n");
        s4d_error_print(&err);
    } else {
        failed = s4d_compare_kernels(seed, &runner, 1, 0);
        for (int i = 0; i < 2; i++)
            gpus[i].device.close(gpus[i].device.self);
    }
    MPI_Finalize();
    return failed > 0;
}
