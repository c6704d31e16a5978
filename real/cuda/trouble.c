/* SPDX-License-Identifier: Apache-2.0 */
/* Which op a failure was of.
 *
 * A call tells its own failure. Work that failed on the GPU is told by whatever call comes next, of
 * whichever library, and by all after it: then what had been enqueued and was not seen to complete
 * is what it may have been of. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "real/cuda/internal.h"

void s4d_cuda_say(struct s4d_error *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(err->text + used, sizeof err->text - used, format, ap);
    va_end(ap);
}

static void add_op(const struct s4d_cuda *c, const struct s4d_cuda_at *at, struct s4d_error *err)
{
    char op[256];
    s4d_position_op(c->program, at->call->op, at->call->index, at->iteration, op, sizeof op);
    s4d_cuda_say(err, "%s", op);
}

void s4d_cuda_name_group(const struct s4d_cuda *c, int stream, struct s4d_error *err)
{
    char ranks[200];
    if (!err)
        return;
    s4d_position_ranks(&c->program->grid, c->rank, s4d_streams[stream].axes, ranks, sizeof ranks);
    s4d_cuda_say(err, "; the communicator of stream %s with %s", s4d_streams[stream].name, ranks);
}

static bool is_before(const struct s4d_cuda_at *a, const struct s4d_cuda_at *b)
{
    return a->iteration < b->iteration ||
           (a->iteration == b->iteration && a->call->index < b->call->index);
}

static void include(struct s4d_cuda_at range[2], const struct s4d_cuda_at *at)
{
    if (!range[0].call || is_before(at, &range[0]))
        range[0] = *at;
    if (!range[1].call || is_before(&range[1], at))
        range[1] = *at;
}

/* The first and the last of the ops that are enqueued, or are being, and were not seen to end. */
static void in_flight(const struct s4d_cuda *c, struct s4d_cuda_at range[2])
{
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        const struct s4d_cuda_stream *s = &c->streams[stream];
        for (int i = s->head; i < s->n; i++) {
            const struct s4d_cuda_item *item = &s->items[i];
            if (item->call && !(item->graph && item->graph->state == S4D_CUDA_FILLS))
                for (int k = 0; k < item->n; k++)
                    include(range, &(struct s4d_cuda_at){item->call + k, item->iteration});
        }
    }
    if (c->enqueuing.call)
        include(range, &c->enqueuing);
}

/* Of an event that came long ago only an error of the device can be said. While streams capture no
 * event may be asked for; nothing runs then. */
static cudaError_t device_error(const struct s4d_cuda *c)
{
    bool may = c->base && c->phase != S4D_CUDA_CAPTURES;
    cudaError_t code = may ? s4d_cuda_ask(c->base) : cudaSuccess;
    return code == cudaErrorNotReady ? cudaSuccess : code;
}

void s4d_cuda_name_op(const struct s4d_cuda *c, const struct s4d_call *call, int iteration,
                      struct s4d_error *err)
{
    if (!err || !call || device_error(c) != cudaSuccess) /* of which op s4d_cuda_explain says */
        return;
    s4d_cuda_say(err, "; in ");
    add_op(c, &(struct s4d_cuda_at){call, iteration}, err);
}

void s4d_cuda_say_gpu(const struct s4d_cuda *c, struct s4d_error *err)
{
    cudaError_t code = device_error(c);
    if (err && code != cudaSuccess && !strstr(err->text, cudaGetErrorName(code)))
        s4d_cuda_say(err, "; CUDA: %s (%s)", cudaGetErrorString(code), cudaGetErrorName(code));
}

/* Once for an error: `where` begins with its call. */
void s4d_cuda_explain(struct s4d_cuda *c, struct s4d_error *err)
{
    struct s4d_cuda_at range[2] = {{NULL, 0}, {NULL, 0}};
    cudaError_t code = device_error(c);
    c->failed = true;
    if (code == cudaSuccess || !err || err->exit != S4D_EXIT_DEVICE)
        return;
    s4d_cuda_say_gpu(c, err);
    in_flight(c, range);
    if (!range[0].call) {
        s4d_cuda_say(err, ": an error of the GPU, while no op was in flight");
        s4d_hint(err, "nvidia-smi -q and the kernel's log (Xid) say what the GPU has");
        return;
    }
    bool one = !is_before(&range[0], &range[1]);
    s4d_cuda_say(err, ": an error of work on the GPU, of %s", one ? "" : "an op from ");
    add_op(c, &range[0], err);
    if (!one) {
        s4d_cuda_say(err, " to ");
        add_op(c, &range[1], err);
    }
    if (c->launched)
        s4d_cuda_say(err, ", at or before the launch of %s", c->launched);
    s4d_hint(err, "%scompute-sanitizer names the access, the kernel's log (Xid) what the GPU has",
             one ? "" : "--check-finite completes every op before the next, and so names one; ");
}
