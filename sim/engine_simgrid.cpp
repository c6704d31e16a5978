/* SPDX-License-Identifier: Apache-2.0 */
/* sim/engine.h over SimGrid 3.32, by installed headers alone.
 *
 * A flow is a Comm between two helper hosts of an Empty zone, whose bypass route lists the links, a
 * link k times for weight k (SimGrid's solver then charges it k times the rate). There are no
 * actors: everything happens in completion callbacks and kernel timers. Settings: CM02 without
 * cross-traffic, TCP window bound or latency factor is plain max-min sharing with SimGrid's own
 * (lazy) solver; latency is the caller's timer.
 *
 * A Comm moves whole bytes only, so SimGrid's byte is 2^-22 of ours: sizes and capacities are
 * scaled by the same power of two. What is lost is under 1.2e-7 of a byte per start, 5e-18 s at 25
 * GB/s.
 * SimGrid merges events closer than surf/precision seconds, an absolute number; we keep it a fixed
 * tiny part of the clock, by powers of two, so that a run scaled in time by 2 does the same
 * arithmetic. */
#include "sim/engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "support/error.h"

namespace sg4 = simgrid::s4u;
using simgrid::kernel::timer::Timer;

namespace
{
const double scale = 4194304;           /* 2^22; 2^41 bytes fit into 64 bits */
const double largest_B = 1099511627776; /* 2^40: a larger flow is several Comms, one by one */

struct Flow {
    std::vector<sg4::LinkInRoute> route; /* a link once per unit of weight; emptied when routed */
    sg4::Host *from = nullptr, *to = nullptr;
};

struct Start {
    sg4::CommPtr comm; /* kept until its callback has returned: SimGrid needs it alive */
    s4d_callback done;
    void *context;
    int tag, flow;
    double left_B; /* of a flow larger than one Comm, after the one that runs */
};

/* Solves whose components are large recurse deeply on the main stack. */
void enlarge_stack()
{
    struct rlimit limit;
    const rlim_t wanted = 512UL << 20;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    setrlimit(RLIMIT_STACK, &limit);
}
} // namespace

struct s4d_timer {
    s4d_callback fire;
    void *context;
    int tag;
    Timer *timer;
};

struct s4d_engine {
    sg4::Engine *simgrid = nullptr;
    sg4::NetZone *zone = nullptr;
    std::vector<sg4::Link *> links;
    std::vector<Flow> flows;
    std::vector<sg4::Host *> hosts;
    size_t pairs_used = 0;
    std::vector<Start *> starts, free_starts;
    sg4::CommPtr ended; /* of the latest callback: SimGrid still holds it while that one runs */
    std::vector<s4d_timer *> free_timers;
    double precise_until_s = 0;
    long completions = 0;

    void keep_precision();
    void route(Flow &flow);
    void move(Start *start);
    void completed(Start *start);
};

/* Events closer than 2^-50 of the clock's next power of two are one event. */
void s4d_engine::keep_precision()
{
    const double now = sg4::Engine::get_clock();
    if (now < precise_until_s)
        return;
    int exponent;
    std::frexp(now, &exponent); /* now < 2^exponent */
    if (now == 0)
        exponent = -30;
    precise_until_s = std::ldexp(1.0, exponent);
    sg4::Engine::set_config("surf/precision", std::ldexp(1.0, exponent - 50));
}

void s4d_engine::route(Flow &flow)
{
    const size_t n = hosts.size(), pair = pairs_used++;
    const size_t from = pair / (n - 1), to = pair % (n - 1);
    S4D_ASSERT(from < n, "more flows than host pairs");
    flow.from = hosts[from];
    flow.to = hosts[to < from ? to : to + 1];
    zone->add_bypass_route(flow.from->get_netpoint(), flow.to->get_netpoint(), nullptr, nullptr,
                           flow.route);
    std::vector<sg4::LinkInRoute>().swap(flow.route);
}

/* Starts a Comm for what is left, or for as much of it as one holds. */
void s4d_engine::move(Start *start)
{
    const Flow &f = flows.at(static_cast<size_t>(start->flow));
    const double bytes = std::min(start->left_B, largest_B);
    start->left_B -= bytes;
    start->comm = sg4::Comm::sendto_init(f.from, f.to);
    start->comm->set_data(start);
    start->comm->set_payload_size(
        std::max<uint64_t>(1, static_cast<uint64_t>(std::nearbyint(bytes * scale))));
    start->comm->vetoable_start();
}

void s4d_engine::completed(Start *start)
{
    completions++;
    if (start->left_B > 0) {
        ended = std::move(start->comm);
        keep_precision();
        move(start);
        return;
    }
    const s4d_callback done = start->done;
    void *const context = start->context;
    const int tag = start->tag;
    ended = std::move(start->comm);
    free_starts.push_back(start);
    keep_precision();
    done(context, tag);
}

