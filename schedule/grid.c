/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, coordinates and groups: mixed-radix numbers in the grid's rank order. */
#include "schedule/grid.h"

#include <stdio.h>
#include <string.h>

const char *const s4d_axis_names[S4D_AXES] = {"x", "y", "z", "pipe", "data"};

enum { MAX_RANKS = 1 << 20 };

struct s4d_grid s4d_grid_make(int x, int y, int z, int data)
{
    return (struct s4d_grid){
        .size = {[S4D_X] = x, [S4D_Y] = y, [S4D_Z] = z, [S4D_PIPE] = 1, [S4D_DATA] = data},
        .order = {S4D_Y, S4D_X, S4D_Z, S4D_PIPE, S4D_DATA},
    };
}

static int grid_fail(struct s4d_error *err, const char *text)
{
    s4d_fail(err, S4D_EXIT_USAGE, "--grid",
             "expected GXxGYxGZxGDATA, four positive integers with a product of at most %d, got "
             "'%.80s'",
             MAX_RANKS, text);
    return s4d_hint(err, "for example 2x4x8x16: x 2, y 4, z 8, data 16, on 1024 ranks");
}

int s4d_grid_parse(const char *text, struct s4d_grid *grid, struct s4d_error *err)
{
    int size[4];
    int64_t ranks = 1;
    const char *p = text;
    for (int i = 0; i < 4; i++) {
        int64_t v = 0;
        const char *start = p;
        for (; *p >= '0' && *p <= '9' && v <= MAX_RANKS; p++)
            v = 10 * v + (*p - '0');
        if (p == start || v < 1 || v > MAX_RANKS || *p != (i < 3 ? 'x' : '\0'))
            return grid_fail(err, text);
        p++;
        ranks *= v;
        if (ranks > MAX_RANKS)
            return grid_fail(err, text);
        size[i] = (int)v;
    }
    *grid = s4d_grid_make(size[0], size[1], size[2], size[3]);
    return 0;
}

const char *s4d_grid_text(const struct s4d_grid *g, char *text, size_t size)
{
    snprintf(text, size, "%dx%dx%dx%d", g->size[S4D_X], g->size[S4D_Y], g->size[S4D_Z],
             g->size[S4D_DATA]);
    return text;
}

/* The axis whose name is the n characters at text, or -1. */
static int axis_find(const char *text, size_t n)
{
    for (int a = 0; a < S4D_AXES; a++)
        if (strlen(s4d_axis_names[a]) == n && strncmp(s4d_axis_names[a], text, n) == 0)
            return a;
    return -1;
}

int s4d_rank_order_parse(const char *text, struct s4d_grid *grid, struct s4d_error *err)
{
    enum s4d_axis order[S4D_AXES];
    s4d_axes seen = 0;
    const char *p = text;
    for (int i = 0; i < S4D_AXES; i++) {
        size_t n = strcspn(p, ",");
        int axis = axis_find(p, n);
        bool more = p[n] == ',';
        if (axis < 0 || (seen & S4D_AXIS(axis)) || more != (i + 1 < S4D_AXES)) {
            s4d_fail(err, S4D_EXIT_USAGE, "--rank-order",
                     "expected the axes x, y, z, pipe and data once each, innermost first, got "
                     "'%.80s'",
                     text);
            return s4d_hint(err, "the default is y,x,z,pipe,data");
        }
        seen |= S4D_AXIS(axis);
        order[i] = (enum s4d_axis)axis;
        p += n + more;
    }
    memcpy(grid->order, order, sizeof order);
    return 0;
}

s4d_axes s4d_axes_parse(const char *text)
{
    s4d_axes axes = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        int axis = axis_find(at, n);
        if (axis < 0 || (axes & S4D_AXIS(axis)))
            return 0;
        axes |= S4D_AXIS(axis);
        at += n;
        if (*at == '\0')
            return axes;
    }
}

int s4d_grid_ranks(const struct s4d_grid *grid)
{
    return s4d_group_size(grid, ~0u);
}

void s4d_grid_coordinates(const struct s4d_grid *grid, int rank, int coordinate[S4D_AXES])
{
    for (int i = 0; i < S4D_AXES; i++) {
        enum s4d_axis a = grid->order[i];
        coordinate[a] = rank % grid->size[a];
        rank /= grid->size[a];
    }
}

int s4d_grid_rank(const struct s4d_grid *grid, const int coordinate[S4D_AXES])
{
    int rank = 0;
    for (int i = S4D_AXES - 1; i >= 0; i--)
        rank = rank * grid->size[grid->order[i]] + coordinate[grid->order[i]];
    return rank;
}

int s4d_group_size(const struct s4d_grid *grid, s4d_axes axes)
{
    int n = 1;
    for (int a = 0; a < S4D_AXES; a++)
        if (axes & S4D_AXIS(a))
            n *= grid->size[a];
    return n;
}

int s4d_group_members(const struct s4d_grid *grid, int rank, s4d_axes axes, int *members)
{
    int coordinate[S4D_AXES], n = s4d_group_size(grid, axes);
    s4d_grid_coordinates(grid, rank, coordinate);
    for (int i = 0; i < n; i++) {
        /* i counts through the group's axes innermost first, so ranks ascend. */
        for (int j = 0, rest = i; j < S4D_AXES; j++) {
            enum s4d_axis a = grid->order[j];
            if (axes & S4D_AXIS(a)) {
                coordinate[a] = rest % grid->size[a];
                rest /= grid->size[a];
            }
        }
        members[i] = s4d_grid_rank(grid, coordinate);
    }
    return n;
}

int s4d_group_index(const struct s4d_grid *grid, int rank, s4d_axes axes)
{
    int coordinate[S4D_AXES], index = 0;
    s4d_grid_coordinates(grid, rank, coordinate);
    for (int i = S4D_AXES - 1; i >= 0; i--) {
        enum s4d_axis a = grid->order[i];
        if (axes & S4D_AXIS(a))
            index = index * grid->size[a] + coordinate[a];
    }
    return index;
}

struct s4d_expr s4d_constant(int64_t value)
{
    return (struct s4d_expr){.base = value, .limit = -1};
}

bool s4d_expr_is_constant(const struct s4d_expr *e)
{
    for (int a = 0; a < S4D_AXES; a++)
        if (e->stride[a])
            return false;
    return true;
}

int64_t s4d_expr_value(const struct s4d_expr *e, const int coordinate[S4D_AXES])
{
    int64_t v = e->base;
    for (int a = 0; a < S4D_AXES; a++)
        v += coordinate[a] * e->stride[a];
    if (e->limit >= 0)
        v = v < 0 ? 0 : v > e->limit ? e->limit : v;
    return v;
}
