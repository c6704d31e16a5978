/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device: its entries in the device interface, and how it opens and closes. */
#include "real/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

/* How an entry ends. */
static int ended(struct s4d_cuda *c, int rc, struct s4d_error *err)
{
    if (rc)
        s4d_cuda_explain(c, err);
    return rc ? -1 : 0;
}

static int allocate(void *self, enum s4d_place place, int64_t bytes, void **memory,
                    struct s4d_error *err)
{
    return ended(self, s4d_cuda_allocate(self, place, bytes, memory, err), err);
}

static int upload(void *self, const struct s4d_buffer *to, const void *from, struct s4d_error *err)
{
    return ended(self, s4d_cuda_upload(self, to, from, err), err);
}

static int download(void *self, const struct s4d_buffer *from, void *to, struct s4d_error *err)
{
    return ended(self, s4d_cuda_download(self, from, to, err), err);
}

/* An error of a wait is told by the next op, which is about to be enqueued. */
static void wait_for(void *self, enum s4d_stream stream, enum s4d_stream other, int64_t count)
{
    struct s4d_cuda *c = self;
    if (!atomic_load(&c->task_failed) && s4d_cuda_wait(c, stream, other, count, &c->wait_error))
        c->wait_failed = true;
}

static int begin(void *self, int iteration, struct s4d_error *err)
{
    return ended(self, s4d_cuda_graph_begin(self, iteration, err), err);
}

/* Of a wait after the last op nobody else would tell. */
static int end(void *self, int iteration, struct s4d_error *err)
{
    struct s4d_cuda *c = self;
    (void)iteration;
    if (c->wait_failed && err)
        *err = c->wait_error;
    return ended(c, c->wait_failed || s4d_cuda_graph_end(c, err), err);
}

static int enqueue(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item item,
                   s4d_cuda_append append, struct s4d_error *err)
{
    if (c->wait_failed) {
        if (err)
            *err = c->wait_error;
        s4d_cuda_name_op(c, item.call, item.iteration, err);
        return ended(c, -1, err);
    }
    return ended(c, s4d_cuda_enqueue(c, stream, item, append, err), err);
}

static int append_compute(struct s4d_cuda *c, const struct s4d_cuda_item *item,
                          struct s4d_error *err)
{
    return s4d_cuda_compute(c, item->call, err);
}

static int compute(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    struct s4d_cuda_item item = {.call = call, .n = 1, .iteration = iteration};
    return enqueue(self, call->op->stream, item, append_compute, err);
}

static int append_post(struct s4d_cuda *c, const struct s4d_cuda_item *item, struct s4d_error *err)
{
    return s4d_cuda_post(c, item->call, item->n, err);
}

static int post(void *self, const struct s4d_call *calls, int n, int iteration,
                struct s4d_error *err)
{
    struct s4d_cuda_item item = {.call = calls, .n = n, .iteration = iteration};
    return enqueue(self, calls->op->stream, item, append_post, err);
}

static int append_copy(struct s4d_cuda *c, const struct s4d_cuda_item *item, struct s4d_error *err)
{
    const struct s4d_buffer *from = &item->call->operand[0], *to = &item->call->operand[1];
    size_t size = (size_t)s4d_type_bytes[from->type], width = (size_t)from->cols * size;
    bool one = from->rows == 1, in = item->call->op->kind == S4D_OP_HOST_TO_DEVICE;
    return S4D_CUDA(err, cudaMemcpy2DAsync, to->data, one ? width : (size_t)to->stride * size,
                    from->data, one ? width : (size_t)from->stride * size, width,
                    (size_t)from->rows, in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                    c->streams[item->call->op->stream].stream);
}

static int copy(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    struct s4d_cuda_item item = {.call = call, .n = 1, .iteration = iteration};
    S4D_ASSERT(call->operand[0].rows == call->operand[1].rows &&
                   call->operand[0].cols == call->operand[1].cols,
               "a copy between two shapes");
    return enqueue(self, call->op->stream, item, append_copy, err);
}

/* Reading tokens, in a thread of CUDA's, when the stream gets there: after a failure perhaps when
 * the device is closed, and nobody keeps the call. */
struct task {
    struct s4d_cuda *c;
    struct s4d_buffer to;
    int64_t first; /* sequence */
};

static int read_tokens(const struct task *t, struct s4d_error *err)
{
    const struct s4d_token_source *tokens = &t->c->options.tokens;
    for (int64_t row = 0; row < t->to.rows; row++)
        if (tokens->sequence(tokens->self, t->first + row,
                             (int32_t *)t->to.data + row * t->to.stride, err))
            return -1;
    return 0;
}

static void CUDART_CB run_task(void *data)
{
    struct task *t = data;
    if (!atomic_load(&t->c->task_failed) && read_tokens(t, &t->c->task_error))
        atomic_store(&t->c->task_failed, true);
    free(t);
}

static int append_task(struct s4d_cuda *c, const struct s4d_cuda_item *item, struct s4d_error *err)
{
    const struct s4d_call *call = item->call;
    int64_t first = s4d_expr_value(&call->op->c.read_tokens.first, call->coordinate);
    int64_t batch = c->program->options.global_batch;
    struct task *t = s4d_malloc(sizeof *t);
    *t = (struct task){c, call->operand[0], item->iteration * batch + first};
    int rc =
        S4D_CUDA(err, cudaLaunchHostFunc, c->streams[item->call->op->stream].stream, run_task, t);
    if (rc)
        free(t);
    return rc;
}

static int host_task(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    struct s4d_cuda_item item = {.call = call, .n = 1, .iteration = iteration};
    return enqueue(self, call->op->stream, item, append_task, err);
}

