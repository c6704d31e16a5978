/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, and what is in flight: every op ends with an event, which others wait for and
 * which polling asks. */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

/* CUDA's elapsed times are floats of milliseconds: exact to half a microsecond up to this. */
static const double rebase_s = 4;
/* Assumed: a fraction of a short op, so that ends are seen soon; NCCL's errors need no hurry. */
static const double poll_period_s = 50e-6, nccl_period_s = 0.1;

double s4d_cuda_now_s(const struct s4d_cuda *c)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - c->origin_s;
}

int s4d_cuda_take_event(struct s4d_cuda *c, cudaEvent_t *event, struct s4d_error *err)
{
    if (c->n_events > 0) {
        *event = c->events[--c->n_events];
        return 0;
    }
    return S4D_CUDA(err, cudaEventCreateWithFlags, event, cudaEventDefault);
}

void s4d_cuda_give_event(struct s4d_cuda *c, cudaEvent_t event)
{
    if (event)
        s4d_push(c->events, c->n_events, c->cap_events, event);
}

static int elapsed(cudaEvent_t from, cudaEvent_t to, double *t_s, struct s4d_error *err)
{
    float ms = 0;
    int rc = S4D_CUDA(err, cudaEventElapsedTime, &ms, from, to);
    *t_s = 1e-3 * (double)ms;
    return rc;
}

/* When an event came, on the device's clock. */
static int time_of(struct s4d_cuda *c, cudaEvent_t event, double *t_s, struct s4d_error *err)
{
    int rc = elapsed(c->base, event, t_s, err);
    *t_s += c->base_s;
    return rc;
}

int s4d_cuda_rebase(struct s4d_cuda *c, cudaEvent_t *event, struct s4d_error *err)
{
    double t_s;
    if (time_of(c, *event, &t_s, err))
        return -1;
    if (t_s - c->base_s > rebase_s) {
        cudaEvent_t old = c->base;
        c->base = *event;
        c->base_s = t_s;
        *event = old;
    }
    return 0;
}

static int observe(struct s4d_cuda *c, const struct s4d_cuda_item *item, double end_s,
                   struct s4d_error *err)
{
    const struct s4d_device_observer *o = &c->device->observer;
    double ran_s = 0;
    if (!o->ran || !item->start)
        return 0;
    if (elapsed(item->start, item->end, &ran_s, err))
        return -1;
    int rc = 0;
    for (int i = 0; i < item->n && rc == 0; i++)
        rc = o->ran(o->self, item->call + i, item->iteration, end_s - ran_s, end_s, err);
    return rc;
}

static void show_head(struct s4d_cuda *c, int stream)
{
    struct s4d_cuda_stream *s = &c->streams[stream];
    int i = s->head;
    while (i < s->n && !s->items[i].call)
        i++;
    if (i < s->n)
        s4d_position_at(&c->position, stream, s->items[i].call->index, s->items[i].iteration);
    else
        s4d_position_at(&c->position, stream, -1, 0);
}

static int advance(struct s4d_cuda *c, int stream, int64_t count, struct s4d_error *err);

/* What an op that has ended waited for has ended too, and is told before it. 1: it is, 0: a launch
 * that it is part of goes on, -1. */
static int tell_waits_of(struct s4d_cuda *c, const struct s4d_op *op, int iteration,
                         struct s4d_error *err)
{
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *w = &op->waits[i];
        int64_t of = iteration + w->iteration;
        int64_t count = of * c->program->stream_length[w->stream] + w->position + 1;
        if (of < 0)
            continue;
        if (advance(c, w->stream, count, err))
            return -1;
        if (atomic_load(&c->position.done[w->stream]) < count)
            return 0;
    }
    return 1;
}

static int tell_waits(struct s4d_cuda *c, const struct s4d_cuda_item *item, struct s4d_error *err)
{
    int told = 1;
    for (int i = 0; i < item->n && told > 0; i++)
        told = tell_waits_of(c, item->call[i].op, item->iteration, err);
    return told;
}

