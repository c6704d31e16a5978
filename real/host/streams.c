/* SPDX-License-Identifier: Apache-2.0 */
/* The host's streams: queues whose heads start when their waits are met, counters of completed ops,
 * and polling. */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "real/host/internal.h"
#include "real/yields.h"
#include "support/memory.h"

double s4d_host_now_s(const struct s4d_host *h)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - h->origin_s;
}

static struct s4d_host_item *head_of(struct s4d_host *h, int stream)
{
    struct s4d_host_stream *s = &h->streams[stream];
    return s->head < s->n ? &s->items[s->head] : NULL;
}

static bool waits_met(const struct s4d_host *h, const struct s4d_host_item *item)
{
    for (int i = 0; i < S4D_STREAMS; i++)
        if (atomic_load_explicit(&h->position.done[i], memory_order_acquire) < item->needed[i])
            return false;
    return true;
}

static void show_head(struct s4d_host *h, int stream)
{
    const struct s4d_host_item *item = head_of(h, stream);
    s4d_position_at(&h->position, stream, item && item->call ? item->call->index : -1,
                    item ? item->iteration : 0);
}

static void pop(struct s4d_host *h, int stream)
{
    struct s4d_host_stream *s = &h->streams[stream];
    if (++s->head == s->n)
        s->head = s->n = 0;
    show_head(h, stream);
}

/* The op at the stream's head, or the batch, has completed. */
static int complete(struct s4d_host *h, int stream, double start_s, struct s4d_error *err)
{
    struct s4d_host_item item = *head_of(h, stream);
    const struct s4d_device_observer *o = &h->device->observer;
    double end_s = o->ran ? s4d_host_now_s(h) : 0;
    int rc = 0;
    for (int i = 0; i < item.n && o->ran && rc == 0; i++)
        rc = o->ran(o->self, item.call + i, item.iteration, start_s, end_s, err);
    pop(h, stream);
    atomic_fetch_add_explicit(&h->position.done[stream], item.n, memory_order_release);
    return rc;
}

static void take_note(struct s4d_host *h, int stream)
{
    const struct s4d_host_item *item = head_of(h, stream);
    if (item->scalar)
        *item->value = item->scalar->type == S4D_F64 ? *(const double *)item->scalar->data
                                                     : *(const float *)item->scalar->data;
    else
        *item->t_s = s4d_host_now_s(h);
    pop(h, stream);
}

static int read_tokens(struct s4d_host *h, const struct s4d_call *call, int iteration,
                       struct s4d_error *err)
{
    const struct s4d_buffer *to = &call->operand[0];
    int64_t first = s4d_expr_value(&call->op->c.read_tokens.first, call->coordinate);
    int64_t batch = h->program->options.global_batch;
    for (int64_t row = 0; row < to->rows; row++)
        if (h->options.tokens.sequence(h->options.tokens.self, iteration * batch + first + row,
                                       (int32_t *)to->data + row * to->stride, err))
            return -1;
    return 0;
}

/* Runs what a thread does itself: a kernel, a copy, reading tokens. */
static int run(struct s4d_host *h, int stream, struct s4d_host_work *work, struct s4d_error *err)
{
    const struct s4d_host_item item = *head_of(h, stream);
    double start_s = h->device->observer.ran ? s4d_host_now_s(h) : 0;
    work->call = item.call;
    if (item.call->op->kind == S4D_OP_READ_TOKENS) {
        if (read_tokens(h, item.call, item.iteration, err))
            return -1;
    } else {
        s4d_host_kernel kernel = h->kernels[item.call->op->kind];
        S4D_ASSERT(kernel, "no kernel for %s", s4d_op_kinds[item.call->op->kind].name);
        kernel(work);
    }
    return complete(h, stream, start_s, err);
}

