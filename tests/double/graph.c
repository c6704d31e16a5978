/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs. Work that is issued to a stream that captures becomes a node, after those that its stream
 * had before it and those that it was told to wait for; nothing runs. A launch is an item of its
 * stream that runs all nodes: of those whose predecessors are done, the first in an order that
 * holds for a while, as streams run.
 *
 * What CUDA forbids ends the capture: all that comes after fails, up to cudaStreamEndCapture. */
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/double/order.h"

struct node {
    bool (*step)(void *data);
    void *data; /* of every launch a copy */
    size_t bytes;
    cudaEvent_t event; /* of a record that others than the graph's nodes see; NULL: none */
    struct s4d_double_ends before;
};

/* Handles are not used again, so they are kept; nodes as long as anything uses them. */
struct CUgraph_st {
    struct node *nodes;
    int n, cap;
    struct s4d_double_ends *lanes; /* nodes of each stream, in order */
    int n_lanes, cap_lanes;
    int users;  /* its handle, instances, and their launches */
    int owners; /* of them, those that only a call ends */
    bool live;
};
struct CUgraphExec_st {
    struct CUgraph_st *graph;
    int64_t launched, done;
    bool live;
};

struct s4d_double_capture {
    struct CUgraph_st *graph;
    cudaStream_t *streams; /* the first is where it began */
    int n, cap;
    bool invalid;
};

static struct s4d_double_capture **captures; /* that have not ended */
static int n_captures, cap_captures;
static struct CUgraph_st **graphs;
static struct CUgraphExec_st **instances;
static int n_graphs, cap_graphs, n_instances, cap_instances;

static void join(struct s4d_double_capture *c, cudaStream_t stream)
{
    struct s4d_double_ends none = {NULL, 0, 0};
    stream->capture = c;
    stream->lane = c->n;
    stream->ends.n = 0;
    s4d_push(c->streams, c->n, c->cap, stream);
    s4d_push(c->graph->lanes, c->graph->n_lanes, c->graph->cap_lanes, none);
}

static void add_ends(struct s4d_double_ends *to, const struct s4d_double_ends *from)
{
    for (int i = 0; i < from->n; i++) {
        int known = 0;
        while (known < to->n && to->v[known] != from->v[i])
            known++;
        if (known == to->n)
            s4d_push(to->v, to->n, to->cap, from->v[i]);
    }
}

void s4d_double_capture(cudaStream_t stream, bool (*step)(void *data), const void *data,
                        size_t bytes, cudaEvent_t event)
{
    struct CUgraph_st *g = stream->capture->graph;
    struct s4d_double_ends *lane = &g->lanes[stream->lane];
    struct node node = {.step = step, .bytes = bytes, .event = event};
    node.data = s4d_malloc(bytes + 1);
    if (bytes > 0)
        memcpy(node.data, data, bytes);
    add_ends(&node.before, &stream->ends);
    stream->ends.n = 0;
    s4d_push(stream->ends.v, stream->ends.n, stream->ends.cap, g->n);
    s4d_push(lane->v, lane->n, lane->cap, g->n);
    s4d_push(g->nodes, g->n, g->cap, node);
}

void s4d_double_capture_record(cudaStream_t stream, cudaEvent_t event)
{
    event->captured = stream->capture->graph;
    event->ends.n = 0;
    add_ends(&event->ends, &stream->ends);
}

static struct s4d_double_capture *capture_of(const struct CUgraph_st *graph)
{
    for (int i = 0; i < n_captures; i++)
        if (captures[i]->graph == graph)
            return captures[i];
    return NULL;
}

