/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that cannot fail, growing arrays, and an arena.
 *
 * Running out of memory ends the program (exit 70) with a message; callers need no check. */
#ifndef S4D_SUPPORT_MEMORY_H
#define S4D_SUPPORT_MEMORY_H

#include <stddef.h>

void *s4d_malloc(size_t bytes);              /* uninitialised */
void *s4d_calloc(size_t count, size_t size); /* zeroed */
void *s4d_realloc(void *p, size_t bytes);
char *s4d_strdup(const char *text);
char *s4d_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A growing array is three fields `T *v; int n, cap;`. s4d_push appends one element:
 *     s4d_push(list.v, list.n, list.cap, element);                                     */
#define s4d_push(v, n, cap, ...)                                                                   \
    do {                                                                                           \
        if ((n) == (cap))                                                                          \
            (v) = s4d_grow((v), &(cap), sizeof *(v));                                              \
        (v)[(n)++] = __VA_ARGS__;                                                                  \
    } while (0)

void *s4d_grow(void *v, int *cap, size_t size); /* doubles *cap (at least 16) */

/* An arena: everything allocated from it is freed at once. Zeroed memory. */
struct s4d_arena {
    struct s4d_arena_block *blocks;
};
void *s4d_arena_alloc(struct s4d_arena *a, size_t bytes);
char *s4d_arena_printf(struct s4d_arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void s4d_arena_free(struct s4d_arena *a);

#endif
