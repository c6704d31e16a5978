/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that cannot fail, and an arena of growing blocks. */
#include "support/memory.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/error.h"

static void *checked(void *p, size_t bytes)
{
    S4D_ASSERT(p || bytes == 0, "out of memory asking for %zu bytes", bytes);
    return p;
}

void *s4d_malloc(size_t bytes)
{
    return checked(malloc(bytes ? bytes : 1), bytes);
}

void *s4d_calloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1), size);
}

void *s4d_realloc(void *p, size_t bytes)
{
    return checked(realloc(p, bytes ? bytes : 1), bytes);
}

char *s4d_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(s4d_malloc(n), text, n);
}

char *s4d_asprintf(const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    char *text = s4d_malloc((size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void *s4d_grow(void *v, int *cap, size_t size)
{
    S4D_ASSERT(*cap <= INT_MAX / 2, "an array of more than %d elements", *cap);
    *cap = *cap < 16 ? 16 : 2 * *cap;
    return s4d_realloc(v, (size_t)*cap * size);
}

struct s4d_arena_block {
    struct s4d_arena_block *next;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

void *s4d_arena_alloc(struct s4d_arena *a, size_t bytes)
{
    const size_t align = _Alignof(max_align_t), block = 64 * 1024;
    bytes = (bytes + align - 1) / align * align;
    if (!a->blocks || a->blocks->size - a->blocks->used < bytes) {
        size_t size = bytes > block ? bytes : block;
        struct s4d_arena_block *b = s4d_calloc(1, sizeof *b + size);
        b->size = size;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = a->blocks->bytes + a->blocks->used;
    a->blocks->used += bytes;
    return p;
}

char *s4d_arena_printf(struct s4d_arena *a, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    char *text = s4d_arena_alloc(a, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

void s4d_arena_free(struct s4d_arena *a)
{
    while (a->blocks) {
        struct s4d_arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}
