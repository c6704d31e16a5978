/* SPDX-License-Identifier: Apache-2.0 */
/* Events. What one stands for is its latest record: a moment, which comes when all before it in its
 * stream, or in its graph, is done. In a capture it stands for the nodes before it, and nobody
 * outside of the capture may ask for it. */
#include <stdlib.h>
#include <time.h>

#include "support/memory.h"
#include "tests/double/order.h"

static cudaEvent_t *events; /* all, so that none is lost */
static int n_events, cap_events;
static bool left_behind; /* cudaErrorNotReady, as the thread's last error */
static int64_t ticks;    /* of 1/1024 ms: floats of milliseconds are exact */

static void tick(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = t.tv_sec * 1024000 + t.tv_nsec / 1000 * 1024 / 1000;
    ticks = now > ticks ? now : ticks + 1;
}

static struct s4d_double_moment *use(struct s4d_double_moment *m)
{
    if (m)
        m->users++;
    return m;
}

static void drop(struct s4d_double_moment *m)
{
    if (m && --m->users == 0)
        free(m);
}

struct s4d_double_moment *s4d_double_expect(cudaEvent_t event)
{
    struct s4d_double_moment *m = s4d_calloc(1, sizeof *m);
    drop(event->latest);
    event->latest = use(m);
    event->captured = NULL;
    return use(m);
}

bool s4d_double_come(void *data)
{
    struct s4d_double_moment *m = *(struct s4d_double_moment **)data;
    tick();
    m->came = true;
    m->ticks = ticks;
    drop(m);
    return true;
}

static bool has_come(const struct s4d_double_moment *m)
{
    return !m || m->came;
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

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaEventRecord", cudaErrorUnknown);
    if (!is_event(event) || !s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    S4D_DOUBLE_NOT_INVALID(stream);
    if (stream->capture) {
        s4d_double_capture_record(stream, event);
        return cudaSuccess;
    }
    struct s4d_double_moment *m = s4d_double_expect(event);
    s4d_double_append(stream, s4d_double_come, &m, sizeof m);
    return cudaSuccess;
}

/* "This flag is invalid outside of stream capture." */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    S4D_DOUBLE_ENTER("cudaEventRecordWithFlags", cudaErrorUnknown);
    if (!is_event(event) || !s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (flags != cudaEventRecordExternal)
        s4d_double_refuse("cudaEventRecordWithFlags", "other flags than cudaEventRecordExternal");
    S4D_DOUBLE_NOT_INVALID(stream);
    if (!stream->capture)
        return cudaErrorInvalidValue;
    if (event->captured)
        s4d_double_refuse("cudaEventRecordWithFlags",
                          "an event last recorded inside of a capture: nothing says that a launch "
                          "makes it one that may be asked for");
    s4d_double_capture(stream, s4d_double_come, NULL, 0, event);
    return cudaSuccess;
}

bool s4d_double_wait(void *data)
{
    struct s4d_double_moment *m = *(struct s4d_double_moment **)data;
    if (!has_come(m))
        return false;
    drop(m);
    return true;
}

/* What the event stands for now is waited for, whatever is recorded in it later. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    S4D_DOUBLE_ENTER("cudaStreamWaitEvent", cudaErrorUnknown);
    if (!is_event(event) || !s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (flags != 0)
        s4d_double_refuse("cudaStreamWaitEvent", "flags");
    S4D_DOUBLE_NOT_INVALID(stream);
    const char *kind = s4d_double_is_origin(stream)               ? "join"
                       : event->latest && event->latest->of_graph ? "outside"
                       : stream->launches && !stream->capture     ? "launch"
                                                                  : "other";
    if (s4d_double_loses(kind))
        return cudaSuccess;
    if (stream->capture || event->captured)
        return s4d_double_capture_wait(stream, event);
    struct s4d_double_moment *m = use(event->latest);
    s4d_double_append(stream, s4d_double_wait, &m, sizeof m);
    return cudaSuccess;
}

/* While this thread captures no event may be asked for, one of the capture never. */
cudaError_t cudaEventQuery(cudaEvent_t event)
{
    s4d_double_turn(S4D_DOUBLE_ASKS);
    S4D_DOUBLE_ENTER("cudaEventQuery", cudaErrorUnknown);
    if (!is_event(event))
        return cudaErrorInvalidResourceHandle;
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    if (event->captured)
        return cudaErrorCapturedEvent;
    if (has_come(event->latest)) {
        s4d_double_new();
        return cudaSuccess;
    }
    left_behind = true;
    return cudaErrorNotReady;
}

/* Of the errors that are not the device's for good, only that of a question goes unnoticed. */
cudaError_t cudaGetLastError(void)
{
    if (s4d_double_in_work())
        s4d_double_refuse("cudaGetLastError", "a host function may not call CUDA");
    cudaError_t last = left_behind ? cudaErrorNotReady : cudaSuccess;
    left_behind = false;
    return s4d_double_broken() ? s4d_double_broken() : last;
}

bool s4d_double_left_behind(void)
{
    return left_behind;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    S4D_DOUBLE_ENTER("cudaEventElapsedTime", cudaErrorUnknown);
    if (!is_event(start) || !is_event(end))
        return cudaErrorInvalidResourceHandle;
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    if (start->captured || end->captured)
        return cudaErrorInvalidValue;
    if (!start->latest || !end->latest)
        return cudaErrorInvalidResourceHandle;
    if (!start->latest->came || !end->latest->came)
        return cudaErrorNotReady;
    *ms = (float)(end->latest->ticks - start->latest->ticks) / 1024;
    return cudaSuccess;
}