cudaError_t s4d_double_capture_wait(cudaStream_t stream, cudaEvent_t event)
{
    struct s4d_double_capture *own = stream->capture;
    struct s4d_double_capture *c = event->captured ? capture_of(event->captured) : NULL;
    if (!own && !c)
        return cudaErrorInvalidValue; /* of a capture that has ended */
    if (c && c->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (own && own != c) {
        own->invalid = true;
        if (c)
            c->invalid = true;
        return c ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation;
    }
    if (!own)
        join(c, stream);
    add_ends(&stream->ends, &event->ends);
    return cudaSuccess;
}

bool s4d_double_is_origin(cudaStream_t stream)
{
    return stream->capture && stream->capture->streams[0] == stream;
}

bool s4d_double_capturing(void)
{
    return n_captures > 0;
}

cudaError_t s4d_double_unsafe(void)
{
    for (int i = 0; i < n_captures; i++)
        captures[i]->invalid = true;
    return n_captures > 0 ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

bool s4d_double_invalid(cudaStream_t stream)
{
    return stream->capture && stream->capture->invalid;
}

void s4d_double_capture_leave(cudaStream_t stream)
{
    if (stream->capture)
        stream->capture->invalid = true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    S4D_DOUBLE_ENTER("cudaStreamBeginCapture", cudaErrorUnknown);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (mode != cudaStreamCaptureModeThreadLocal)
        s4d_double_refuse("cudaStreamBeginCapture", "another mode than ThreadLocal");
    if (stream->capture)
        return cudaErrorInvalidValue;
    struct s4d_double_capture *c = s4d_calloc(1, sizeof *c);
    c->graph = s4d_calloc(1, sizeof *c->graph);
    c->graph->live = true;
    c->graph->users = c->graph->owners = 1;
    join(c, stream);
    s4d_push(captures, n_captures, cap_captures, c);
    return cudaSuccess;
}

static void unuse(struct CUgraph_st *g)
{
    if (--g->users > 0)
        return;
    for (int i = 0; i < g->n; i++) {
        free(g->nodes[i].data);
        free(g->nodes[i].before.v);
    }
    for (int i = 0; i < g->n_lanes; i++)
        free(g->lanes[i].v);
    free(g->nodes);
    free(g->lanes);
    g->nodes = NULL;
    g->lanes = NULL;
    g->n = g->n_lanes = 0;
}

/* Whether what every stream did comes before where the first one is. */
static bool is_joined(const struct s4d_double_capture *c)
{
    const struct CUgraph_st *g = c->graph;
    const struct s4d_double_ends *ends = &c->streams[0]->ends;
    bool *before = s4d_calloc((size_t)g->n + 1, sizeof *before), joined = true;
    for (int i = 0; i < ends->n; i++)
        before[ends->v[i]] = true;
    for (int i = g->n - 1; i >= 0; i--)
        for (int k = 0; before[i] && k < g->nodes[i].before.n; k++)
            before[g->nodes[i].before.v[k]] = true;
    for (int i = 0; i < g->n; i++)
        joined = joined && before[i];
    free(before);
    return joined;
}

static void end(struct s4d_double_capture *c)
{
    for (int i = 0; i < c->n; i++) {
        c->streams[i]->capture = NULL;
        c->streams[i]->ends.n = 0;
    }
    for (int i = 0; i < n_captures; i++)
        if (captures[i] == c)
            captures[i] = captures[--n_captures];
    free(c->streams);
    free(c);
}

/* The capture ends, whether or not that fails. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    bool fails = s4d_double_call_fails("cudaStreamEndCapture", __builtin_return_address(0));
    if (s4d_double_in_work())
        s4d_double_refuse("cudaStreamEndCapture", "a host function may not call CUDA");
    s4d_double_turn(S4D_DOUBLE_ISSUES);
    *graph = NULL;
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    struct s4d_double_capture *c = stream->capture;
    if (!c)
        return cudaErrorInvalidValue;
    if (c->streams[0] != stream)
        return cudaErrorStreamCaptureUnmatched;
    cudaError_t code = fails                 ? cudaErrorUnknown
                       : s4d_double_broken() ? s4d_double_broken()
                       : c->invalid          ? cudaErrorStreamCaptureInvalidated
                       : !is_joined(c)       ? cudaErrorStreamCaptureUnjoined
                                             : cudaSuccess;
    if (code == cudaSuccess) {
        *graph = c->graph;
        s4d_double_live.graphs++;
        s4d_push(graphs, n_graphs, cap_graphs, c->graph);
    } else {
        unuse(c->graph);
    }
    end(c);
    return code;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    S4D_DOUBLE_ENTER("cudaGraphDestroy", cudaErrorUnknown);
    if (!graph || !graph->live)
        return cudaErrorInvalidValue;
    graph->live = false;
    graph->owners--;
    s4d_double_live.graphs--;
    unuse(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *instance, cudaGraph_t graph,
                                 unsigned long long flags)
{
    S4D_DOUBLE_ENTER("cudaGraphInstantiate", cudaErrorMemoryAllocation);
    if (flags != cudaGraphInstantiateFlagUseNodePriority) /* a hint, as priorities are here */
        s4d_double_refuse("cudaGraphInstantiate", "other flags than UseNodePriority");
    if (s4d_double_unsafe())
        return cudaErrorStreamCaptureUnsupported;
    if (!graph || !graph->live)
        return cudaErrorInvalidValue;
    *instance = s4d_calloc(1, sizeof **instance);
    (*instance)->graph = graph;
    (*instance)->live = true;
    s4d_double_live.graphs++;
    graph->users++;
    graph->owners++;
    s4d_push(instances, n_instances, cap_instances, *instance);
    return cudaSuccess;
}

/* What runs of it still ends. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance)
{
    S4D_DOUBLE_ENTER("cudaGraphExecDestroy", cudaErrorUnknown);
    if (!instance || !instance->live)
        return cudaErrorInvalidValue;
    instance->live = false;
    instance->graph->owners--;
    s4d_double_live.graphs--;
    unuse(instance->graph);
    return cudaSuccess;
}

struct launch {
    struct CUgraphExec_st *instance;
    int64_t number;
    void **data; /* by node, NULL: it is done */
    int *at;     /* by lane: the first that is not done */
    int left;
    struct s4d_double_order order;
};