/* 1: all requests of the post have ended, 0: not yet, -1: one has failed. */
static int has_ended(struct s4d_host_stream *s, const struct s4d_host_item *item,
                     struct s4d_error *err)
{
    for (; s->at < s->n_requests; s->at++) {
        int finished = 0;
        int code = MPI_Test(&s->requests[s->at], &finished, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return s4d_host_mpi_fail(err, code, item->call[s->at].op->label.name);
        if (!finished)
            return 0;
    }
    return 1;
}

/* Moves a stream other than compute as far as it goes; *moved if at all. */
static int advance(struct s4d_host *h, int stream, bool *moved, struct s4d_error *err)
{
    struct s4d_host_stream *s = &h->streams[stream];
    for (struct s4d_host_item *item; (item = head_of(h, stream)) != NULL; *moved = true) {
        if (s->running) {
            int ended = has_ended(s, item, err);
            if (ended <= 0)
                return ended;
            s->running = false;
            if (complete(h, stream, s->start_s, err))
                return -1;
        } else if (!item->call) {
            take_note(h, stream);
        } else if (!waits_met(h, item)) {
            return 0;
        } else if (s4d_communicates(item->call->op->kind)) {
            s->start_s = h->device->observer.ran ? s4d_host_now_s(h) : 0;
            if (s4d_host_post(h, s, item->call, item->n, err))
                return -1;
            s->running = true;
        } else if (run(h, stream, &h->copies, err)) {
            return -1;
        }
    }
    return 0;
}

/* All streams once; at most until `waiting` (NULL: none), a compute op, may start. Who waits gives
 * the processor away, not who polls. */
static int poll(struct s4d_host *h, const struct s4d_host_item *waiting, bool *moved,
                struct s4d_error *err)
{
    bool yields = s4d_mpi_yields(false);
    int rc = 0;
    *moved = false;
    for (int stream = 0; stream < S4D_STREAMS && !rc; stream++) {
        bool idle = stream == S4D_STREAM_COMPUTE || h->streams[stream].head == h->streams[stream].n;
        if (!idle)
            rc = advance(h, stream, moved, err);
        if (!idle && waiting && waits_met(h, waiting))
            break;
    }
    s4d_mpi_yields(yields);
    return rc;
}

/* MPI_Test is no free question (with more ranks than cores it gives the core away), so computing is
 * not interrupted more often than this. Assumed: a tenth of a panel (gemm.inc). */
static const double poll_period_s = 50e-6;

/* A kernel cannot return an error: the next op does. */
void s4d_host_poll_from_kernel(void *self)
{
    struct s4d_host *h = self;
    bool moved;
    double now_s = s4d_host_now_s(h);
    if (h->failed || now_s - h->polled_s < poll_period_s)
        return;
    h->failed = poll(h, NULL, &moved, &h->error) != 0;
    h->polled_s = s4d_host_now_s(h);
}

/* What was just enqueued starts now if it can; nobody is asked whether something has ended. */
static void try_stream(struct s4d_host *h, int stream)
{
    bool moved;
    if (!h->failed && !h->streams[stream].running)
        h->failed = advance(h, stream, &moved, &h->error) != 0;
}

/* What waited for an op of the compute stream. */
static void try_streams(struct s4d_host *h)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (stream != S4D_STREAM_COMPUTE && head_of(h, stream))
            try_stream(h, stream);
}

static int failure(const struct s4d_host *h, struct s4d_error *err)
{
    if (h->failed && err)
        *err = h->error;
    return h->failed ? -1 : 0;
}

static void lock(struct s4d_host *h)
{
    if (h->threaded)
        pthread_mutex_lock(&h->lock);
}

static void unlock(struct s4d_host *h)
{
    if (h->threaded)
        pthread_mutex_unlock(&h->lock);
}

/* The compute thread has nothing to do: it polls itself, also where a thread would (waking one up
 * and being woken by it takes longer than most collectives). Called and left with the lock held. */
static int wait_for_change(struct s4d_host *h, const struct s4d_host_item *waiting, int *idle)
{
    bool moved;
    if (h->failed)
        return -1;
    h->failed = poll(h, waiting, &moved, &h->error) != 0;
    *idle = moved ? 0 : *idle + 1;
    if (*idle > 0) { /* ranks may share cores */
        unlock(h);
        sched_yield();
        lock(h);
    }
    return h->failed ? -1 : 0;
}

