/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events.
 *
 * An item runs in a turn: some call of the host. How many run in one, and of which streams, is
 * drawn anew every while: none for long, one by one, or all that can; always from streams in an
 * order of preference that holds for that while, so that one stream runs far ahead of another
 * unless an event holds it. Whatever CUDA allows may so come about, and what it does not never
 * does. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/memory.h"
#include "tests/double/double.h"

struct item {
    struct item *next;
    bool (*step)(void *data);
    void *data;
};

/* A handle that CUDA hands out is an address here, never used again after it was destroyed. */
struct CUstream_st {
    struct item *head, **tail;
    uint64_t appended, done;
    bool live;
};
struct CUevent_st {
    cudaStream_t stream; /* of the latest record; NULL: none */
    uint64_t number;     /* of it there */
    int64_t ticks;       /* when it came */
    bool live;
};

static cudaStream_t *streams;
static cudaEvent_t *events;
static int n_streams, cap_streams, n_events, cap_events;
static uint64_t state;
static int64_t ticks; /* of 1/1024 ms: floats of milliseconds are exact */
static bool running;
static cudaError_t broken;
static int current; /* device */

static struct {
    enum { LAZY, ONE, ALL } mode;
    int left, first, stride;
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
    season.left = 0;
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

static void tick(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = t.tv_sec * 1024000 + t.tv_nsec / 1000 * 1024 / 1000;
    ticks = now > ticks ? now : ticks + 1;
}

void s4d_double_append(cudaStream_t s, bool (*step)(void *data), void *data)
{
    struct item *item = s4d_malloc(sizeof *item);
    *item = (struct item){NULL, step, data};
    *s->tail = item;
    s->tail = &item->next;
    s->appended++;
}

/* Whether the head of a stream is done now. */
static bool run_head(cudaStream_t s)
{
    struct item *item = s->head;
    running = true;
    bool done = item->step(item->data);
    running = false;
    if (!done)
        return false;
    s->head = item->next;
    if (!s->head)
        s->tail = &s->head;
    s->done++;
    free(item->data);
    free(item);
    return true;
}

/* The first stream, in the season's order, whose head can be done. */
static bool run_one(void)
{
    int skew = s4d_double_draw(8) == 0 ? (int)s4d_double_draw((uint64_t)n_streams) : 0;
    for (int i = 0; i < n_streams; i++) {
        cudaStream_t s = streams[(season.first + skew + (int64_t)i * season.stride) % n_streams];
        if (s->head && run_head(s))
            return true;
    }
    return false;
}

static int divisor(int a, int b)
{
    return b == 0 ? a : divisor(b, a % b);
}

static void change_season(void)
{
    season.mode = (int)s4d_double_draw(3);
    season.left = 1 + (int)s4d_double_draw(800);
    season.first = (int)s4d_double_draw((uint64_t)n_streams);
    do
        season.stride = 1 + (int)s4d_double_draw((uint64_t)n_streams);
    while (divisor(season.stride, n_streams) != 1);
}

void s4d_double_turn(enum s4d_double_call call)
{
    if (running || n_streams == 0)
        return;
    s4d_double_exchange();
    if ((season.left -= call == S4D_DOUBLE_ASKS ? 20 : 1) <= 0)
        change_season();
    int most = season.mode == ALL ? 256 : season.mode == ONE || call == S4D_DOUBLE_ASKS;
    while (most-- > 0 && run_one())
        continue;
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
    s4d_double_live.streams++;
    s4d_push(streams, n_streams, cap_streams, *stream);
    season.left = 0; /* its order is of another number of streams */
    return cudaSuccess;
}

/* "Returns immediately", and what is in the stream is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaStreamDestroy", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    stream->live = false;
    s4d_double_live.streams--;
    for (int i = n_streams - 1; i >= 0; i--)
        if (!streams[i]->live && !streams[i]->head)
            streams[i] = streams[--n_streams];
    season.left = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaStreamSynchronize", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    for (uint64_t before; stream->head && !broken;) {
        before = stream->done;
        s4d_double_turn(S4D_DOUBLE_ASKS);
        if (stream->done == before)
            sched_yield();
    }
    return broken;
}

static bool is_event(cudaEvent_t event)
{
    return event && event->live;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    S4D_DOUBLE_ENTER("cudaEventCreateWithFlags", cudaErrorUnknown);
    if (flags != cudaEventDefault)
        s4d_double_refuse("cudaEventCreateWithFlags", "flags");
    *event = s4d_calloc(1, sizeof **event);
    (*event)->live = true;
    s4d_double_live.events++;
    s4d_push(events, n_events, cap_events, *event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    S4D_DOUBLE_ENTER("cudaEventDestroy", cudaErrorUnknown);
    if (!is_event(event))
        return cudaErrorInvalidResourceHandle;
    event->live = false;
    s4d_double_live.events--;
    return cudaSuccess;
}

struct record {
    cudaEvent_t event;
    cudaStream_t stream;
    uint64_t number;
};

static bool record(void *data)
{
    const struct record *r = data;
    tick();
    if (r->event->stream == r->stream && r->event->number == r->number)
        r->event->ticks = ticks;
    return true;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaEventRecord", cudaErrorUnknown);
    if (!is_event(event) || !s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    struct record *r = s4d_malloc(sizeof *r);
    event->stream = stream;
    event->number = stream->appended + 1;
    *r = (struct record){event, stream, event->number};
    s4d_double_append(stream, record, r);
    return cudaSuccess;
}

static bool has_come(const struct record *r)
{
    return !r->stream || r->stream->done >= r->number;
}

static bool wait_for(void *data)
{
    return has_come(data);
}

/* What the event stands for now is waited for, whatever is recorded in it later. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    S4D_DOUBLE_ENTER("cudaStreamWaitEvent", cudaErrorUnknown);
    if (!is_event(event) || !s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (flags != 0)
        s4d_double_refuse("cudaStreamWaitEvent", "flags");
    struct record *r = s4d_malloc(sizeof *r);
    *r = (struct record){event, event->stream, event->number};
    s4d_double_append(stream, wait_for, r);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    s4d_double_turn(S4D_DOUBLE_ASKS);
    S4D_DOUBLE_ENTER("cudaEventQuery", cudaErrorUnknown);
    if (!is_event(event))
        return cudaErrorInvalidResourceHandle;
    return has_come(&(struct record){event, event->stream, event->number}) ? cudaSuccess
                                                                           : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    S4D_DOUBLE_ENTER("cudaEventElapsedTime", cudaErrorUnknown);
    if (!is_event(start) || !is_event(end) || !start->stream || !end->stream)
        return cudaErrorInvalidResourceHandle;
    if (!has_come(&(struct record){start, start->stream, start->number}) ||
        !has_come(&(struct record){end, end->stream, end->number}))
        return cudaErrorNotReady;
    *ms = (float)(end->ticks - start->ticks) / 1024;
    return cudaSuccess;
}