/* The stream's head has ended. */
static int complete(struct s4d_cuda *c, int stream, struct s4d_error *err)
{
    struct s4d_cuda_stream *s = &c->streams[stream];
    struct s4d_cuda_item item = s->items[s->head];
    double end_s = 0;
    int rc = item.end ? time_of(c, item.end, &end_s, err) : 0;
    if (!rc && item.call)
        rc = observe(c, &item, end_s, err);
    if (item.value) {
        *item.value = item.type == S4D_F64 ? c->slots[item.slot]
                                           : (double)*(const float *)&c->slots[item.slot];
        c->slot_used[item.slot] = item.graph != NULL; /* which keeps it */
    }
    if (item.t_s)
        *item.t_s = end_s;
    if (++s->head == s->n)
        s->head = s->n = 0;
    atomic_fetch_add(&c->position.done[stream], item.n);
    show_head(c, stream);
    if (item.graph)
        return rc;
    if (!rc)
        rc = s4d_cuda_rebase(c, &item.end, err);
    s4d_cuda_give_event(c, item.start);
    s4d_cuda_give_event(c, item.end);
    return rc;
}

/* 1: it has, 0: not yet, -1. */
static int has_ended(const struct s4d_cuda_item *item, struct s4d_error *err)
{
    if (item->graph)
        return item->graph->state == S4D_CUDA_ENDED;
    cudaError_t code = s4d_cuda_ask(item->end);
    if (code == cudaErrorNotReady)
        return 0;
    return s4d_cuda_check("cudaEventQuery", code, err) ? -1 : 1;
}

/* Takes off a stream what has ended, until `count` ops ever have. */
static int advance(struct s4d_cuda *c, int stream, int64_t count, struct s4d_error *err)
{
    struct s4d_cuda_stream *s = &c->streams[stream];
    while (s->head < s->n && atomic_load(&c->position.done[stream]) < count) {
        int ended = has_ended(&s->items[s->head], err);
        if (ended > 0)
            ended = tell_waits(c, &s->items[s->head], err);
        if (ended <= 0)
            return ended;
        if (complete(c, stream, err))
            return -1;
    }
    return 0;
}

/* Takes what has ended off the streams, and asks whether anything has failed. */
int s4d_cuda_poll(struct s4d_cuda *c, struct s4d_error *err)
{
    double now_s = s4d_cuda_now_s(c);
    c->polled_s = now_s;
    if (s4d_cuda_graphs_ask(c, err))
        return -1;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (advance(c, stream, INT64_MAX, err))
            return -1;
    if (atomic_load(&c->task_failed)) {
        if (err)
            *err = c->task_error;
        return -1;
    }
    if (now_s - c->asked_nccl_s < nccl_period_s)
        return 0;
    c->asked_nccl_s = now_s;
    return s4d_cuda_groups_ask(c, err);
}

/* Polls until at most `n` items are in flight on a stream. */
static int wait_until(struct s4d_cuda *c, int stream, int n, struct s4d_error *err)
{
    struct s4d_cuda_stream *s = &c->streams[stream];
    while (s->n - s->head > n) {
        if (s4d_cuda_poll(c, err))
            return -1;
        if (s->n - s->head > n)
            sched_yield(); /* ranks may share cores */
    }
    return 0;
}

int s4d_cuda_drain(struct s4d_cuda *c, struct s4d_error *err)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (wait_until(c, stream, 0, err)) {
            c->failed = true;
            return -1;
        }
    return 0;
}

void s4d_cuda_push(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item *item)
{
    struct s4d_cuda_stream *s = &c->streams[stream];
    if (s->head > s->cap / 2 && s->n == s->cap) { /* room in front */
        for (int i = s->head; i < s->n; i++)
            s->items[i - s->head] = s->items[i];
        s->n -= s->head;
        s->head = 0;
    }
    s->issued += item->n;
    item->number = s->issued;
    s4d_push(s->items, s->n, s->cap, *item);
    if (s->n - s->head == 1)
        show_head(c, (int)stream);
}

/* By itself, between two events. */
static int append_alone(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item *item,
                        s4d_cuda_append append, struct s4d_error *err)
{
    cudaStream_t s = c->streams[stream].stream;
    const struct s4d_cuda_stream *of = &c->streams[stream];
    bool watched = item->call && c->device->observer.ran;
    c->enqueuing = (struct s4d_cuda_at){item->call, item->iteration};
    if (item->call && of->head == of->n) /* a collective may wait for peers here already */
        s4d_position_at(&c->position, (int)stream, item->call->index, item->iteration);
    if ((item->value && s4d_cuda_take_slot(c, &item->slot, err)) ||
        s4d_cuda_take_event(c, &item->end, err) ||
        (watched && s4d_cuda_take_event(c, &item->start, err)) ||
        (watched && S4D_CUDA(err, cudaEventRecord, item->start, s)) ||
        (append && append(c, item, err)) || S4D_CUDA(err, cudaEventRecord, item->end, s)) {
        s4d_cuda_name_op(c, item->call, item->iteration, err);
        s4d_cuda_give_event(c, item->start);
        s4d_cuda_give_event(c, item->end);
        return -1;
    }
    c->enqueuing.call = NULL;
    s4d_cuda_push(c, stream, item);
    return 0;
}

