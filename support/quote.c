/* SPDX-License-Identifier: Apache-2.0 */
/* Quoting of foreign text: terminals interpret control bytes, and a line of 16 MiB helps nobody. */
#include "support/quote.h"

#include <stdio.h>
#include <string.h>

struct s4d_quoted s4d_quote(const char *text)
{
    struct s4d_quoted q;
    size_t room = sizeof q.text - 6, n = strlen(text);
    size_t shown = n < room ? n : room - 3, at = 0;
    q.text[at++] = '\'';
    for (size_t i = 0; i < shown; i++)
        q.text[at++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    snprintf(q.text + at, sizeof q.text - at, "%s'", shown < n ? "..." : "");
    return q;
}