static int mark(void *self, enum s4d_stream stream, double *t_s, struct s4d_error *err)
{
    struct s4d_cuda_item item = {.t_s = t_s};
    return enqueue(self, stream, item, NULL, err);
}

static int append_report(struct s4d_cuda *c, const struct s4d_cuda_item *item,
                         struct s4d_error *err)
{
    size_t size = (size_t)s4d_type_bytes[item->type];
    return S4D_CUDA(err, cudaMemcpy2DAsync, &c->slots[item->slot], size, item->scalar->data, size,
                    size, 1, cudaMemcpyDeviceToHost, c->streams[item->stream].stream);
}

static int report(void *self, enum s4d_stream stream, const struct s4d_buffer *scalar,
                  double *value, struct s4d_error *err)
{
    struct s4d_cuda_item item = {
        .stream = stream, .value = value, .scalar = scalar, .type = scalar->type};
    return enqueue(self, stream, item, append_report, err);
}

static int finish(void *self, struct s4d_error *err)
{
    return ended(self, s4d_cuda_drain(self, err), err);
}

static double now_s(void *self)
{
    return s4d_cuda_now_s(self);
}

static void close_cuda(void *self)
{
    struct s4d_cuda *c = self;
    s4d_cuda_graphs_close(c);
    s4d_cuda_groups_close(c); /* an abort lets the streams end */
    s4d_cuda_compute_close(c);
    s4d_cuda_streams_close(c);
    s4d_cuda_memory_close(c);
    free(c);
}

static void set_entries(struct s4d_device *device, struct s4d_cuda *c)
{
    *device = (struct s4d_device){
        .name = "cuda",
        .self = c,
        .allocate = allocate,
        .upload = upload,
        .download = download,
        .begin = begin,
        .end = end,
        .wait = wait_for,
        .gemm = compute,
        .kernel = compute,
        .copy = copy,
        .host_task = host_task,
        .post = post,
        .mark = mark,
        .report = report,
        .finish = finish,
        .now_s = now_s,
        .close = close_cuda,
    };
}

int s4d_cuda_open(struct s4d_device *device, const struct s4d_program *program,
                  const struct s4d_cuda_options *options, struct s4d_error *err)
{
    struct s4d_cuda *c = s4d_calloc(1, sizeof *c);
    struct s4d_error unwanted;
    err = err ? err : &unwanted;
    c->program = program;
    c->options = *options;
    c->device = device;
    MPI_Comm_rank(options->comm, &c->rank);
    MPI_Comm_size(options->comm, &c->size);
    s4d_position_init(&c->position, program, c->rank);
    set_entries(device, c);
    if (s4d_cuda_select(c, err)) {
        free(c);
        return -1;
    }
    int rc = s4d_cuda_memory_open(c, err) || s4d_cuda_streams_open(c, err) ||
             s4d_cuda_graphs_open(c, err) || s4d_cuda_compute_open(c, err);
    rc = s4d_cuda_agree(c, rc ? -1 : 0, err);
    if (!rc)
        rc = s4d_cuda_tune(c, err);
    if (!rc)
        rc = s4d_cuda_agree(c, s4d_cuda_compute_plan(c, err), err);
    if (!rc)
        rc = s4d_cuda_groups_open(c, err);
    if (rc == S4D_BACKEND_ALONE)
        return rc;
    /* One zero of time for all ranks; on several nodes it is off by the barrier's skew. */
    MPI_Barrier(options->comm);
    double zero_s = s4d_cuda_now_s(c);
    c->origin_s += zero_s;
    c->base_s -= zero_s;
    c->polled_s = c->asked_nccl_s = 0;
    if (rc) {
        c->failed = true;
        close_cuda(c);
    }
    return rc;
}

void s4d_cuda_describe(const struct s4d_device *device, char *text, int size)
{
    const struct s4d_cuda *c = device->self;
    s4d_position_describe(&c->position, text, size);
    int n = (int)strlen(text);
    if (atomic_load(&c->has_launched))
        snprintf(text + n, (size_t)(size - n), ", or a later op of the same CUDA graph");
}

int64_t s4d_cuda_completed(const struct s4d_device *device)
{
    return s4d_position_completed(&((const struct s4d_cuda *)device->self)->position);
}

const struct s4d_gemm_choices *s4d_cuda_choices(const struct s4d_device *device)
{
    return &((const struct s4d_cuda *)device->self)->choices;
}

/* "12.8", or that it is not known and the library's words. */
static const char *cuda_version(char *text, size_t size)
{
    struct s4d_error err;
    int v = 0;
    if (S4D_CUDA(&err, cudaRuntimeGetVersion, &v))
        snprintf(text, size, "unknown (%.*s: %.120s)", 40, err.where, err.text);
    else
        snprintf(text, size, "%d.%d", v / 1000, v % 1000 / 10);
    return text;
}

static const char *nccl_version(char *text, size_t size)
{
    struct s4d_error err;
    int v = 0;
    if (S4D_NCCL(&err, NULL, ncclGetVersion, &v))
        snprintf(text, size, "unknown (%.*s: %.120s)", 40, err.where, err.text);
    else
        snprintf(text, size, "%d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
    return text;
}

const char *s4d_cuda_libraries(void)
{
    static char text[512];
    char cuda[200], nccl[200];
    snprintf(text, sizeof text, "CUDA %s, NCCL %s, cuBLAS %d.%d", cuda_version(cuda, sizeof cuda),
             nccl_version(nccl, sizeof nccl), CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR);
    return text;
}