static bool is_ready(const struct launch *l, const struct node *node)
{
    for (int i = 0; i < node->before.n; i++)
        if (l->data[node->before.v[i]])
            return false;
    return true;
}

/* Whether the first node of a lane that is not done is now. */
static bool run_node(struct launch *l, int lane)
{
    const struct CUgraph_st *g = l->instance->graph;
    if (l->at[lane] == g->lanes[lane].n)
        return false;
    int i = g->lanes[lane].v[l->at[lane]];
    if (!is_ready(l, &g->nodes[i]) || !g->nodes[i].step(l->data[i]))
        return false;
    free(l->data[i]);
    l->data[i] = NULL;
    l->at[lane]++;
    l->left--;
    return true;
}

/* Launches of one instance follow one another. */
bool s4d_double_launch_step(void *data)
{
    struct launch *l = data;
    struct CUgraph_st *g = l->instance->graph;
    if (l->instance->done + 1 < l->number)
        return false;
    s4d_double_hold(&l->order, g->n_lanes, 1);
    int skew = s4d_double_skew(g->n_lanes);
    for (int i = 0; i < g->n_lanes && l->left > 0; i++)
        if (run_node(l, s4d_double_ith(&l->order, i, skew))) {
            s4d_double_went_on();
            break;
        }
    if (l->left > 0)
        return false;
    l->instance->done++;
    free(l->data);
    free(l->at);
    unuse(g);
    return true;
}

bool s4d_double_launch_has(const void *data, s4d_double_is is, const void *of)
{
    const struct launch *l = data;
    const struct CUgraph_st *g = l->instance->graph;
    for (int i = 0; i < g->n; i++)
        if (l->data[i] && is(g->nodes[i].step, l->data[i], of))
            return true;
    return false;
}

bool s4d_double_graphs_have(s4d_double_is is, const void *of)
{
    for (int i = 0; i < n_graphs; i++)
        for (int k = 0; graphs[i]->owners > 0 && k < graphs[i]->n; k++)
            if (is(graphs[i]->nodes[k].step, graphs[i]->nodes[k].data, of))
                return true;
    return false;
}

/* "Each launch of the graph will record event": from now on it stands for this launch's. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream)
{
    S4D_DOUBLE_ENTER("cudaGraphLaunch", cudaErrorLaunchOutOfResources);
    if (!s4d_double_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (!instance || !instance->live)
        return cudaErrorInvalidValue;
    if (stream->capture)
        s4d_double_refuse("cudaGraphLaunch", "a graph in a graph");
    struct CUgraph_st *g = instance->graph;
    stream->launches = true;
    struct launch l = {.instance = instance, .number = ++instance->launched, .left = g->n};
    l.data = s4d_calloc((size_t)g->n + 1, sizeof *l.data);
    l.at = s4d_calloc((size_t)g->n_lanes, sizeof *l.at);
    for (int i = 0; i < g->n; i++) {
        const struct node *node = &g->nodes[i];
        struct s4d_double_moment *moment = node->event ? s4d_double_expect(node->event) : NULL;
        l.data[i] = s4d_malloc(node->bytes + sizeof moment);
        if (moment) {
            moment->of_graph = true;
            memcpy(l.data[i], &moment, sizeof moment);
        } else {
            memcpy(l.data[i], node->data, node->bytes);
        }
    }
    g->users++;
    s4d_double_append(stream, s4d_double_launch_step, &l, sizeof l);
    return cudaSuccess;
}
