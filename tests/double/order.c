/* SPDX-License-Identifier: Apache-2.0 */
/* Streams.
 *
 * An item runs in a turn: some call of the host. How many run in one, and of which streams, is
 * drawn anew every while: none for long, one by one, or all that can; always from streams in an
 * order of preference that holds for that while, so that one stream runs far ahead of another
 * unless an event holds it. Whatever CUDA allows may so come about, and what it does not never
 * does. Streams of one queue of the GPU (CUDA_DEVICE_MAX_CONNECTIONS) run in the order of the
 * host's calls. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/double/order.h"

/* What a stream holds before a call that adds to it blocks: NVIDIA's forum has 1022 launches. */
enum { QUEUE = 1022 };
/* A host that waits asks so often, and hears nothing new: some ten times for every stream's event.
 */
enum { WAITS = 256 };

struct item {
    struct item *next;
    bool (*step)(void *data);
    void *data;
    uint64_t number; /* of all items ever */
};

static cudaStream_t *streams;
static int n_streams, cap_streams, n_created;
static uint64_t n_items;
static uint64_t state;
static bool running, went_on;
static cudaStream_t sleeper; /* NULL: none does */
static int sleep_left;
static cudaError_t broken;
static int current;            /* device */
static cudaStream_t turns_for; /* whose head runs */
static cudaStream_t late;      /* is held; NULL: none is */
static bool due;               /* and was */
static int idle;               /* questions since anything was new */
static bool wanting;           /* something goes on when a message comes */
static int waited,
    unlooked; /* turns: of questions since anything moved; since messages were taken */

static struct {
    enum { LAZY, ONE, ALL } mode;
    struct s4d_double_order order;
} season;

