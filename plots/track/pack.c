/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/pack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/error.h"
#include "support/memory.h"

/* In the place of a number: as s4d_record_write writes a real, as it writes an integer, or as it
 * stands between two of the third. */
enum { REAL = 1, INTEGER = 2, AS_IT_IS = 3 };

enum { NUMBER_MAX = 40 };

/* Of a JSON real with 17 digits, as jansson writes it: "1.0", "1e-5". */
static void write_real(double v, char text[NUMBER_MAX])
{
    snprintf(text, NUMBER_MAX, "%.17g", v);
    char *e = strchr(text, 'e');
    if (!e && !strchr(text, '.')) {
        strcat(text, ".0");
    } else if (e) {
        char *from = e + 1, *to = e + 1;
        if (*from == '-')
            to++;
        if (*from == '-' || *from == '+')
            from++;
        while (*from == '0' && from[1])
            from++;
        memmove(to, from, strlen(from) + 1);
    }
}

static void write_integer(double v, char text[NUMBER_MAX])
{
    snprintf(text, NUMBER_MAX, "%lld", (long long)v);
}

static bool is_exact_integer(double v)
{
    return fabs(v) <= 9007199254740992.0 && v == floor(v); /* 2^53 */
}

static int mark_of(double v, const char *token, size_t n)
{
    char text[NUMBER_MAX];
    bool plain = n < NUMBER_MAX && isfinite(v);
    if (plain && memchr(token, '.', n) == NULL && is_exact_integer(v)) {
        write_integer(v, text);
        if (strlen(text) == n && memcmp(text, token, n) == 0)
            return INTEGER;
    }
    if (plain) {
        write_real(v, text);
        if (strlen(text) == n && memcmp(text, token, n) == 0)
            return REAL;
    }
    return AS_IT_IS;
}

/* The string that starts at json[i]: where it ends, behind its quote. */
static size_t string_end(const char *json, size_t n, size_t i)
{
    for (i++; i < n && json[i] != '"'; i++)
        if (json[i] == '\\')
            i++;
    return i < n ? i + 1 : n;
}

void s4d_pack(struct s4d_packed *p, const char *json, size_t n)
{
    /* A number of one digit, kept as it is, becomes three bytes. */
    *p = (struct s4d_packed){.text = s4d_malloc(3 * n + 1)};
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        if (json[i] == '"') {
            end = string_end(json, n, i);
        } else if (json[i] == '-' || (json[i] >= '0' && json[i] <= '9')) {
            end = i + strspn(json + i, "+-.0123456789eE");
            end = end > n ? n : end;
            double v = strtod(json + i, NULL);
            int mark = mark_of(v, json + i, end - i);
            s4d_push(p->number, p->numbers, p->cap, v);
            p->text[p->n++] = (char)mark;
            if (mark != AS_IT_IS) {
                i = end;
                continue;
            }
            memcpy(p->text + p->n, json + i, end - i);
            p->n += end - i;
            p->text[p->n++] = AS_IT_IS;
            i = end;
            continue;
        }
        memcpy(p->text + p->n, json + i, end - i);
        p->n += end - i;
        i = end;
    }
    p->text[p->n] = '\0';
}

void s4d_packed_free(struct s4d_packed *p)
{
    free(p->text);
    free(p->number);
    *p = (struct s4d_packed){0};
}

/* Behind the mark at text[i] and, of one that is kept as it is, its second one. 0: there is none.
 */
static size_t behind_mark(const struct s4d_packed *p, size_t i)
{
    if (p->text[i] != AS_IT_IS)
        return i + 1;
    const char *second = memchr(p->text + i + 1, AS_IT_IS, p->n - i - 1);
    return second ? (size_t)(second - p->text) + 1 : 0;
}

static bool is_mark(char c)
{
    return c == REAL || c == INTEGER || c == AS_IT_IS;
}

/* What stands for number k, whose mark is text[i] and which ends before text[end]. */
static size_t write_number(const struct s4d_packed *p, size_t i, size_t end, int k, bool ordinals,
                           char *to)
{
    if (ordinals)
        return (size_t)sprintf(to, "%d", k);
    if (p->text[i] == AS_IT_IS) {
        memcpy(to, p->text + i + 1, end - i - 2);
        return end - i - 2;
    }
    if (p->text[i] == REAL)
        write_real(p->number[k], to);
    else
        write_integer(is_exact_integer(p->number[k]) ? p->number[k] : 0, to);
    return strlen(to);
}

static char *put_together(const struct s4d_packed *p, bool ordinals, size_t *n)
{
    char *json = s4d_malloc(p->n + (size_t)p->numbers * NUMBER_MAX + 1);
    bool good = true;
    int k = 0;
    *n = 0;
    for (size_t i = 0, end; good && i < p->n; i = end) {
        end = i + 1;
        if (!is_mark(p->text[i])) {
            json[(*n)++] = p->text[i];
        } else if ((good = k < p->numbers && (end = behind_mark(p, i)) != 0)) {
            *n += write_number(p, i, end, k, ordinals, json + *n);
            k++;
        }
    }
    json[*n] = '\0';
    if (good && k == p->numbers)
        return json;
    free(json);
    return NULL;
}

char *s4d_unpack(const struct s4d_packed *p, size_t *n)
{
    return put_together(p, false, n);
}

char *s4d_pack_ordinals(const struct s4d_packed *p)
{
    size_t n;
    return put_together(p, true, &n);
}

char *s4d_pack_shape(const struct s4d_packed *p)
{
    char *shape = s4d_malloc(p->n + 1);
    size_t to = 0;
    for (size_t i = 0, end; i < p->n; i = end) {
        end = i + 1;
        if (is_mark(p->text[i])) {
            shape[to++] = '0';
            end = behind_mark(p, i);
            if (end == 0)
                break;
        } else if (p->text[i] == '"') {
            end = string_end(p->text, p->n, i);
            size_t next = end + strspn(p->text + end, " \t\r\n");
            size_t keep = next < p->n && p->text[next] == ':' ? end - i : 1;
            memcpy(shape + to, p->text + i, keep);
            to += keep;
        } else if (!strchr(" \t\r\n", p->text[i])) {
            shape[to++] = p->text[i];
        }
    }
    shape[to] = '\0';
    return shape;
}
