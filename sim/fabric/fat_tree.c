/* SPDX-License-Identifier: Apache-2.0 */
/* Fat tree of two or three levels (Leiserson, IEEE Trans. Comput. C-34, 1985; as switches, the
 * extended generalised fat tree of Oehring et al., IPPS 1995). NICs hang on leaf switches in order;
 * two levels: every leaf has uplinks to the spine; three: leaves are joined to pods, and a pod's
 * switches have uplinks to the core.
 *
 * adaptive (default): a packet takes any uplink that is free, as adaptive routing does and as
 * hashing (ECMP) of many flows comes near to; so the uplinks of a leaf are one pooled link out and
 * one in, those of a pod too. Few flows that a hash puts on one uplink do worse.
 * d-mod-k (Zahavi et al., Concurrency Computat. 22, 2010; what InfiniBand's subnet managers and
 * SimGrid's fat tree do): the uplink follows from the destination alone, each link is on its own.
 * A dead uplink is replaced by the next that leads to the destination. */
#include <math.h>
#include <stdlib.h>

#include "sim/fabric.h"
#include "support/memory.h"

enum { ADAPTIVE, D_MOD_K };
static const char *const routings[] = {"adaptive", "d-mod-k", NULL};

struct fat_tree {
    bool single;   /* links on their own: d-mod-k */
    int leaf, pod; /* NICs of a leaf, leaves of a pod (INT_MAX-like: all of them) */
    int up, up2;   /* single: uplinks of a leaf (a pod has as many switches), of a pod's switch */
    int first_leaf, first_pod; /* link index of the first uplink of leaf 0, of pod 0 */
};

static double room(const struct s4d_machine *m)
{
    int nics = m->node.n_nics > 0 ? m->node.n_nics : 1;
    return floor(s4d_fabric_value(m, "leaves") * s4d_fabric_value(m, "nics_per_leaf") / nics);
}

static double link_Bps(const struct s4d_machine *m)
{
    double given = s4d_fabric_value(m, "link_bandwidth_Bps");
    return isinf(given) ? m->node.nic_bandwidth_Bps.value : given;
}

/* The number of uplinks as a whole one. */
static int whole(const struct s4d_machine *m, double uplinks, const char *key, int *n,
                 struct s4d_error *err)
{
    enum { MOST = 1 << 26 };
    *n = (int)lround(fmin(uplinks, MOST));
    if (*n >= 1 && fabs(uplinks - *n) < 1e-9 * uplinks)
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, m->name,
             "fabric.%s: makes %g uplinks a switch, and d-mod-k routes over a whole number of them",
             key, uplinks);
    return s4d_hint(err, "routing: adaptive pools them");
}

static void add_pair(struct s4d_cluster *c, double capacity_Bps, const char *out, const char *in)
{
    s4d_cluster_add_link(c, capacity_Bps, out);
    s4d_cluster_add_link(c, capacity_Bps, in);
}

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_machine *m = c->machine;
    bool three = s4d_fabric_value(m, "levels") == 3;
    double per = s4d_fabric_value(m, "nics_per_leaf"), pod = s4d_fabric_value(m, "leaves_per_pod");
    double up_Bps = per * m->node.nic_bandwidth_Bps.value / s4d_fabric_value(m, "oversubscription");
    double over = s4d_fabric_value(m, "pod_oversubscription");
    struct fat_tree t = {.single = s4d_fabric_value(m, "routing") == D_MOD_K, .leaf = (int)per};
    if (three && isinf(pod))
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "fabric.leaves_per_pod: missing: a fat tree of three levels needs it");
    int leaves = (int)(((int64_t)c->n_nodes * m->node.n_nics + t.leaf - 1) / t.leaf);
    t.pod = three ? (int)pod : leaves > 0 ? leaves : 1;
    int pods = three ? (leaves + t.pod - 1) / t.pod : 0;
    if (t.single && (whole(m, up_Bps / link_Bps(m), "oversubscription", &t.up, err) ||
                     whole(m, three ? pod / over : 1, "pod_oversubscription", &t.up2, err)))
        return -1;
    int64_t per_leaf = t.single ? t.up : 1, per_pod = t.single ? (int64_t)t.up * t.up2 : 1;
    if (s4d_cluster_room(c, 2 * (leaves * per_leaf + pods * per_pod), err))
        return -1;
    t.first_leaf = c->n_links;
    for (int i = 0; i < leaves * per_leaf; i++)
        add_pair(c, up_Bps / (double)per_leaf, "leaf-out", "leaf-in");
    t.first_pod = c->n_links;
    for (int i = 0; i < pods * per_pod; i++)
        add_pair(c, pod * up_Bps / over / (double)per_pod, "pod-out", "pod-in");
    c->fabric_state = s4d_malloc(sizeof t);
    *(struct fat_tree *)c->fabric_state = t;
    return 0;
}

static void destroy(struct s4d_cluster *c)
{
    free(c->fabric_state);
}

/* Up through switch `j` of a's pod and its uplink `v`, and down to b. With one pod there is no v.
 */
