/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU for every rank, and one outcome for all ranks. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

enum { PCI_TEXT = S4D_CUDA_PCI };

static void name_rank(const struct s4d_cuda *c, struct s4d_error *err)
{
    char host[256] = "unknown", where[sizeof err->where];
    gethostname(host, sizeof host - 1);
    snprintf(where, sizeof where, "rank %d (%.80s)%s%.380s", c->rank, host,
             err->where[0] ? ": " : "", err->where);
    memcpy(err->where, where, sizeof where);
}

int s4d_cuda_agree(const struct s4d_cuda *c, int rc, struct s4d_error *err)
{
    struct s4d_error unwanted;
    const struct timespec pause = {.tv_nsec = 1000000};
    int own = rc == 0 ? INT_MAX : rc == -2 ? INT_MAX - 1 : c->rank, first, done = 0;
    MPI_Request request;
    MPI_Iallreduce(&own, &first, 1, MPI_INT, MPI_MIN, c->options.comm, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        s4d_cuda_answer(c); /* others may still form a communicator that this rank has */
        nanosleep(&pause, NULL);
    }
    if (first == INT_MAX)
        return 0;
    S4D_ASSERT(first < c->size, "every rank gave up because another did");
    if (!err)
        err = &unwanted;
    if (first == c->rank)
        name_rank(c, err);
    MPI_Bcast(err, sizeof *err, MPI_BYTE, first, c->options.comm);
    return -1;
}

/* What chooses among the GPUs that there are. */
static int hint_visible(struct s4d_error *err, const char *what)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        return s4d_hint(err, "%s; CUDA_VISIBLE_DEVICES is '%.100s' here", what, visible);
    return s4d_hint(err,
                    "%s; the batch system's options and CUDA_VISIBLE_DEVICES (not set) choose "
                    "among them",
                    what);
}

static int count_gpus(int *count, struct s4d_error *err)
{
    int driver = 0, runtime = 0;
    if (!S4D_CUDA(err, cudaGetDeviceCount, count) && *count > 0)
        return 0;
    if (*count == 0 && err && err->text[0] == '\0')
        s4d_fail(err, S4D_EXIT_DEVICE, "cudaGetDeviceCount", "this process sees no GPU");
    bool known = cudaDriverGetVersion(&driver) == cudaSuccess &&
                 cudaRuntimeGetVersion(&runtime) == cudaSuccess;
    if (known && driver == 0)
        return s4d_hint(err, "this node has no NVIDIA driver");
    if (known && driver < runtime)
        return s4d_hint(err, "the driver is for CUDA %d.%d, this program was built with %d.%d",
                        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return hint_visible(err, "nvidia-smi shows a node's GPUs");
}

int s4d_cuda_device_name(char name[S4D_CUDA_NAME], struct s4d_error *err)
{
    struct cudaDeviceProp properties;
    int device = 0;
    if (S4D_CUDA(err, cudaGetDevice, &device) ||
        S4D_CUDA(err, cudaGetDeviceProperties, &properties, device))
        return -1;
    snprintf(name, S4D_CUDA_NAME, "%.255s", properties.name);
    return 0;
}

/* Work queues of the GPU, of which there are 8 unless its first call finds more asked for, at most
 * 32 (CUDA C++ programming guide, environment variables). The program's streams and NCCL's are more
 * than 8, and two that share a queue wait for one another. Who asks for another number gets it. */
static void ask_for_queues(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

/* This rank's GPU, and its address on the node's bus. */
static int choose(struct s4d_cuda *c, int local_rank, struct s4d_error *err)
{
    struct cudaDeviceProp properties;
    int count = 0;
    ask_for_queues();
    if (err)
        err->text[0] = '\0';
    if (count_gpus(&count, err))
        return -1;
    if (S4D_CUDA(err, cudaSetDevice, local_rank % count) ||
        S4D_CUDA(err, cudaDeviceGetPCIBusId, c->pci, PCI_TEXT, local_rank % count) ||
        S4D_CUDA(err, cudaGetDeviceProperties, &properties, local_rank % count))
        return -1;
    snprintf(c->name, sizeof c->name, "%.255s", properties.name);
    c->device_bytes = (int64_t)properties.totalGlobalMem;
    return 0;
}

/* No two ranks of a node on one GPU: NCCL cannot, and memory is planned for one. */
static int check_apart(const char *all, int local_rank, int local_size, struct s4d_error *err)
{
    for (int i = 0; i < local_rank; i++)
        if (strcmp(all + i * PCI_TEXT, all + local_rank * PCI_TEXT) == 0) {
            s4d_fail(err, S4D_EXIT_DEVICE, "cudaSetDevice",
                     "local ranks %d and %d, of %d on this node, would share GPU %s", i, local_rank,
                     local_size, all + i * PCI_TEXT);
            return hint_visible(err, "start as many ranks on a node as it has GPUs that they see");
        }
    return 0;
}

int s4d_cuda_select(struct s4d_cuda *c, struct s4d_error *err)
{
    MPI_Comm node;
    int local_rank, local_size;
    MPI_Comm_split_type(c->options.comm, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_size(node, &local_size);
    int rc = s4d_cuda_agree(c, choose(c, local_rank, err), err);
    if (!rc) {
        char *all = s4d_malloc((size_t)local_size * PCI_TEXT);
        MPI_Allgather(c->pci, PCI_TEXT, MPI_CHAR, all, PCI_TEXT, MPI_CHAR, node);
        rc = s4d_cuda_agree(c, check_apart(all, local_rank, local_size, err), err);
        free(all);
    }
    MPI_Comm_free(&node);
    return rc;
}