int s4d_cuda_enqueue(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item item,
                     s4d_cuda_append append, struct s4d_error *err)
{
    bool first = c->options.first_alone && item.iteration == 0 && item.call;
    bool inside = s4d_cuda_graph_takes(c, stream);
    int rc = inside ? s4d_cuda_graph_enqueue(c, stream, &item, append, err)
                    : append_alone(c, stream, &item, append, err);
    if (!rc && !inside)
        rc = wait_until(c, (int)stream, c->options.synchronous || first ? 0 : S4D_CUDA_IN_FLIGHT,
                        err);
    if (!rc && c->phase != S4D_CUDA_CAPTURES && s4d_cuda_now_s(c) - c->polled_s > poll_period_s)
        rc = s4d_cuda_poll(c, err);
    c->failed |= rc != 0;
    return rc;
}

/* The first item in flight that is op `count` or a later one. */
static const struct s4d_cuda_item *find(const struct s4d_cuda_stream *s, int64_t count)
{
    int low = s->head, high = s->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->items[middle].number < count)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n ? &s->items[low] : NULL;
}

int s4d_cuda_wait(struct s4d_cuda *c, enum s4d_stream stream, enum s4d_stream other, int64_t count,
                  struct s4d_error *err)
{
    if (stream == other || atomic_load(&c->position.done[other]) >= count)
        return 0;
    const struct s4d_cuda_item *item = find(&c->streams[other], count);
    S4D_ASSERT(item, "a wait for op %lld of a stream that has %lld", (long long)count,
               (long long)c->streams[other].issued);
    if (c->phase != S4D_CUDA_EAGER)
        return s4d_cuda_graph_wait(c, stream, item, err);
    return S4D_CUDA(err, cudaStreamWaitEvent, c->streams[stream].stream, item->end, 0);
}

int s4d_cuda_take_slot(struct s4d_cuda *c, int *slot, struct s4d_error *err)
{
    for (;;) {
        for (int i = 0; i < S4D_CUDA_SLOTS; i++) {
            *slot = (c->next_slot + i) % S4D_CUDA_SLOTS;
            if (c->slot_used[*slot])
                continue;
            c->slot_used[*slot] = true;
            c->next_slot = (*slot + 1) % S4D_CUDA_SLOTS;
            return 0;
        }
        if (s4d_cuda_poll(c, err))
            return -1;
    }
}

/* Collectives and copies before computing: they are short or wait for others, and a GPU that
 * computes leaves them no room otherwise. */
static int open_stream(struct s4d_cuda *c, int stream, struct s4d_error *err)
{
    int least = 0, greatest = 0;
    if (S4D_CUDA(err, cudaDeviceGetStreamPriorityRange, &least, &greatest))
        return -1;
    return S4D_CUDA(err, cudaStreamCreateWithPriority, &c->streams[stream].stream,
                    cudaStreamNonBlocking, stream == S4D_STREAM_COMPUTE ? least : greatest);
}

int s4d_cuda_streams_open(struct s4d_cuda *c, struct s4d_error *err)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (open_stream(c, stream, err))
            return -1;
    if (S4D_CUDA(err, cudaStreamCreateWithPriority, &c->transfer, cudaStreamNonBlocking, 0) ||
        s4d_cuda_take_event(c, &c->base, err) ||
        S4D_CUDA(err, cudaEventRecord, c->base, c->transfer) ||
        S4D_CUDA(err, cudaStreamSynchronize, c->transfer))
        return -1;
    c->base_s = s4d_cuda_now_s(c);
    return 0;
}

void s4d_cuda_streams_close(struct s4d_cuda *c)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        struct s4d_cuda_stream *s = &c->streams[stream];
        for (int i = s->head; i < s->n; i++) {
            if (s->items[i].graph)
                continue;
            s4d_cuda_give_event(c, s->items[i].start);
            s4d_cuda_give_event(c, s->items[i].end);
        }
        free(s->items);
        if (s->stream)
            S4D_CUDA(NULL, cudaStreamDestroy, s->stream);
    }
    s4d_cuda_give_event(c, c->base);
    for (int i = 0; i < c->n_events; i++)
        S4D_CUDA(NULL, cudaEventDestroy, c->events[i]);
    free(c->events);
    if (c->transfer)
        S4D_CUDA(NULL, cudaStreamDestroy, c->transfer);
}
