/* SPDX-License-Identifier: Apache-2.0 */
/* Torus or mesh of two or three dimensions with dimension-ordered routing (Dally and Seitz, IEEE
 * Trans. Comput. C-36, 1987): first along x, then y, then z, each the shorter way round. Exactly
 * half way round, a router with an even coordinate goes up and one with an odd coordinate down,
 * which loads both directions alike.
 *
 * All NICs of a node hang on its router; a way that passes other routers does not touch their NICs.
 * Where the way meets a dead link, the other way round is taken in that dimension, then the reverse
 * order of dimensions is tried; other detours are not. The whole torus exists even where a job uses
 * a part of it. */
#include "sim/fabric/torus.h"

#include <math.h>
#include <stdlib.h>

#include "support/memory.h"

struct torus {
    int size[3];
    bool wrapped;
    int first; /* link index of router 0's x+; then x-, y+, y-, z+, z-, router 1's x+ ... */
};
enum { PER_ROUTER = 6 };
static const char *const shapes[] = {"wrapped", "open", NULL};

int s4d_torus_create(struct s4d_cluster *c, const int size[3], bool wrapped, double link_Bps,
                     struct s4d_error *err)
{
    if ((double)size[0] * size[1] * size[2] > 1e7)
        return s4d_fail(err, S4D_EXIT_DATA, c->machine->name,
                        "fabric: %d x %d x %d routers are more than 10000000", size[0], size[1],
                        size[2]);
    int routers = size[0] * size[1] * size[2];
    if (s4d_cluster_room(c, (int64_t)routers * PER_ROUTER, err))
        return -1;
    struct torus *t = s4d_malloc(sizeof *t);
    *t = (struct torus){{size[0], size[1], size[2]}, wrapped, c->n_links};
    for (int i = 0; i < routers * PER_ROUTER; i++)
        s4d_cluster_add_link(c, link_Bps, i % 2 ? "torus-down" : "torus-up");
    c->fabric_state = t;
    return 0;
}

void s4d_torus_destroy(struct s4d_cluster *c)
{
    free(c->fabric_state);
}

static int stride(const struct torus *t, int dimension)
{
    int product = 1;
    for (int d = 0; d < dimension; d++)
        product *= t->size[d];
    return product;
}

static int modulo(int a, int n)
{
    return (a % n + n) % n;
}

/* Steps along a dimension from coordinate `from` to `to`: positive up, negative down. */
static int steps_of(const struct torus *t, int d, int from, int to)
{
    if (!t->wrapped)
        return to - from;
    int n = t->size[d], up = modulo(to - from, n);
    if (2 * up == n)
        return from % 2 == 0 ? up : -up;
    return 2 * up < n ? up : up - n;
}

/* Appends `steps` links along dimension d; whether all are alive. */
static bool walk(const struct s4d_cluster *c, const struct torus *t, int d, int steps, int *router,
                 struct s4d_path *path)
{
    bool alive = true;
    int by = stride(t, d), down = steps < 0, n = abs(steps);
    for (int i = 0; i < n; i++) {
        int link = t->first + *router * PER_ROUTER + 2 * d + down, at = *router / by % t->size[d];
        int next = modulo(at + (down ? -1 : 1), t->size[d]);
        alive = alive && !s4d_link_is_dead(c, link);
        s4d_path_add(path, link, 1);
        *router += (next - at) * by;
    }
    return alive;
}

/* From a to b in the given order of dimensions; whether all links are alive. */
static bool ordered(const struct s4d_cluster *c, const struct torus *t, int a, int b, bool reversed,
                    struct s4d_path *path)
{
    bool alive = true;
    for (int i = 0; i < 3; i++) {
        int d = reversed ? 2 - i : i, by = stride(t, d), n = t->size[d], begin = path->n, from = a;
        int steps = steps_of(t, d, a / by % n, b / by % n);
        if (walk(c, t, d, steps, &a, path))
            continue;
        if (t->wrapped) {
            path->n = begin;
            a = from;
            alive = walk(c, t, d, steps > 0 ? steps - n : steps + n, &a, path) && alive;
        } else {
            alive = false;
        }
    }
    return alive;
}

void s4d_torus_route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    const struct torus *t = c->fabric_state;
    int nics = c->machine->node.n_nics, begin = path->n;
    if (ordered(c, t, a / nics, b / nics, false, path))
        return;
    path->n = begin;
    ordered(c, t, a / nics, b / nics, true, path);
}

char *s4d_torus_link_name(const struct s4d_cluster *c, int link)
{
    const struct torus *t = c->fabric_state;
    int i = link - t->first;
    return s4d_asprintf("router%d.%c%c", i / PER_ROUTER, "xyz"[i % PER_ROUTER / 2],
                        i % 2 ? '-' : '+');
}

static double room(const struct s4d_machine *m)
{
    return s4d_fabric_value(m, "size_x") * s4d_fabric_value(m, "size_y") *
           s4d_fabric_value(m, "size_z");
}

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_machine *m = c->machine;
    int size[3] = {(int)s4d_fabric_value(m, "size_x"), (int)s4d_fabric_value(m, "size_y"),
                   (int)s4d_fabric_value(m, "size_z")};
    return s4d_torus_create(c, size, s4d_fabric_value(m, "ends") == 0,
                            s4d_fabric_value(m, "link_bandwidth_Bps"), err);
}

const struct s4d_fabric_kind s4d_fabric_torus = {
    .name = "torus",
    .summary = "a router a node in 2 or 3 dimensions, wrapped or open, dimension-ordered routing",
    .description = "Node n's NICs hang on router n, at x = n mod X, y = n / X mod Y, z = n / X / "
                   "Y. A way goes "
                   "along x, then y, then z, the shorter way round (Dally and Seitz 1987).",
    .example = "topology=torus,size_x=4,size_y=4,size_z=4,link_bandwidth_Bps=50GB/s",
    .parameter =
        {
            S4D_REQUIRED("size_x", "routers along x", 1, 1e6),
            S4D_REQUIRED("size_y", "routers along y", 1, 1e6),
            S4D_OPTIONAL("size_z", "routers along z; 1: two dimensions", 1, 1e6, 1),
            S4D_WORD("ends", "wrapped: a torus; open: a mesh", shapes),
            S4D_REQUIRED("link_bandwidth_Bps", "between two neighbours, per direction", 1, 1e15),
        },
    .room = room,
    .create = create,
    .destroy = s4d_torus_destroy,
    .route = s4d_torus_route,
    .link_name = s4d_torus_link_name,
};
