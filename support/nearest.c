/* SPDX-License-Identifier: Apache-2.0 */
/* Optimal string alignment distance (Damerau 1964, restricted to swaps of neighbours), and the hint
 * made of it. */
#include "support/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/quote.h"

enum { LONGEST = 63 };

static int folded(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

static int smallest(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

int s4d_edit_distance(const char *a, const char *b)
{
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int differs = folded(a[i - 1]) != folded(b[j - 1]);
            d[i][j] = smallest(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs);
            bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                           folded(a[i - 2]) == folded(b[j - 1]);
            if (swapped && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

static bool starts_with(const char *name, const char *start)
{
    for (; *start; name++, start++) {
        if (folded(*name) != folded(*start))
            return false;
    }
    return true;
}

const char *s4d_nearest(const char *name, const char *const *names, int n)
{
    const char *best = NULL;
    int length = (int)strnlen(name, LONGEST), least = (length + 2) / 3 + 1;
    for (int i = 0; i < n; i++) {
        bool start = length >= 2 && starts_with(names[i], name);
        int distance = start ? 1 : s4d_edit_distance(name, names[i]);
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

int s4d_hint_nearest(struct s4d_error *err, const char *name, const char *const *names, int n)
{
    const char *near = s4d_nearest(name, names, n);
    if (near)
        return s4d_hint(err, "did you mean %s?", near);
    char list[900] = "";
    size_t at = 0;
    for (int i = 0; i < n && at < sizeof list - 80; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%.70s", i ? ", " : "", names[i]);
    return n > 0 ? s4d_hint(err, "known: %s%s", list, at < sizeof list - 80 ? "" : ", ...") : -1;
}

int s4d_hint_file(struct s4d_error *err, const char *name, const char *const *names, int n)
{
    char beside[300];
    int length = snprintf(beside, sizeof beside, "%s.yaml", name);
    if (length > 0 && length < (int)sizeof beside && access(beside, F_OK) == 0)
        return s4d_hint(err, "a file is named with its ending: %s", s4d_quote(beside).text);
    return s4d_hint_nearest(err, name, names, n);
}
