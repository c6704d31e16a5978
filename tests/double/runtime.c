/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, launches and words of the CUDA runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/cuda/kernels/kernels.h"
#include "support/memory.h"
#include "tests/cuda/cpu_launch.h"
#include "tests/double/double.h"

static int driver(void)
{
    return (int)s4d_double_setting("S4D_DOUBLE_DRIVER", CUDART_VERSION);
}

/* The node's GPU that device `device` is, as CUDA_VISIBLE_DEVICES says: numbers up to the first
 * that is none of a GPU's; -1: none. */
static int gpu_of(int device)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int gpus = (int)s4d_double_setting("S4D_DOUBLE_GPUS", 8), at = 0;
    if (!list)
        return device < gpus ? device : -1;
    for (char *end; *list; list = *end == ',' ? end + 1 : "") {
        long gpu = strtol(list, &end, 10);
        if (end == list || gpu < 0 || gpu >= gpus)
            return -1;
        if (at++ == device)
            return (int)gpu;
    }
    return -1;
}

int s4d_double_gpus(void)
{
    int n = 0;
    while (gpu_of(n) >= 0)
        n++;
    return n;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    S4D_DOUBLE_ENTER("cudaGetDeviceCount", cudaErrorUnknown);
    *count = driver() < CUDART_VERSION ? 0 : s4d_double_gpus();
    if (driver() < CUDART_VERSION)
        return cudaErrorInsufficientDriver;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    S4D_DOUBLE_ENTER("cudaDeviceGetPCIBusId", cudaErrorUnknown);
    if (device < 0 || device >= s4d_double_gpus())
        return cudaErrorInvalidDevice;
    snprintf(text, (size_t)size, "0000:%02X:00.0", gpu_of(device) + 1);
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    S4D_DOUBLE_ENTER("cudaGetDevice", cudaErrorUnknown);
    *device = s4d_double_device();
    return cudaSuccess;
}

/* Name and memory alone: all else is 0. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    S4D_DOUBLE_ENTER("cudaGetDeviceProperties", cudaErrorUnknown);
    if (device != s4d_double_device())
        return cudaErrorInvalidDevice;
    memset(properties, 0, sizeof *properties);
    const char *name = getenv("S4D_DOUBLE_NAME");
    snprintf(properties->name, sizeof properties->name, "%s",
             name ? name : "double of a GPU, its times mean nothing");
    properties->totalGlobalMem = (size_t)s4d_double_setting("S4D_DOUBLE_GPU_BYTES", 16LL << 30);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    S4D_DOUBLE_ENTER("cudaDriverGetVersion", cudaErrorUnknown);
    *version = driver();
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    S4D_DOUBLE_ENTER("cudaRuntimeGetVersion", cudaErrorUnknown);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* ---- launches: all kernels of the project take one struct s4d_cuda_args by value ---- */

struct launch {
    const void *kernel;
    struct s4d_cuda_args args;
    unsigned x, y, shared;
};

static size_t bytes_of(const struct s4d_buffer *b)
{
    int64_t n = b->rows > 0 && b->cols > 0 ? (b->rows - 1) * b->stride + b->cols : 0;
    return (size_t)(n * s4d_type_bytes[b->type]);
}

/* From addresses that the host knows to those where the bytes are. */
static bool reach_all(struct s4d_cuda_args *a)
{
    for (int k = 0; k < S4D_OPERANDS; k++) {
        struct s4d_buffer *b = &a->o[k];
        if (b->data && !(b->data = s4d_double_reach(b->data, bytes_of(b), "a kernel")))
            return false;
    }
    if (a->scratch && !(a->scratch = s4d_double_reach(a->scratch, 1, "a kernel's scratch")))
        return false;
    return !a->table || (a->table = s4d_double_reach(a->table, 1, "a kernel's table"));
}

static bool run(void *data)
{
    struct launch *l = data;
    if (s4d_double_fails("kernel"))
        s4d_double_break(cudaErrorLaunchFailure, "a kernel fails as asked");
    if (!s4d_double_broken() && reach_all(&l->args))
        s4d_cpu_launch(l->kernel, &l->args, l->x, l->y, 1, l->shared);
    return true;
}

/* One thread a block: kernels are correct for any number, which tests/cuda/kernels.c checks. */
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaLaunchKernel", cudaErrorLaunchOutOfResources);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
    if (grid.z != 1 || block.y != 1 || block.z != 1)
        s4d_double_refuse("cudaLaunchKernel", "more dimensions than blocks of two, threads of one");
    if (grid.x < 1 || grid.x > INT32_MAX || grid.y < 1 || grid.y > UINT16_MAX || block.x < 1 ||
        block.x > 1024 || shared_bytes > 48 << 10)
        return cudaErrorInvalidConfiguration;
    S4D_DOUBLE_NOT_INVALID(stream);
    unsigned shared = (unsigned)shared_bytes / block.x;
    struct launch l = {
        .kernel = kernel, .x = grid.x, .y = grid.y, .shared = shared < 16 ? 16 : shared};
    memcpy(&l.args, arguments[0], sizeof l.args);
    s4d_double_append(stream, run, &l, sizeof l);
    return cudaSuccess;
}

struct task {
    cudaHostFn_t function;
    void *data;
};

static bool run_task(void *data)
{
    const struct task *t = data;
    if (!s4d_double_broken()) /* "not called in the event of an error in the CUDA context" */
        t->function(t->data);
    return true;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    S4D_DOUBLE_ENTER("cudaLaunchHostFunc", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    S4D_DOUBLE_NOT_INVALID(stream);
    struct task t = {function, data};
    s4d_double_append(stream, run_task, &t, sizeof t);
    return cudaSuccess;
}

/* ---- words ---- */

static const struct {
    cudaError_t code;
    const char *name, *text;
} words[] = {
#define WORDS(code, text)                                                                          \
    {                                                                                              \
        code, #code, text                                                                          \
    }
    WORDS(cudaSuccess, "no error"),
    WORDS(cudaErrorInvalidValue, "invalid argument"),
    WORDS(cudaErrorMemoryAllocation, "out of memory"),
    WORDS(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    WORDS(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    WORDS(cudaErrorInsufficientDriver,
          "CUDA driver version is insufficient for CUDA runtime version"),
    WORDS(cudaErrorInvalidDeviceFunction, "invalid device function"),
    WORDS(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    WORDS(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    WORDS(cudaErrorInvalidDevice, "invalid device ordinal"),
    WORDS(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    WORDS(cudaErrorNotReady, "device not ready"),
    WORDS(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    WORDS(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    WORDS(cudaErrorLaunchFailure, "unspecified launch failure"),
    WORDS(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    WORDS(cudaErrorStreamCaptureInvalidated,
          "operation failed due to a previous error during capture"),
    WORDS(cudaErrorStreamCaptureMerge,
          "operation would result in a merge of separate capture sequences"),
    WORDS(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    WORDS(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    WORDS(cudaErrorStreamCaptureIsolation,
          "dependency created on uncaptured work in another stream"),
    WORDS(cudaErrorCapturedEvent,
          "operation not permitted on an event last recorded in a capturing stream"),
    WORDS(cudaErrorUnknown, "unknown error"),
};

const char *cudaGetErrorName(cudaError_t code)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].code == code)
            return words[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t code)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].code == code)
            return words[i].text;
    return "unrecognized error code";
}
