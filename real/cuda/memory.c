/* SPDX-License-Identifier: Apache-2.0 */
/* The arenas, and copies between them and the host: through pinned memory, a piece at a time. */
#include <string.h>

#include "real/cuda/internal.h"

/* Assumed: large enough for a bus's full rate, little of the node's pinned memory. */
enum { STAGE_BYTES = 8 << 20 };

static int clear(struct s4d_cuda *c, void *memory, size_t bytes, struct s4d_error *err)
{
    return S4D_CUDA(err, cudaMemsetAsync, memory, 0, bytes, c->transfer) ||
                   S4D_CUDA(err, cudaStreamSynchronize, c->transfer)
               ? -1
               : 0;
}

/* What was asked for, and what there is of it. */
static void name_bytes(struct s4d_error *err, const char *what, size_t bytes, bool known,
                       size_t free_bytes, size_t total)
{
    if (!err)
        return;
    s4d_cuda_say(err, "; %s: %.6g MB asked for", what, 1e-6 * (double)bytes);
    if (known)
        s4d_cuda_say(err, ", %.6g of %.6g MB free", 1e-6 * (double)free_bytes,
                     1e-6 * (double)total);
}

int s4d_cuda_malloc(const char *what, size_t bytes, void **memory, struct s4d_error *err)
{
    size_t free_bytes = 0, total = 0;
    if (!S4D_CUDA(err, cudaMalloc, memory, bytes))
        return 0;
    bool known = cudaMemGetInfo(&free_bytes, &total) == cudaSuccess;
    name_bytes(err, what, bytes, known, free_bytes, total);
    return s4d_hint(err,
                    "nvidia-smi shows who has a GPU's memory; a smaller --micro-batch, a larger "
                    "Gz and --recompute full need less");
}

static int malloc_host(const char *what, size_t bytes, void **memory, struct s4d_error *err)
{
    if (!S4D_CUDA(err, cudaHostAlloc, memory, bytes, cudaHostAllocDefault))
        return 0;
    name_bytes(err, what, bytes, false, 0, 0);
    return s4d_hint(err,
                    "pinned memory is the node's own: its ranks may take no more of it together "
                    "than there is, nor than the batch system's limit");
}

static int allocate_device(struct s4d_cuda *c, size_t bytes, void **memory, struct s4d_error *err)
{
    size_t free_bytes = 0, total = 0;
    double reserve = 0;
    int groups = 0;
    if (s4d_cuda_reserve(c, &reserve, &groups, err) ||
        S4D_CUDA(err, cudaMemGetInfo, &free_bytes, &total))
        return -1;
    if ((double)bytes + reserve <= (double)free_bytes)
        return s4d_cuda_malloc("the plan's arena", bytes, memory, err) ||
                       clear(c, *memory, bytes, err)
                   ? -1
                   : 0;
    s4d_fail(err, S4D_EXIT_DEVICE, "GPU memory",
             "the plan needs %.3f GB, and %.3f GB are kept for %d of NCCL's communicators and the "
             "driver; free are %.3f of %.3f GB",
             1e-9 * (double)bytes, 1e-9 * reserve, groups, 1e-9 * (double)free_bytes,
             1e-9 * (double)total);
    return s4d_hint(err, "a larger Gz shards the weights further; --recompute full, a smaller "
                         "--micro-batch and --overlap with less prefetching need less memory; "
                         "SCALE4D_GPU_RESERVE='1 GB' keeps another amount free");
}

/* The arena is the device's as soon as it is there, whatever comes then. */
static void keep(struct s4d_cuda *c, void *memory, size_t bytes, enum s4d_place place)
{
    c->memory[c->n_memory].data = memory;
    c->memory[c->n_memory].bytes = bytes;
    c->memory[c->n_memory++].place = place;
}

int s4d_cuda_allocate(void *self, enum s4d_place place, int64_t bytes, void **memory,
                      struct s4d_error *err)
{
    struct s4d_cuda *c = self;
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    S4D_ASSERT(c->n_memory < 4, "more than four arenas");
    *memory = NULL;
    int rc = place == S4D_DEVICE ? allocate_device(c, size, memory, err)
                                 : malloc_host("the plan's part in host memory", size, memory, err);
    if (*memory)
        keep(c, *memory, size, place);
    if (!rc && place == S4D_PINNED_HOST)
        memset(*memory, 0, size);
    return rc;
}