static void single_way(const struct fat_tree *t, int leaf_a, int leaf_b, int j, int v, int way[4],
                       int *n)
{
    int pod_a = leaf_a / t->pod, pod_b = leaf_b / t->pod;
    *n = 0;
    way[(*n)++] = t->first_leaf + 2 * (leaf_a * t->up + j);
    if (pod_a != pod_b) {
        way[(*n)++] = t->first_pod + 2 * ((pod_a * t->up + j) * t->up2 + v);
        way[(*n)++] = t->first_pod + 2 * ((pod_b * t->up + j) * t->up2 + v) + 1;
    }
    way[(*n)++] = t->first_leaf + 2 * (leaf_b * t->up + j) + 1;
}

static bool is_whole_way(const struct s4d_cluster *c, const int *way, int n)
{
    for (int i = 0; i < n; i++)
        if (s4d_link_is_dead(c, way[i]))
            return false;
    return true;
}

/* Destination b's own switches first; where a link of that way is dead the next ones. */
static void route_single(const struct s4d_cluster *c, const struct fat_tree *t, int a, int b,
                         struct s4d_path *path)
{
    int leaf_a = a / t->leaf, leaf_b = b / t->leaf, n = 0, way[4];
    int turns = leaf_a / t->pod == leaf_b / t->pod ? 1 : t->up2;
    for (int try = 0; try < t->up * turns; try++) {
        int k = b + try, j = k % t->up;
        single_way(t, leaf_a, leaf_b, j, (b / t->up + try / t->up) % t->up2, way, &n);
        if (is_whole_way(c, way, n))
            break;
    }
    for (int i = 0; i < n; i++)
        s4d_path_add(path, way[i], 1);
}

static void route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    const struct fat_tree *t = c->fabric_state;
    int leaf_a = a / t->leaf, leaf_b = b / t->leaf;
    if (leaf_a == leaf_b)
        return;
    if (t->single) {
        route_single(c, t, a, b, path);
        return;
    }
    int pod_a = leaf_a / t->pod, pod_b = leaf_b / t->pod;
    s4d_path_add(path, t->first_leaf + 2 * leaf_a, 1);
    if (pod_a != pod_b) {
        s4d_path_add(path, t->first_pod + 2 * pod_a, 1);
        s4d_path_add(path, t->first_pod + 2 * pod_b + 1, 1);
    }
    s4d_path_add(path, t->first_leaf + 2 * leaf_b + 1, 1);
}

static char *link_name(const struct s4d_cluster *c, int link)
{
    const struct fat_tree *t = c->fabric_state;
    bool of_pod = link >= t->first_pod;
    int i = link - (of_pod ? t->first_pod : t->first_leaf), n = i / 2;
    if (!t->single)
        return s4d_asprintf("%s%d.%s", of_pod ? "pod" : "leaf", n, i % 2 ? "in" : "out");
    const char *way = i % 2 ? "down" : "up";
    if (!of_pod)
        return s4d_asprintf("leaf%d.%s%d", n / t->up, way, n % t->up);
    return s4d_asprintf("pod%d.switch%d.%s%d", n / t->up2 / t->up, n / t->up2 % t->up, way,
                        n % t->up2);
}

const struct s4d_fabric_kind s4d_fabric_fat_tree = {
    .name = "fat-tree",
    .summary = "leaf switches below a spine, or pods of them below a core; any oversubscription",
    .description =
        "NICs hang on leaf switches in order. adaptive (Leiserson 1985, Oehring et al. 1995): the "
        "uplinks of a leaf are one pooled link out and one in, those of a pod too, as adaptive "
        "routing and hashing of many flows spread traffic; collisions of few hashed flows are left "
        "out. d-mod-k (Zahavi et al. 2010): each uplink on its own, chosen by the destination.",
    .example = "topology=fat-tree,nics_per_leaf=16,oversubscription=2",
    .parameter =
        {
            S4D_OPTIONAL("levels", "2: leaves and spine; 3: leaves, pods and core", 2, 3, 2),
            S4D_REQUIRED("nics_per_leaf", "NICs on a leaf switch", 1, 1 << 16),
            S4D_OPTIONAL("leaves", "leaf switches of the machine (as many as its nodes need)", 1,
                         1e7, INFINITY),
            S4D_RATIO("oversubscription", "bandwidth of a leaf's NICs over that of its uplinks",
                      0.01, 1000, 1),
            {.key = "leaves_per_pod",
             .summary = "leaf switches of a pod; three levels need it",
             .min = 1,
             .max = 1 << 16,
             .optional = true,
             .missing = INFINITY,
             .only_with = "levels",
             .only_value = 3},
            {.key = "pod_oversubscription",
             .summary =
                 "bandwidth into a pod from its leaves over that to the core; of three levels",
             .min = 0.01,
             .max = 1000,
             .real = true,
             .optional = true,
             .missing = 1,
             .only_with = "levels",
             .only_value = 3},
            S4D_WORD("routing", "adaptive: uplinks pooled; d-mod-k: one by the destination",
                     routings),
            {.key = "link_bandwidth_Bps",
             .summary = "of one uplink, for d-mod-k (a NIC's bandwidth)",
             .min = 1,
             .max = 1e15,
             .optional = true,
             .missing = INFINITY,
             .only_with = "routing",
             .only_value = D_MOD_K},
        },
    .room = room,
    .create = create,
    .destroy = destroy,
    .route = route,
    .link_name = link_name,
};
