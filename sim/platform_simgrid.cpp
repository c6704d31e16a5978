/* SPDX-License-Identifier: Apache-2.0 */
/* A SimGrid platform in a process of its own: loaded by SimGrid, asked for routes. */
#include "sim/platform_child.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <unordered_map>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

namespace
{
void send_int(int socket, int value)
{
    s4d_platform_send(socket, &value, sizeof value);
}

void send_text(int socket, const std::string &text)
{
    send_int(socket, static_cast<int>(text.size()));
    s4d_platform_send(socket, text.data(), text.size());
}

/* "pattern" of the name, or "property=pattern". */
bool is_chosen(const sg4::Host *host, const char *hosts)
{
    if (!hosts)
        return true;
    const char *equal = std::strchr(hosts, '=');
    if (!equal)
        return fnmatch(hosts, host->get_cname(), 0) == 0;
    const char *value = host->get_property(std::string(hosts, equal));
    return value && fnmatch(equal + 1, value, 0) == 0;
}

struct Platform {
    std::vector<sg4::Host *> hosts;
    std::unordered_map<const sg4::Link *, int> numbers;

    void load(const char *file, const char *pattern);
    void describe(int socket, const sg4::Engine &engine);
    void answer(int socket, int a, int b);
};

void Platform::describe(int socket, const sg4::Engine &engine)
{
    send_int(socket, 0);
    send_int(socket, static_cast<int>(hosts.size()));
    for (const sg4::Host *host : hosts)
        send_text(socket, host->get_name());
    const auto links = engine.get_all_links();
    send_int(socket, static_cast<int>(links.size()));
    for (const sg4::Link *link : links) {
        const double bandwidth = link->get_bandwidth(), latency = link->get_latency();
        numbers.emplace(link, static_cast<int>(numbers.size()));
        send_text(socket, link->get_name());
        s4d_platform_send(socket, &bandwidth, sizeof bandwidth);
        s4d_platform_send(socket, &latency, sizeof latency);
        send_int(socket, link->get_sharing_policy() != sg4::Link::SharingPolicy::FATPIPE);
    }
}

void Platform::answer(int socket, int a, int b)
{
    std::vector<sg4::Link *> links;
    double latency_s = 0;
    try {
        hosts.at(static_cast<size_t>(a))
            ->route_to(hosts.at(static_cast<size_t>(b)), links, &latency_s);
    } catch (const std::exception &) {
        links.clear();
    }
    const int n =
        links.empty() || links.size() > S4D_PLATFORM_LINKS ? -1 : static_cast<int>(links.size());
    send_int(socket, n);
    for (int i = 0; i < n; i++)
        send_int(socket, numbers.at(links[static_cast<size_t>(i)]));
    s4d_platform_send(socket, &latency_s, sizeof latency_s);
}
} // namespace

void s4d_platform_serve(int socket, const char *file, const char *hosts)
{
    Platform platform;
    int argc = 2;
    char name[] = "scale4d", quiet[] = "--log=root.threshold:error";
    char *argv[] = {name, quiet, nullptr};
    sg4::Engine engine(&argc, argv);
    try {
        engine.load_platform(file);
        engine.seal_platform();
    } catch (const std::exception &problem) {
        send_int(socket, 1);
        send_text(socket, problem.what());
        return;
    }
    for (sg4::Host *host : engine.get_all_hosts())
        if (is_chosen(host, hosts))
            platform.hosts.push_back(host);
    std::sort(platform.hosts.begin(), platform.hosts.end(),
              [](const sg4::Host *a, const sg4::Host *b) {
                  return strverscmp(a->get_cname(), b->get_cname()) < 0;
              });
    platform.describe(socket, engine);
    int pair[2];
    while (s4d_platform_receive(socket, pair, sizeof pair) == 0)
        platform.answer(socket, pair[0], pair[1]);
}
