/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's chunks: what a channel sends in one step (NCCL 2.30, src/include/device.h, coll_sizes.h,
 * and calcCollChunking in src/enqueue.cc).
 *
 * A channel has a buffer of 8 slots in each direction. LL has 8 lines of 16 B for each of 512
 * threads a slot, half of it data; LL128 has 120 words of 8 B for each of 640 threads, 15 of 16 are
 * data; Simple has 512 KiB. A chunk is a slot, of Simple rings four; LL128 trees and NVLS take less
 * where few chunks would be under way. */
#include <math.h>

#include "sim/collective/channels.h"
#include "sim/collective/messages.h"
#include "sim/collective/nvls.h"

static const double slot_B[S4D_PROTOCOLS] = {
    [S4D_LL] = 8 * 512 * 16 / 2, [S4D_LL128] = 120 * 640 * 8 / 16 * 15, [S4D_SIMPLE] = 524288};

/* Halves a chunk while fewer than `enough` of them are under way and it is larger than `least_B`.
 */
static double halve(double chunk_B, double channel_B, double enough, double least_B)
{
    while (floor(channel_B / chunk_B) < enough && chunk_B > least_B)
        chunk_B /= 2;
    return chunk_B;
}

static double tree_chunk_B(const struct s4d_channels *ch, enum s4d_protocol p, double channel_B)
{
    double chunk_B = slot_B[p], per_node = (double)ch->members / ch->nodes;
    if (p == S4D_LL128) {
        double steps = 1 + ilogb(ch->nodes) + 0.1 * per_node;
        chunk_B = halve(chunk_B, channel_B, steps * 64 / per_node, 131072);
        return halve(chunk_B, channel_B, steps * 16 / per_node, 32768);
    }
    return chunk_B;
}

double s4d_nvls_chunk_B(const struct s4d_channels *ch, double channel_B)
{
    static const double node[][2] = {{64, 65536}, {8, 32768}, {2, 16384}};
    static const double tree[][2] = {{4, 65536}, {1, 32768}};
    const double(*rule)[2] = ch->nodes > 1 ? tree : node;
    double chunk_B = ch->nodes >= 4 ? 65536 : 131072;
    for (int i = 0; i < (ch->nodes > 1 ? 2 : 3); i++)
        if (channel_B < rule[i][0] * chunk_B && chunk_B > rule[i][1])
            chunk_B = rule[i][1];
    return chunk_B;
}

struct s4d_passes s4d_library_passes(const struct s4d_machine *m, const struct s4d_channels *shape,
                                     const struct s4d_cost *cost)
{
    if (s4d_library_is_ideal(m))
        return (struct s4d_passes){.fixed = 16};
    /* A channel here may stand for several of the library's; a volume holds the protocol's loss. */
    enum s4d_protocol p = cost->protocol < S4D_PROTOCOLS ? cost->protocol : S4D_SIMPLE;
    double bytes = cost->volume_B * cost->efficiency;
    double channels = fmax(shape->library_channels, shape->n), chunk_B = slot_B[p];
    if (shape->algorithm == &s4d_nvls) {
        channels = shape->members_per_node * m->library.nvls.channels.value;
        chunk_B = s4d_nvls_chunk_B(shape, bytes / channels);
    } else if (shape->algorithm == &s4d_tree) {
        chunk_B = tree_chunk_B(shape, p, bytes / channels);
    } else if (shape->algorithm == &s4d_ring && p == S4D_SIMPLE) {
        chunk_B *= 4;
    }
    return (struct s4d_passes){.chunk_B = chunk_B * channels / shape->n / cost->efficiency};
}