static bool in_flight(const struct s4d_host *h)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (h->streams[stream].running)
            return true;
    return false;
}

/* The kernel itself runs without the lock; meanwhile the thread polls, if there is one and a
 * collective is in flight. */
static void run_kernel(struct s4d_host *h, const struct s4d_host_item *item)
{
    s4d_host_kernel kernel = h->kernels[item->call->op->kind];
    S4D_ASSERT(kernel, "no kernel for %s", s4d_op_kinds[item->call->op->kind].name);
    h->work.call = item->call;
    h->computing = true;
    if (h->threaded && in_flight(h))
        pthread_cond_signal(&h->changed);
    unlock(h);
    double start_s = h->device->observer.ran ? s4d_host_now_s(h) : 0;
    kernel(&h->work);
    lock(h);
    h->computing = false;
    h->failed |= complete(h, S4D_STREAM_COMPUTE, start_s, &h->error) != 0;
}

/* Runs the compute stream dry. */
static int run_compute(struct s4d_host *h)
{
    int idle = 0;
    for (struct s4d_host_item *item; (item = head_of(h, S4D_STREAM_COMPUTE)) != NULL;) {
        if (!item->call) {
            take_note(h, S4D_STREAM_COMPUTE);
            continue;
        }
        while (!waits_met(h, item))
            if (wait_for_change(h, item, &idle))
                return -1;
        run_kernel(h, item);
        if (h->failed)
            return -1;
        if (h->threaded)
            try_streams(h);
        else
            s4d_host_poll_from_kernel(h);
    }
    return h->failed ? -1 : 0;
}

int s4d_host_enqueue(struct s4d_host *h, enum s4d_stream stream, struct s4d_host_item item,
                     struct s4d_error *err)
{
    struct s4d_host_stream *s = &h->streams[stream];
    lock(h);
    memcpy(item.needed, s->needed, sizeof item.needed);
    memset(s->needed, 0, sizeof s->needed);
    s4d_push(s->items, s->n, s->cap, item);
    if (s->n - s->head == 1)
        show_head(h, (int)stream);
    if (stream == S4D_STREAM_COMPUTE)
        run_compute(h);
    else
        try_stream(h, (int)stream);
    int rc = failure(h, err);
    unlock(h);
    return rc;
}

static bool all_empty(struct s4d_host *h)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (head_of(h, stream))
            return false;
    return true;
}

int s4d_host_drain(struct s4d_host *h, struct s4d_error *err)
{
    int idle = 0;
    lock(h);
    while (!h->failed && !all_empty(h))
        wait_for_change(h, NULL, &idle);
    int rc = failure(h, err);
    unlock(h);
    return rc;
}

/* Polls while a kernel runs beside a post in flight, sleeps otherwise. */
static void *progress_thread(void *self)
{
    struct s4d_host *h = self;
    pthread_mutex_lock(&h->lock);
    while (!h->stop) {
        if (!h->computing || h->failed || !in_flight(h)) {
            pthread_cond_wait(&h->changed, &h->lock);
            continue;
        }
        bool moved;
        h->failed = poll(h, NULL, &moved, &h->error) != 0;
        pthread_mutex_unlock(&h->lock);
        sched_yield();
        pthread_mutex_lock(&h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

int s4d_host_thread_start(struct s4d_host *h, struct s4d_error *err)
{
    int level;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED) {
        s4d_fail(err, S4D_EXIT_DEVICE, "--progress", "MPI was started without threads");
        return s4d_hint(err, "use --progress panels");
    }
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    h->threaded = true;
    if (pthread_create(&h->thread, NULL, progress_thread, h) == 0)
        return 0;
    h->threaded = false;
    return s4d_fail(err, S4D_EXIT_DEVICE, "--progress", "no thread could be started");
}

void s4d_host_thread_stop(struct s4d_host *h)
{
    if (!h->threaded)
        return;
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    h->threaded = false;
}
