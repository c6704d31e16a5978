/* SPDX-License-Identifier: Apache-2.0 */
/* The host device: its memory, its entries in the device interface, and what it says of itself. */
#include "real/host/host.h"

#include <stdlib.h>
#include <string.h>

#include "real/host/internal.h"
#include "support/memory.h"

const char *const s4d_progress_names[S4D_PROGRESS_MODES + 1] = {
    [S4D_PROGRESS_PANELS] = "panels",
    [S4D_PROGRESS_THREAD] = "thread",
    [S4D_PROGRESS_NONE] = "none",
    [S4D_PROGRESS_AUTO] = "auto",
};

enum s4d_progress_mode s4d_host_progress(int mode, bool oversubscribed)
{
    if (mode != S4D_PROGRESS_AUTO)
        return (enum s4d_progress_mode)mode;
    return oversubscribed ? S4D_PROGRESS_NONE : S4D_PROGRESS_THREAD;
}

static int allocate(void *self, enum s4d_place place, int64_t bytes, void **memory,
                    struct s4d_error *err)
{
    struct s4d_host *h = self;
    size_t size = ((size_t)bytes + 4095) / 4096 * 4096;
    void *v = size > 0 ? aligned_alloc(4096, size) : aligned_alloc(4096, 4096);
    (void)place; /* all of it is the host's */
    if (!v)
        return s4d_fail(err, S4D_EXIT_DEVICE, "", "no memory for an arena of %lld bytes",
                        (long long)bytes);
    S4D_ASSERT(h->n_memory < 4, "more than four arenas");
    h->memory[h->n_memory++] = memset(v, 0, size > 0 ? size : 4096);
    *memory = v;
    return 0;
}

static int upload(void *self, const struct s4d_buffer *to, const void *from, struct s4d_error *err)
{
    (void)self, (void)err;
    size_t row = (size_t)(to->cols * s4d_type_bytes[to->type]);
    for (int64_t i = 0; i < to->rows; i++)
        memcpy((char *)to->data + i * to->stride * s4d_type_bytes[to->type],
               (const char *)from + (size_t)i * row, row);
    return 0;
}

static int download(void *self, const struct s4d_buffer *from, void *to, struct s4d_error *err)
{
    (void)self, (void)err;
    size_t row = (size_t)(from->cols * s4d_type_bytes[from->type]);
    for (int64_t i = 0; i < from->rows; i++)
        memcpy((char *)to + (size_t)i * row,
               (const char *)from->data + i * from->stride * s4d_type_bytes[from->type], row);
    return 0;
}

static void wait_for(void *self, enum s4d_stream stream, enum s4d_stream other, int64_t count)
{
    struct s4d_host *h = self;
    int64_t *needed = &h->streams[stream].needed[other];
    *needed = count > *needed ? count : *needed;
}

static int enqueue(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    struct s4d_host_item item = {.call = call, .n = 1, .iteration = iteration};
    return s4d_host_enqueue(self, call->op->stream, item, err);
}

static int post(void *self, const struct s4d_call *calls, int n, int iteration,
                struct s4d_error *err)
{
    struct s4d_host_item item = {.call = calls, .n = n, .iteration = iteration};
    return s4d_host_enqueue(self, calls->op->stream, item, err);
}

static int mark(void *self, enum s4d_stream stream, double *t_s, struct s4d_error *err)
{
    struct s4d_host_item item = {.t_s = t_s};
    return s4d_host_enqueue(self, stream, item, err);
}

static int report(void *self, enum s4d_stream stream, const struct s4d_buffer *scalar,
                  double *value, struct s4d_error *err)
{
    struct s4d_host_item item = {.scalar = scalar, .value = value};
    return s4d_host_enqueue(self, stream, item, err);
}

static int finish(void *self, struct s4d_error *err)
{
    return s4d_host_drain(self, err);
}

static double now_s(void *self)
{
    return s4d_host_now_s(self);
}

static void close_host(void *self)
{
    struct s4d_host *h = self;
    s4d_host_thread_stop(h);
    s4d_host_groups_free(h);
    for (int i = 0; i < h->n_memory; i++)
        free(h->memory[i]);
    for (int i = 0; i < S4D_STREAMS; i++) {
        free(h->streams[i].items);
        free(h->streams[i].requests);
    }
    s4d_host_work_free(&h->work);
    s4d_host_work_free(&h->copies);
    free(h);
}

static void set_entries(struct s4d_device *device, struct s4d_host *h)
{
    *device = (struct s4d_device){
        .name = "host",
        .self = h,
        .allocate = allocate,
        .upload = upload,
        .download = download,
        .wait = wait_for,
        .gemm = enqueue,
        .kernel = enqueue,
        .copy = enqueue,
        .host_task = enqueue,
        .post = post,
        .mark = mark,
        .report = report,
        .finish = finish,
        .now_s = now_s,
        .close = close_host,
    };
}

int s4d_host_open(struct s4d_device *device, const struct s4d_program *program,
                  const struct s4d_host_options *options, struct s4d_error *err)
{
    struct s4d_host *h = s4d_calloc(1, sizeof *h);
    h->program = program;
    h->options = *options;
    h->device = device;
    h->kernels =
        program->options.precision == S4D_F64 ? s4d_host_kernels_f64 : s4d_host_kernels_f32;
    /* Alone there is nobody to talk to: panels would cost a twelfth of a matrix product's time. */
    bool talks = s4d_grid_ranks(&program->grid) > 1;
    if (talks && options->progress == S4D_PROGRESS_PANELS) {
        h->work.progress = s4d_host_poll_from_kernel;
        h->work.self = h;
    }
    set_entries(device, h);
    MPI_Comm_rank(options->comm, &h->rank);
    s4d_position_init(&h->position, program, h->rank);
    int rc = s4d_host_groups(h, err);
    if (!rc && talks && options->progress == S4D_PROGRESS_THREAD)
        rc = s4d_host_thread_start(h, err);
    /* One zero of time for all ranks; on several nodes it is off by the barrier's skew. */
    MPI_Barrier(options->comm);
    h->origin_s = s4d_host_now_s(h);
    if (rc)
        close_host(h);
    return rc;
}

int64_t s4d_host_completed(const struct s4d_device *device)
{
    return s4d_position_completed(&((const struct s4d_host *)device->self)->position);
}

void s4d_host_describe(const struct s4d_device *device, char *text, int size)
{
    s4d_position_describe(&((const struct s4d_host *)device->self)->position, text, size);
}