struct s4d_engine *s4d_engine_create(void)
{
    static bool created = false;
    S4D_ASSERT(!created, "a second engine in one process");
    created = true;
    enlarge_stack();
    int argc = 2;
    char name[] = "scale4d", quiet[] = "--log=root.threshold:critical";
    char *argv[] = {name, quiet, nullptr};
    auto *e = new s4d_engine;
    e->simgrid = new sg4::Engine(&argc, argv);
    for (int taken : {SIGINT, SIGSEGV, SIGBUS}) /* SimGrid's handlers print; we name the signal */
        signal(taken, SIG_DFL);
    for (const char *setting :
         {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
          "network/latency-factor:0", "network/optim:Lazy", "maxmin/precision:1e-12"})
        sg4::Engine::set_config(std::string(setting));
    e->zone = sg4::create_empty_zone("scale4d");
    sg4::Activity::on_completion_cb([e](sg4::Activity const &activity) {
        const auto *comm = static_cast<const sg4::Comm *>(&activity);
        e->completed(const_cast<sg4::Comm *>(comm)->get_data<Start>());
    });
    e->keep_precision();
    return e;
}

void s4d_engine_destroy(struct s4d_engine *e)
{
    for (Start *start : e->starts)
        delete start;
    for (s4d_timer *timer : e->free_timers)
        delete timer;
    e->ended = nullptr;
    delete e; /* SimGrid itself lives until the process ends */
}

int s4d_engine_link(struct s4d_engine *e, double capacity_Bps)
{
    S4D_ASSERT(capacity_Bps > 0 && std::isfinite(capacity_Bps), "link of %g B/s", capacity_Bps);
    const int id = static_cast<int>(e->links.size());
    e->links.push_back(
        e->zone->create_link("l" + std::to_string(id), capacity_Bps * scale)->seal());
    return id;
}

int s4d_engine_flow(struct s4d_engine *e, const int *links, const int *weights, int n)
{
    S4D_ASSERT(e->hosts.empty(), "flow after seal");
    S4D_ASSERT(n > 0, "a flow without links");
    Flow flow;
    for (int i = 0; i < n; i++) {
        S4D_ASSERT(weights[i] > 0, "weight %d", weights[i]);
        flow.route.insert(flow.route.end(), static_cast<size_t>(weights[i]),
                          sg4::LinkInRoute(e->links.at(static_cast<size_t>(links[i]))));
    }
    e->flows.push_back(std::move(flow));
    return static_cast<int>(e->flows.size()) - 1;
}

void s4d_engine_seal(struct s4d_engine *e)
{
    size_t n = 2;
    while (n * (n - 1) < e->flows.size())
        n++;
    for (size_t i = 0; i < n; i++)
        e->hosts.push_back(e->zone->create_host("h" + std::to_string(i), 1e9)->seal());
    e->zone->seal();
}

void s4d_engine_start(struct s4d_engine *e, int flow, double bytes, s4d_callback done,
                      void *context, int tag)
{
    S4D_ASSERT(bytes > 0 && bytes < std::ldexp(1.0, 60), "a flow of %g bytes", bytes);
    Flow &f = e->flows.at(static_cast<size_t>(flow));
    if (!f.from)
        e->route(f);
    if (e->free_starts.empty()) {
        e->starts.push_back(new Start);
        e->free_starts.push_back(e->starts.back());
    }
    Start *start = e->free_starts.back();
    e->free_starts.pop_back();
    start->done = done;
    start->context = context;
    start->tag = tag;
    start->flow = flow;
    start->left_B = bytes;
    e->move(start);
}

struct s4d_timer *s4d_engine_timer(struct s4d_engine *e, double t_s, s4d_callback fire,
                                   void *context, int tag)
{
    s4d_timer *timer;
    if (e->free_timers.empty()) {
        timer = new s4d_timer;
    } else {
        timer = e->free_timers.back();
        e->free_timers.pop_back();
    }
    timer->fire = fire;
    timer->context = context;
    timer->tag = tag;
    timer->timer = Timer::set(std::max(t_s, sg4::Engine::get_clock()), [e, timer]() {
        e->keep_precision();
        e->free_timers.push_back(timer); /* used up: a new timer may take its place at once */
        timer->fire(timer->context, timer->tag);
    });
    return timer;
}

void s4d_engine_cancel(struct s4d_engine *e, struct s4d_timer *timer)
{
    timer->timer->remove();
    e->free_timers.push_back(timer);
}

double s4d_engine_now_s(const struct s4d_engine *)
{
    return sg4::Engine::get_clock();
}

void s4d_engine_run(struct s4d_engine *e)
{
    e->simgrid->run();
    /* A step to an event 16 times as late and more may round the clock past that event by more than
     * the precision that was right before: SimGrid then finds the event neither now nor later, and
     * stops. A timer at the next instant, with the precision that is right there, takes it up. */
    for (long before = -1; e->starts.size() > e->free_starts.size() && e->completions > before;) {
        before = e->completions;
        e->keep_precision();
        Timer::set(std::nextafter(sg4::Engine::get_clock(), INFINITY),
                   [e]() { e->keep_precision(); });
        e->simgrid->run();
    }
}

void s4d_engine_watch(struct s4d_engine *, s4d_callback advanced, void *context)
{
    sg4::Engine::on_time_advance_cb([advanced, context](double) { advanced(context, 0); });
}

double s4d_engine_usage_Bps(const struct s4d_engine *e, int link)
{
    return e->links.at(static_cast<size_t>(link))->get_usage() / scale;
}