uint64_t s4d_double_draw(uint64_t below)
{
    uint64_t z = state += 0x9e3779b97f4a7c15; /* splitmix64 (Steele, Lea, Flood 2014) */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

static void seed(void)
{
    state =
        (uint64_t)s4d_double_setting("S4D_DOUBLE_SEED", 1) * 1000003 + (uint64_t)s4d_double_rank();
    season.order.left = 0;
    sleep_left = 0;
    late = NULL;
    due = false;
    s4d_double_lose_anew();
}

void s4d_double_break(cudaError_t error, const char *why)
{
    if (broken == cudaSuccess)
        fprintf(stderr, "the double of CUDA, rank %d: %s\n", s4d_double_rank(), why);
    broken = error;
}

void s4d_double_mend(void)
{
    s4d_double_finish_all();
    broken = cudaSuccess;
    s4d_double_live = (struct s4d_double_live){0};
}

cudaError_t s4d_double_broken(void)
{
    return broken;
}

bool s4d_double_in_work(void)
{
    return running;
}

bool s4d_double_is_stream(cudaStream_t stream)
{
    for (int i = 0; i < n_streams; i++)
        if (streams[i] == stream)
            return stream->live;
    return false;
}

void s4d_double_append(cudaStream_t s, bool (*step)(void *data), const void *data, size_t bytes)
{
    if (s->capture) {
        s4d_double_capture(s, step, data, bytes, NULL);
        return;
    }
    struct item *item = s4d_malloc(sizeof *item);
    *item = (struct item){NULL, step, s4d_malloc(bytes), ++n_items};
    memcpy(item->data, data, bytes);
    *s->tail = item;
    s->tail = &item->next;
    s->used = true;
    idle = 0;
    if (++s->appended - s->done > QUEUE)
        s4d_double_refuse("a stream", "so much at a time that a call would block in the driver");
}

bool s4d_double_has(s4d_double_is is, const void *of)
{
    for (int i = 0; i < n_streams; i++)
        for (const struct item *item = streams[i]->head; item; item = item->next)
            if (is(item->step, item->data, of) ||
                (item->step == s4d_double_launch_step && s4d_double_launch_has(item->data, is, of)))
                return true;
    return false;
}

void s4d_double_awake(void)
{
    waited = 0;
}

void s4d_double_wants(void)
{
    wanting = true;
}

void s4d_double_went_on(void)
{
    went_on = true;
}

/* Whether the head of a stream is done now. */
static bool run_head(cudaStream_t s)
{
    struct item *item = s->head;
    running = true;
    turns_for = s;
    bool done = item->step(item->data);
    running = false;
    if (!done || s == late)
        return false;
    s->head = item->next;
    if (!s->head)
        s->tail = &s->head;
    s->done++;
    idle = 0;
    free(item->data);
    free(item);
    return true;
}

static int divisor(int a, int b)
{
    return b == 0 ? a : divisor(b, a % b);
}

bool s4d_double_hold(struct s4d_double_order *o, int n, int by)
{
    if ((o->left -= by) > 0 && o->n == n)
        return false;
    o->n = n;
    o->left = 1 + (int)s4d_double_draw(800);
    o->first = (int)s4d_double_draw((uint64_t)n);
    do
        o->stride = 1 + (int)s4d_double_draw((uint64_t)n);
    while (divisor(o->stride, n) != 1);
    return true;
}

int s4d_double_ith(const struct s4d_double_order *o, int i, int skew)
{
    return (int)((o->first + skew + (int64_t)i * o->stride) % o->n);
}

int s4d_double_skew(int n)
{
    return s4d_double_draw(8) == 0 ? (int)s4d_double_draw((uint64_t)n) : 0;
}

static void change_sleeper(void)
{
    int first = (int)s4d_double_draw((uint64_t)n_streams);
    bool any = s4d_double_draw(3) > 0;
    sleep_left = 1 + (int)s4d_double_draw(3000);
    sleeper = NULL;
    for (int i = 0; i < n_streams; i++) {
        cudaStream_t s = streams[(first + i) % n_streams];
        if (any && !sleeper && s->used)
            sleeper = s;
        s->used = s->head != NULL;
    }
}

/* Now and then a stream that is in use sleeps, for many seasons: only when no other can go on does
 * it. */
static cudaStream_t sleeper_now(void)
{
    if (--sleep_left <= 0)
        change_sleeper();
    return sleeper && s4d_double_is_stream(sleeper) ? sleeper : NULL;
}

static bool is_held(cudaStream_t s)
{
    if (s == late)
        return true;
    for (int i = 0; i < n_streams; i++)
        if (streams[i]->queue == s->queue && streams[i]->head &&
            streams[i]->head->number < s->head->number)
            return true;
    return false;
}

static bool run_of(cudaStream_t s)
{
    went_on = false;
    return s->head && !is_held(s) && (run_head(s) || went_on);
}

/* The first stream, in the season's order, whose head can be done, or a part of it. */
static bool run_one(void)
{
    int skew = s4d_double_skew(n_streams);
    cudaStream_t asleep = sleeper_now();
    for (int i = 0; i < n_streams; i++) {
        cudaStream_t s = streams[s4d_double_ith(&season.order, i, skew)];
        if (s != asleep && run_of(s))
            return true;
    }
    return asleep && run_of(asleep);
}

bool s4d_double_hold_stream(void)
{
    if (!running || turns_for->head->step == s4d_double_launch_step)
        s4d_double_refuse("S4D_DOUBLE_FAIL", "late, of what is no work in a stream of its own");
    late = turns_for;
    return false;
}

bool s4d_double_is_held(void)
{
    return late && late == turns_for;
}

bool s4d_double_is_due(void)
{
    return due && running;
}

/* Whether no stream goes on before the one that is held does. A collective may: its peers come when
 * they come. */
static bool all_wait(void)
{
    for (int i = 0; i < n_streams; i++)
        if (streams[i]->head && !is_held(streams[i]) && streams[i]->head->step != s4d_double_wait)
            return false;
    return true;
}

void s4d_double_new(void)
{
    idle = 0;
}

/* A host that goes on asks once between two calls that append; one that waits asks for ever. */
static void let_late_fail(void)
{
    if (!late || ++idle <= WAITS || !all_wait())
        return;
    late = NULL;
    due = true;
}

/* A host that only asks, about many streams, while nothing moves, waits for a message. */
static void take_messages(enum s4d_double_call call)
{
    enum { PATIENCE = 12, EVERY = 16 };
    bool asks = call == S4D_DOUBLE_ASKS;
    waited += asks;
    if (waited > PATIENCE && asks && wanting)
        s4d_double_sleep();
    else if (++unlooked < EVERY && !(asks && waited == 2))
        return;
    unlooked = 0;
    wanting = false;
    if (s4d_double_exchange())
        waited = 0;
}

void s4d_double_turn(enum s4d_double_call call)
{
    if (running)
        return;
    take_messages(call);
    if (n_streams == 0)
        return;
    if (s4d_double_hold(&season.order, n_streams, call == S4D_DOUBLE_ASKS ? 20 : 1))
        season.mode = (int)s4d_double_draw(3);
    int most = season.mode == ALL ? 256 : season.mode == ONE || call == S4D_DOUBLE_ASKS;
    while (most-- > 0 && run_one())
        waited = 0;
    if (call == S4D_DOUBLE_ASKS)
        let_late_fail();
}

static bool all_empty(void)
{
    for (int i = 0; i < n_streams; i++)
        if (streams[i]->head)
            return false;
    return true;
}

void s4d_double_finish_all(void)
{
    while (!all_empty()) {
        uint64_t before = 0, after = 0;
        for (int i = 0; i < n_streams; i++)
            before += streams[i]->done;
        s4d_double_turn(S4D_DOUBLE_ASKS);
        for (int i = 0; i < n_streams; i++)
            after += streams[i]->done;
        if (before == after)
            sched_yield();
    }
}

/* ---- the calls ---- */

cudaError_t cudaSetDevice(int device)
{
    seed();
    S4D_DOUBLE_ENTER("cudaSetDevice", cudaErrorInvalidDevice);
    if (device < 0 || device >= s4d_double_gpus())
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

int s4d_double_device(void)
{
    return current;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    S4D_DOUBLE_ENTER("cudaDeviceGetStreamPriorityRange", cudaErrorUnknown);
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    S4D_DOUBLE_ENTER("cudaStreamCreateWithPriority", cudaErrorUnknown);
    if (flags != cudaStreamNonBlocking)
        s4d_double_refuse("cudaStreamCreateWithPriority", "a stream that waits for the legacy one");
    (void)priority; /* a hint, and all orders are tried */
    *stream = s4d_calloc(1, sizeof **stream);
    (*stream)->tail = &(*stream)->head;
    (*stream)->live = true;
    int queues = (int)s4d_double_setting("CUDA_DEVICE_MAX_CONNECTIONS", 8);
    (*stream)->queue = n_created++ % (queues < 1 ? 1 : queues < 32 ? queues : 32);
    for (int i = 0; i < n_streams; i++)
        if (streams[i]->live && streams[i]->queue == (*stream)->queue)
            s4d_double_fails("shared-queue"); /* counts it, for S4D_DOUBLE_CALLS */
    s4d_double_live.streams++;
    s4d_push(streams, n_streams, cap_streams, *stream);
    return cudaSuccess;
}

/* "Returns immediately", and what is in the stream is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaStreamDestroy", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    s4d_double_capture_leave(stream);
    stream->live = false;
    s4d_double_live.streams--;
    for (int i = n_streams - 1; i >= 0; i--)
        if (!streams[i]->live && !streams[i]->head)
            streams[i] = streams[--n_streams];
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaStreamSynchronize", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (stream->capture)
        return s4d_double_unsafe();
    for (uint64_t before; stream->head && !broken;) {
        before = stream->done;
        s4d_double_turn(S4D_DOUBLE_ASKS);
        if (stream->done == before)
            sched_yield();
    }
    return broken;
}
