/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/timeline.h"

#include <stdio.h>

void s4d_timeline_rank(struct s4d_timeline *t, const struct s4d_program *p, int rank,
                       const char *suffix)
{
    int c[S4D_AXES];
    char name[128], pipe[32] = "";
    s4d_grid_coordinates(&p->grid, rank, c);
    if (p->grid.size[S4D_PIPE] > 1)
        snprintf(pipe, sizeof pipe, "pipe %d, ", c[S4D_PIPE]);
    snprintf(name, sizeof name, "rank %d (x %d, y %d, z %d, %sdata %d)%s", rank, c[S4D_X], c[S4D_Y],
             c[S4D_Z], pipe, c[S4D_DATA], suffix);
    s4d_timeline_process(t, rank, name);
    for (int s = 0; s < S4D_STREAMS; s++)
        if (p->stream_length[s] > 0)
            s4d_timeline_thread(t, rank, s, s4d_streams[s].name);
}

void s4d_timeline_op(struct s4d_timeline *t, const struct s4d_program *p, int rank, int op,
                     int iteration, double start_s, double end_s)
{
    const struct s4d_op *o = &p->ops[op];
    char name[192], arguments[256];
    int64_t bytes = s4d_communicates(o->kind) ? s4d_collective_bytes(&o->c, o->kind)
                                              : o->bytes_read + o->bytes_written;
    snprintf(name, sizeof name, "%s %s", s4d_op_kinds[o->kind].name, o->label.name);
    snprintf(arguments, sizeof arguments,
             "\"op\":%d,\"iteration\":%d,\"layer\":%d,\"micro_batch\":%d,\"bytes\":%lld,"
             "\"flops\":%.0f",
             op, iteration, o->label.layer, o->label.micro_batch, (long long)bytes, o->flops);
    s4d_timeline_event(t, rank, (int)o->stream, name, s4d_phase_names[o->label.phase], start_s,
                       end_s, arguments);
}
