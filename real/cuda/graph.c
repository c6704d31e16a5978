/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations as CUDA graphs.
 *
 * After the first one, which warms up, two iterations are captured, each into a graph of its own,
 * and from then on the two are launched in turn: one runs while the host reads the other's events
 * and issues it again. In a graph is what all streams do, NCCL's collectives, reports and the
 * events around every op too; they part from the origin, the stream that captures and launches, and
 * come together on it. So iterations follow one another without overlap: waits for the iteration
 * before are met, and what the program lets run on beside the next one does not.
 *
 * The host's stream stays outside. Reading tokens is different work every time, and goes on while
 * the iteration before runs: it waits for what that did by the event in its graph, "[which] each
 * launch of the graph will record" (cudaGraphAddEventRecordNode); a launch waits for all of it.
 *
 * The executor walks the list in every iteration; here a walk costs no call of CUDA's per op. */
#include <sched.h>
#include <stdlib.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

bool s4d_cuda_graph_takes(const struct s4d_cuda *c, enum s4d_stream stream)
{
    return c->phase != S4D_CUDA_EAGER && stream != S4D_STREAM_HOST;
}

/* What streams record for one another while they capture: never such an event that a graph records
 * or that is asked for, as those have no other moment than "in a capture". */
static int take_inner(struct s4d_cuda *c, cudaEvent_t *event, struct s4d_error *err)
{
    if (c->n_inner > 0) {
        *event = c->inner[--c->n_inner];
        return 0;
    }
    return S4D_CUDA(err, cudaEventCreateWithFlags, event, cudaEventDefault);
}

static void give_inner(struct s4d_cuda *c, cudaEvent_t event)
{
    if (event)
        s4d_push(c->inner, c->n_inner, c->cap_inner, event);
}

/* What comes next on `to` is after what is on `from`; in a capture, `to` is then part of it. */
static int follow(struct s4d_cuda *c, cudaStream_t from, cudaStream_t to, struct s4d_error *err)
{
    cudaEvent_t event;
    if (take_inner(c, &event, err))
        return -1;
    int rc = S4D_CUDA(err, cudaEventRecord, event, from) ||
             S4D_CUDA(err, cudaStreamWaitEvent, to, event, 0);
    give_inner(c, event);
    return rc ? -1 : 0;
}

static bool is_inside(const struct s4d_cuda *c, int stream)
{
    return stream != S4D_STREAM_HOST && c->program->stream_length[stream] > 0;
}

/* Nothing may be asked or allocated until the end of it. */
static int start_capture(struct s4d_cuda *c, struct s4d_error *err)
{
    if (S4D_CUDA(err, cudaStreamBeginCapture, c->origin, cudaStreamCaptureModeThreadLocal))
        return -1;
    c->phase = S4D_CUDA_CAPTURES;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (is_inside(c, stream) && follow(c, c->origin, c->streams[stream].stream, err))
            return -1;
    return 0;
}

/* Until the graph's latest launch has ended, and its events have been read. */
static int await(struct s4d_cuda *c, const struct s4d_cuda_graph *g, struct s4d_error *err)
{
    while (g->state == S4D_CUDA_LAUNCHED) {
        if (s4d_cuda_poll(c, err))
            return -1;
        if (g->state == S4D_CUDA_LAUNCHED)
            sched_yield();
    }
    return 0;
}

int s4d_cuda_graph_begin(struct s4d_cuda *c, int iteration, struct s4d_error *err)
{
    struct s4d_cuda_graph *g = &c->graphs[iteration % S4D_CUDA_GRAPHS];
    if (!c->options.graphs || iteration == 0)
        return 0;
    bool known = g->instance != NULL;
    int rc = known ? await(c, g, err) : s4d_cuda_drain(c, err);
    g->state = S4D_CUDA_FILLS;
    g->at = 0;
    c->graph = g;
    c->phase = known ? S4D_CUDA_REPLAYS : S4D_CUDA_EAGER;
    return rc || known ? rc : start_capture(c, err);
}

/* The item's work, between events that are part of the graph. */
static int capture(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item *item,
                   s4d_cuda_append append, struct s4d_error *err)
{
    cudaStream_t s = c->streams[stream].stream;
    bool watched = item->call && c->device->observer.ran;
    struct s4d_cuda_part part = {.call = item->call};
    int rc = item->value ? s4d_cuda_take_slot(c, &item->slot, err) : 0;
    part.slot = item->slot;
    if (!rc && watched)
        rc = s4d_cuda_take_event(c, &part.start, err) ||
             S4D_CUDA(err, cudaEventRecordWithFlags, part.start, s, cudaEventRecordExternal);
    if (!rc && append)
        rc = append(c, item, err);
    if (!rc && (watched || item->t_s))
        rc = s4d_cuda_take_event(c, &part.end, err) ||
             S4D_CUDA(err, cudaEventRecordWithFlags, part.end, s, cudaEventRecordExternal);
    if (!rc && item->call)
        rc = take_inner(c, &item->within, err) || S4D_CUDA(err, cudaEventRecord, item->within, s);
    s4d_push(c->graph->parts, c->graph->n, c->graph->cap, part);
    if (rc)
        s4d_cuda_name_op(c, item->call, item->iteration, err);
    return rc ? -1 : 0;
}

