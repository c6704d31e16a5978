/* SPDX-License-Identifier: Apache-2.0 */
/* One switch that never limits: a way crosses the sender's NIC out and the receiver's NIC in, which
 * the cluster owns, and nothing else. */
#include "sim/fabric.h"

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    (void)c;
    (void)err;
    return 0;
}

static void route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    (void)c;
    (void)a;
    (void)b;
    (void)path;
}

static char *link_name(const struct s4d_cluster *c, int link)
{
    (void)c;
    s4d_bug(__FILE__, __LINE__, "link", "a single switch has no link %d", link);
}

const struct s4d_fabric_kind s4d_fabric_single_switch = {
    .name = "single-switch",
    .summary = "one non-blocking switch: only the NICs limit",
    .example = "topology=single-switch",
    .create = create,
    .route = route,
    .link_name = link_name,
};
