/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/zones.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

#include "support/error.h"

namespace sg4 = simgrid::s4u;

namespace
{
std::vector<sg4::Host *> hosts;
std::map<const sg4::Link *, int> numbers;

using Points =
    std::pair<simgrid::kernel::routing::NetPoint *, simgrid::kernel::routing::NetPoint *>;
using MakeLeaf =
    std::function<Points(sg4::NetZone *, const std::vector<unsigned long> &, unsigned long)>;

/* Every leaf of the zone is one host. */
const MakeLeaf make_leaf = [](sg4::NetZone *zone, const std::vector<unsigned long> &,
                              unsigned long id) -> Points {
    if (hosts.size() <= id)
        hosts.resize(id + 1);
    hosts[id] = zone->create_host("h" + std::to_string(id), 1e9);
    return {hosts[id]->get_netpoint(), nullptr};
};

sg4::ClusterCallbacks leaves()
{
    const std::function<sg4::ClusterCallbacks::ClusterLinkCb> none;
    return sg4::ClusterCallbacks(make_leaf, none, none);
}

void start()
{
    int argc = 2;
    char name[] = "zones", quiet[] = "--log=root.threshold:critical";
    char *argv[] = {name, quiet, nullptr};
    S4D_ASSERT(hosts.empty(), "a second zone");
    new sg4::Engine(&argc, argv);
}

const double bandwidth = 1e9, latency = 1e-6;
const auto policy = sg4::Link::SharingPolicy::SPLITDUPLEX;
} // namespace

void zone_fat_tree(int levels, const unsigned *down, const unsigned *up, const unsigned *cables)
{
    start();
    const auto n = static_cast<size_t>(levels);
    sg4::create_fatTree_zone("zone", nullptr,
                             {static_cast<unsigned>(levels), std::vector<unsigned>(down, down + n),
                              std::vector<unsigned>(up, up + n),
                              std::vector<unsigned>(cables, cables + n)},
                             leaves(), bandwidth, latency, policy)
        ->seal();
}

void zone_torus(int dimensions, const int *size)
{
    start();
    std::vector<unsigned long> sizes(size, size + dimensions);
    sg4::create_torus_zone("zone", nullptr, sizes, leaves(), bandwidth, latency, policy)->seal();
}

void zone_dragonfly(int groups, int switches, int hosts_per_switch)
{
    start();
    const auto n = [](int value) { return static_cast<unsigned>(value); };
    sg4::create_dragonfly_zone("zone", nullptr,
                               {{n(groups), 1}, {1, 1}, {n(switches), 1}, n(hosts_per_switch)},
                               leaves(), bandwidth, latency, policy)
        ->seal();
}

int zone_route(int a, int b, int links[64])
{
    std::vector<sg4::Link *> way;
    double latency_s = 0;
    hosts.at(static_cast<size_t>(a))->route_to(hosts.at(static_cast<size_t>(b)), way, &latency_s);
    S4D_ASSERT(way.size() <= 64, "%zu links", way.size());
    int n = 0;
    for (const sg4::Link *link : way)
        links[n++] = numbers.emplace(link, static_cast<int>(numbers.size())).first->second;
    return n;
}