int s4d_cuda_graph_enqueue(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item *item,
                           s4d_cuda_append append, struct s4d_error *err)
{
    struct s4d_cuda_graph *g = c->graph;
    if (c->phase == S4D_CUDA_CAPTURES && capture(c, stream, item, append, err)) {
        give_inner(c, item->within);
        return -1;
    }
    S4D_ASSERT(g->at < g->n && g->parts[g->at].call == item->call,
               "an iteration differs from the captured one");
    const struct s4d_cuda_part *part = &g->parts[g->at++];
    item->graph = g;
    item->start = part->start;
    item->end = part->end;
    item->slot = part->slot;
    s4d_cuda_push(c, stream, item);
    return 0;
}

int s4d_cuda_graph_wait(struct s4d_cuda *c, enum s4d_stream stream,
                        const struct s4d_cuda_item *item, struct s4d_error *err)
{
    bool same = item->graph == c->graph;
    cudaEvent_t event = item->within;
    if (stream != S4D_STREAM_HOST) {
        /* The launch is after the one before it, and after the host's ops. */
        if (!same || c->phase == S4D_CUDA_REPLAYS)
            return 0;
    } else if (same) {
        return s4d_fail(err, S4D_EXIT_BUG, item->call->op->label.name,
                        "the host waits for it in its own iteration, a CUDA graph of which it is "
                        "no part");
    } else {
        event = item->end ? item->end : item->graph->over;
    }
    return S4D_CUDA(err, cudaStreamWaitEvent, c->streams[stream].stream, event, 0);
}

static void give_back_within(struct s4d_cuda *c)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        struct s4d_cuda_stream *s = &c->streams[stream];
        for (int i = s->head; i < s->n; i++) {
            give_inner(c, s->items[i].within);
            s->items[i].within = NULL;
        }
    }
}

static void destroy(struct s4d_cuda *c, cudaGraph_t graph)
{
    if (graph && S4D_CUDA(NULL, cudaGraphDestroy, graph))
        c->graph_stays = true;
}

static int end_capture(struct s4d_cuda *c, struct s4d_error *err)
{
    cudaGraph_t graph = NULL;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (is_inside(c, stream) && follow(c, c->streams[stream].stream, c->origin, err))
            return -1;
    c->phase = S4D_CUDA_EAGER;
    if (S4D_CUDA(err, cudaStreamEndCapture, c->origin, &graph))
        return -1;
    give_back_within(c);
    int rc = S4D_CUDA(err, cudaGraphInstantiate, &c->graph->instance, graph,
                      cudaGraphInstantiateFlagUseNodePriority);
    destroy(c, graph);
    return rc;
}

static int launch(struct s4d_cuda *c, struct s4d_error *err)
{
    struct s4d_cuda_graph *g = c->graph;
    const struct s4d_cuda_stream *host = &c->streams[S4D_STREAM_HOST];
    if (host->head < host->n &&
        S4D_CUDA(err, cudaStreamWaitEvent, c->origin, host->items[host->n - 1].end, 0))
        return -1;
    if (!g->over && s4d_cuda_take_event(c, &g->over, err))
        return -1;
    if (S4D_CUDA(err, cudaGraphLaunch, g->instance, c->origin) ||
        S4D_CUDA(err, cudaEventRecord, g->over, c->origin))
        return -1;
    g->state = S4D_CUDA_LAUNCHED;
    c->launched = "a CUDA graph";
    atomic_store(&c->has_launched, true);
    return 0;
}

int s4d_cuda_graph_end(struct s4d_cuda *c, struct s4d_error *err)
{
    if (c->phase == S4D_CUDA_EAGER)
        return 0;
    if ((c->phase == S4D_CUDA_CAPTURES && end_capture(c, err)) || launch(c, err))
        return -1;
    c->phase = S4D_CUDA_EAGER;
    return 0;
}

int s4d_cuda_graphs_ask(struct s4d_cuda *c, struct s4d_error *err)
{
    for (int i = 0; i < S4D_CUDA_GRAPHS; i++) {
        struct s4d_cuda_graph *g = &c->graphs[i];
        if (g->state != S4D_CUDA_LAUNCHED)
            continue;
        cudaError_t code = s4d_cuda_ask(g->over);
        if (code == cudaErrorNotReady)
            continue;
        if (s4d_cuda_check("cudaEventQuery", code, err) || s4d_cuda_rebase(c, &g->over, err))
            return -1;
        g->state = S4D_CUDA_ENDED;
    }
    return 0;
}

int s4d_cuda_graphs_open(struct s4d_cuda *c, struct s4d_error *err)
{
    return c->options.graphs
               ? S4D_CUDA(err, cudaStreamCreateWithPriority, &c->origin, cudaStreamNonBlocking, 0)
               : 0;
}

/* Before the communicators: those wait until no graph has any of their collectives. */
void s4d_cuda_graphs_close(struct s4d_cuda *c)
{
    cudaGraph_t graph = NULL;
    if (c->phase == S4D_CUDA_CAPTURES) {
        S4D_CUDA(NULL, cudaStreamEndCapture, c->origin, &graph);
        destroy(c, graph);
    }
    for (int i = 0; i < S4D_CUDA_GRAPHS; i++) {
        struct s4d_cuda_graph *g = &c->graphs[i];
        if (g->instance && S4D_CUDA(NULL, cudaGraphExecDestroy, g->instance))
            c->graph_stays = true;
        s4d_cuda_give_event(c, g->over);
        for (int k = 0; k < g->n; k++) {
            s4d_cuda_give_event(c, g->parts[k].start);
            s4d_cuda_give_event(c, g->parts[k].end);
        }
        free(g->parts);
    }
    give_back_within(c);
    for (int i = 0; i < c->n_inner; i++)
        S4D_CUDA(NULL, cudaEventDestroy, c->inner[i]);
    free(c->inner);
    if (c->origin)
        S4D_CUDA(NULL, cudaStreamDestroy, c->origin);
}