/* Rows [i, i + rows) and columns [j, j + cols) of a buffer, between it and the stage. */
static int transfer(struct s4d_cuda *c, const struct s4d_buffer *b, int64_t i, int64_t j,
                    int64_t rows, int64_t cols, enum cudaMemcpyKind kind, struct s4d_error *err)
{
    size_t size = (size_t)s4d_type_bytes[b->type], width = (size_t)cols * size;
    /* Of one row it is not used, but must be below 2 GiB all the same. */
    size_t pitch = rows == 1 ? width : (size_t)b->stride * size;
    unsigned char *at = (unsigned char *)b->data + (size_t)(i * b->stride + j) * size;
    bool up = kind == cudaMemcpyHostToDevice;
    return S4D_CUDA(err, cudaMemcpy2DAsync, up ? at : c->stage, up ? pitch : width,
                    up ? c->stage : at, up ? width : pitch, width, (size_t)rows, kind,
                    c->transfer) ||
                   S4D_CUDA(err, cudaStreamSynchronize, c->transfer)
               ? -1
               : 0;
}

/* All of a buffer, as many rows at a time as the stage holds, or parts of one. */
static int transfer_all(struct s4d_cuda *c, const struct s4d_buffer *buffer, unsigned char *host,
                        enum cudaMemcpyKind kind, struct s4d_error *err)
{
    struct s4d_buffer b = *buffer;
    if (b.rows == 1 || b.stride == b.cols) {
        b.cols *= b.rows;
        b.stride = b.cols;
        b.rows = 1;
    }
    int64_t size = s4d_type_bytes[b.type], fit = STAGE_BYTES / size;
    int64_t cols = b.cols < fit ? b.cols : fit, rows = cols > 0 ? fit / cols : 1;
    for (int64_t i = 0; i < b.rows; i += rows)
        for (int64_t j = 0; j < b.cols; j += cols) {
            int64_t m = b.rows - i < rows ? b.rows - i : rows,
                    n = b.cols - j < cols ? b.cols - j : cols;
            /* More than one row only where a row is not cut: the piece is dense in the host's. */
            unsigned char *at = host + (i * b.cols + j) * size;
            if (kind == cudaMemcpyHostToDevice)
                memcpy(c->stage, at, (size_t)(m * n * size));
            if (transfer(c, &b, i, j, m, n, kind, err))
                return -1;
            if (kind == cudaMemcpyDeviceToHost)
                memcpy(at, c->stage, (size_t)(m * n * size));
        }
    return 0;
}

static bool is_pinned(const struct s4d_cuda *c, const void *data)
{
    for (int i = 0; i < c->n_memory; i++) {
        const char *first = c->memory[i].data, *at = data;
        if (c->memory[i].place == S4D_PINNED_HOST && at >= first && at < first + c->memory[i].bytes)
            return true;
    }
    return false;
}

static void copy_rows(const struct s4d_buffer *b, unsigned char *dense, bool up)
{
    size_t size = (size_t)s4d_type_bytes[b->type], row = (size_t)b->cols * size;
    for (int64_t i = 0; i < b->rows; i++) {
        unsigned char *own = (unsigned char *)b->data + (size_t)(i * b->stride) * size;
        memcpy(up ? own : dense + (size_t)i * row, up ? dense + (size_t)i * row : own, row);
    }
}

int s4d_cuda_upload(void *self, const struct s4d_buffer *to, const void *from,
                    struct s4d_error *err)
{
    struct s4d_cuda *c = self;
    if (!is_pinned(c, to->data))
        return transfer_all(c, to, (unsigned char *)from, cudaMemcpyHostToDevice, err);
    copy_rows(to, (unsigned char *)from, true);
    return 0;
}

int s4d_cuda_download(void *self, const struct s4d_buffer *from, void *to, struct s4d_error *err)
{
    struct s4d_cuda *c = self;
    if (!is_pinned(c, from->data))
        return transfer_all(c, from, to, cudaMemcpyDeviceToHost, err);
    copy_rows(from, to, false);
    return 0;
}

int s4d_cuda_memory_open(struct s4d_cuda *c, struct s4d_error *err)
{
    void *stage = NULL, *slots = NULL;
    int rc = malloc_host("room for copies", STAGE_BYTES, &stage, err) ||
             malloc_host("room for reports", S4D_CUDA_SLOTS * sizeof(double), &slots, err);
    c->stage = stage;
    c->slots = slots;
    return rc ? -1 : 0;
}

void s4d_cuda_memory_close(struct s4d_cuda *c)
{
    for (int i = 0; i < c->n_memory; i++)
        if (c->memory[i].place == S4D_DEVICE)
            S4D_CUDA(NULL, cudaFree, c->memory[i].data);
        else
            S4D_CUDA(NULL, cudaFreeHost, c->memory[i].data);
    if (c->stage)
        S4D_CUDA(NULL, cudaFreeHost, c->stage);
    if (c->slots)
        S4D_CUDA(NULL, cudaFreeHost, c->slots);
}
