/* SPDX-License-Identifier: Apache-2.0 */
/* Device and pinned memory.
 *
 * A device address lies in pages that nobody may touch: the host, which reads or writes one, dies.
 * Its bytes are `apart` further on, and only work finds them (s4d_double_reach), while they are
 * allocated and as far as the allocation goes. No address is given twice. New memory is full of
 * NaNs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/memory.h"
#include "tests/double/double.h"

enum { ALIGNED = 256, FILLED = 4 << 20 };

static const size_t room = (size_t)1 << 40; /* of addresses */

static struct block {
    unsigned char *at;
    size_t bytes;
    bool pinned;
} * blocks;
static int n_blocks, cap_blocks;
static unsigned char *device; /* NULL: nothing was allocated yet */
static size_t apart, used, live;

static size_t total(void)
{
    return (size_t)s4d_double_setting("S4D_DOUBLE_GPU_BYTES", 16LL << 30);
}

/* The block that holds these bytes. */
static struct block *find(const void *address, size_t bytes)
{
    const unsigned char *at = address;
    for (int i = n_blocks - 1; i >= 0; i--)
        if (at >= blocks[i].at && at <= blocks[i].at + blocks[i].bytes)
            return bytes <= (size_t)(blocks[i].at + blocks[i].bytes - at) ? &blocks[i] : NULL;
    return NULL;
}

bool s4d_double_is_pinned(const void *address, size_t bytes)
{
    const struct block *b = find(address, bytes);
    return b && b->pinned;
}

bool s4d_double_is_device(const void *address, size_t bytes)
{
    const struct block *b = find(address, bytes);
    return b && !b->pinned;
}

void *s4d_double_reach(const void *address, size_t bytes, const char *who)
{
    const struct block *b = find(address, bytes);
    char why[256];
    if (b)
        return (unsigned char *)address + (b->pinned ? 0 : apart);
    snprintf(why, sizeof why, "%s: %zu bytes at %p are not in one allocation", who, bytes, address);
    s4d_double_break(cudaErrorIllegalAddress, why);
    return NULL;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    S4D_DOUBLE_ENTER("cudaMemGetInfo", cudaErrorUnknown);
    *total_bytes = total();
    *free_bytes = total() - live;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    S4D_DOUBLE_ENTER("cudaMalloc", cudaErrorMemoryAllocation);
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    size_t size = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (bytes == 0 || size > total() - live)
        return cudaErrorMemoryAllocation;
    if (!device) {
        device =
            mmap(NULL, 2 * room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (device == MAP_FAILED)
            s4d_double_refuse("cudaMalloc", "no room for addresses");
        apart = room;
    }
    unsigned char *at = device + used;
    struct block b = {at, bytes, false};
    used += (size + 4095) / 4096 * 4096 + 4096; /* a page between any two */
    if (used > room || mprotect(at + apart, (size + 4095) / 4096 * 4096, PROT_READ | PROT_WRITE))
        return cudaErrorMemoryAllocation;
    memset(at + apart, 0xff, bytes < FILLED ? bytes : FILLED);
    live += size;
    s4d_double_live.device++;
    s4d_push(blocks, n_blocks, cap_blocks, b);
    *memory = at;
    return cudaSuccess;
}

static cudaError_t release(void *memory, bool pinned)
{
    struct block *b = memory ? find(memory, 1) : NULL;
    if (!memory)
        return cudaSuccess;
    if (!b || b->at != memory || b->pinned != pinned)
        return cudaErrorInvalidValue;
    s4d_double_finish_all(); /* "may implicitly synchronize": so it does, as the real one */
    *(pinned ? &s4d_double_live.pinned : &s4d_double_live.device) -= 1;
    if (pinned) {
        free(memory);
    } else {
        live -= (b->bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
        mmap(b->at + apart, (b->bytes + 4095) / 4096 * 4096, PROT_NONE,
             MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    *b = blocks[--n_blocks];
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    S4D_DOUBLE_ENTER("cudaFree", cudaErrorUnknown);
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    return release(memory, false);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    S4D_DOUBLE_ENTER("cudaHostAlloc", cudaErrorMemoryAllocation);
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    if (flags != cudaHostAllocDefault)
        s4d_double_refuse("cudaHostAlloc", "flags");
    size_t size = (bytes + 4095) / 4096 * 4096;
    *memory = aligned_alloc(4096, size ? size : 4096);
    if (!*memory)
        return cudaErrorMemoryAllocation;
    memset(*memory, 0xff, bytes < FILLED ? bytes : FILLED);
    struct block b = {*memory, bytes, true};
    s4d_double_live.pinned++;
    s4d_push(blocks, n_blocks, cap_blocks, b);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    S4D_DOUBLE_ENTER("cudaFreeHost", cudaErrorUnknown);
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    return release(memory, true);
}

/* ---- copies ---- */

struct copy {
    void *to;
    const void *from;
    size_t to_pitch, from_pitch, width, rows;
    int value; /* of a fill: from is NULL */
};

static bool copy(void *data)
{
    const struct copy *c = data;
    size_t to_bytes = (c->rows - 1) * c->to_pitch + c->width;
    size_t from_bytes = (c->rows - 1) * c->from_pitch + c->width;
    unsigned char *to = s4d_double_reach(c->to, to_bytes, "a copy");
    const unsigned char *from = c->from ? s4d_double_reach(c->from, from_bytes, "a copy") : NULL;
    if (!to || (c->from && !from))
        return true;
    for (size_t i = 0; i < c->rows; i++) {
        if (from)
            memcpy(to + i * c->to_pitch, from + i * c->from_pitch, c->width);
        else
            memset(to + i * c->to_pitch, c->value, c->width);
    }
    return true;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaMemsetAsync", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (!s4d_double_is_device(memory, bytes))
        return cudaErrorInvalidValue;
    S4D_DOUBLE_NOT_INVALID(stream);
    struct copy c = {memory, NULL, bytes, bytes, bytes, 1, value};
    s4d_double_append(stream, copy, &c, sizeof c);
    return cudaSuccess;
}

/* Of pinned memory alone: with pageable memory the copy is none that goes on by itself. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t rows, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    if (kind == cudaMemcpyDeviceToHost && s4d_double_fails("lost"))
        s4d_double_break(cudaErrorDevicesUnavailable, "the GPU is lost, as asked");
    S4D_DOUBLE_ENTER("cudaMemcpy2DAsync", cudaErrorUnknown);
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost)
        s4d_double_refuse("cudaMemcpy2DAsync", "a copy neither to the device nor from it");
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (width > to_pitch || width > from_pitch || to_pitch > INT32_MAX || from_pitch > INT32_MAX)
        return cudaErrorInvalidPitchValue; /* cudaDevAttrMaxPitch is 2^31 - 1 */
    if (width == 0 || rows == 0)
        return cudaSuccess;
    bool up = kind == cudaMemcpyHostToDevice;
    size_t to_bytes = (rows - 1) * to_pitch + width, from_bytes = (rows - 1) * from_pitch + width;
    if (!(up ? s4d_double_is_device(to, to_bytes) : s4d_double_is_device(from, from_bytes)))
        return cudaErrorInvalidValue;
    if (!(up ? s4d_double_is_pinned(from, from_bytes) : s4d_double_is_pinned(to, to_bytes)))
        s4d_double_refuse("cudaMemcpy2DAsync", "memory that is not pinned");
    S4D_DOUBLE_NOT_INVALID(stream);
    struct copy c = {to, from, to_pitch, from_pitch, width, rows, 0};
    s4d_double_append(stream, copy, &c, sizeof c);
    return cudaSuccess;
}
