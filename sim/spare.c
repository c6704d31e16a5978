/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/spare.h"

#include <stdlib.h>
#include <string.h>

#include "support/error.h"
#include "support/memory.h"

enum side { OUT, IN, SIDES };

/* The NICs that traffic of a link comes out of, or goes into. */
struct cover {
    int *nic, n, cap;
    double sum_Bps;
    bool open; /* false: more than the link's own capacity, and no longer kept */
};

struct s4d_feeders {
    bool on;
    int first, n;        /* links of the fabric */
    struct cover *cover; /* [link - first][side] */
};

struct s4d_feeders *s4d_feeders_create(void)
{
    return s4d_calloc(1, sizeof(struct s4d_feeders));
}

static void forget(struct s4d_feeders *f)
{
    for (int i = 0; i < SIDES * f->n; i++)
        free(f->cover[i].nic);
    free(f->cover);
    *f = (struct s4d_feeders){.on = false};
}

void s4d_feeders_free(struct s4d_feeders *f)
{
    if (f)
        forget(f);
    free(f);
}

void s4d_feeders_watch(const struct s4d_cluster *c, bool on)
{
    struct s4d_feeders *f = c->feeders;
    forget(f);
    if (!on)
        return;
    f->on = true;
    f->first = c->n_nodes * s4d_links_per_node(c);
    f->n = c->n_links - f->first;
    f->cover = s4d_calloc((size_t)f->n * SIDES + 1, sizeof *f->cover);
    for (int i = 0; i < SIDES * f->n; i++)
        f->cover[i].open = true;
}

/* The latest first: ways come node by node. */
static bool has(const struct cover *cover, int nic)
{
    for (int i = cover->n - 1; i >= 0; i--)
        if (cover->nic[i] == nic)
            return true;
    return false;
}

static void close_cover(struct cover *cover)
{
    free(cover->nic);
    *cover = (struct cover){.open = false};
}

static void add(struct cover *cover, const struct s4d_cluster *c, int nic, double capacity_Bps)
{
    if (!cover->open || has(cover, nic))
        return;
    s4d_push(cover->nic, cover->n, cover->cap, nic);
    cover->sum_Bps += c->links[nic].capacity_Bps;
    if (cover->sum_Bps > capacity_Bps)
        close_cover(cover);
}

void s4d_feeders_note(const struct s4d_cluster *c, int out, int in, const int *links, int n)
{
    struct s4d_feeders *f = c->feeders;
    if (!f || !f->on)
        return;
    for (int i = 0; i < n; i++) {
        S4D_ASSERT(links[i] >= f->first && links[i] < f->first + f->n, "link %d", links[i]);
        struct cover *cover = f->cover + (size_t)(links[i] - f->first) * SIDES;
        double capacity_Bps = c->links[links[i]].capacity_Bps;
        add(&cover[OUT], c, out, capacity_Bps);
        add(&cover[IN], c, in, capacity_Bps);
    }
}

/* Crossings by link: those of a link are place[start[link]] .. */
struct index {
    const struct s4d_crossing *crossings;
    int *start, *place;
};

static struct index index_make(const struct s4d_cluster *c, const struct s4d_crossing *crossings,
                               int n)
{
    struct index x = {crossings, s4d_calloc((size_t)c->n_links + 1, sizeof(int)),
                      s4d_malloc((size_t)n * sizeof(int) + 1)};
    for (int i = 0; i < n; i++)
        x.start[crossings[i].link + 1]++;
    for (int l = 0; l < c->n_links; l++)
        x.start[l + 1] += x.start[l];
    for (int i = 0; i < n; i++)
        x.place[x.start[crossings[i].link]++] = i;
    memmove(x.start + 1, x.start, (size_t)c->n_links * sizeof *x.start);
    x.start[0] = 0;
    return x;
}

/* Adds `sign` times what each flow puts on the link. */
static void count(const struct index *x, int link, int sign, int64_t *total)
{
    for (int i = x->start[link]; i < x->start[link + 1]; i++) {
        const struct s4d_crossing *crossing = &x->crossings[x->place[i]];
        total[crossing->flow] += (int64_t)sign * crossing->weight;
    }
}

/* Whether every flow of the link crosses the cover at least as often. total: by flow, zeroes, also
 * afterwards. */
static bool covers(const struct index *x, const struct cover *cover, int link, int64_t *total)
{
    bool enough = cover->open;
    for (int i = 0; i < cover->n; i++)
        count(x, cover->nic[i], 1, total);
    for (int i = x->start[link]; i < x->start[link + 1] && enough; i++) {
        const struct s4d_crossing *crossing = &x->crossings[x->place[i]];
        enough = crossing->weight <= total[crossing->flow];
    }
    for (int i = 0; i < cover->n; i++)
        count(x, cover->nic[i], -1, total);
    return enough;
}

int s4d_spare_links(const struct s4d_cluster *c, const struct s4d_crossing *crossings, int n,
                    int n_flows, bool *spare)
{
    const struct s4d_feeders *f = c->feeders;
    struct index x = index_make(c, crossings, n);
    int64_t *total = s4d_calloc((size_t)n_flows + 1, sizeof *total);
    int found = 0;
    memset(spare, 0, (size_t)c->n_links * sizeof *spare);
    for (int i = 0; i < f->n; i++) {
        int link = f->first + i;
        const struct cover *cover = f->cover + (size_t)i * SIDES;
        if (x.start[link] == x.start[link + 1])
            continue;
        spare[link] = covers(&x, &cover[OUT], link, total) || covers(&x, &cover[IN], link, total);
        found += spare[link];
    }
    free(x.start);
    free(x.place);
    free(total);
    return found;
}
