/* SPDX-License-Identifier: Apache-2.0 */
/* Quoting of foreign text: terminals interpret control bytes, and a line of 16 MiB helps nobody. */
#include "support/quote.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct s4d_quoted s4d_quote(const char *text)
{
    struct s4d_quoted q;
    size_t room = sizeof q.text - 6, n = strlen(text);
    size_t shown = n <= room ? n : room - 3, at = 0;
    q.text[at++] = '\'';
    for (size_t i = 0; i < shown; i++)
        q.text[at++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    snprintf(q.text + at, sizeof q.text - at, "%s'", shown < n ? "..." : "");
    return q;
}

size_t s4d_unprintable(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (c[0] && (c[0] < ' ' || c[0] == 127))
        return 1;
    if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* U+0080 to U+009F */
        return 2;
    if (c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) || /* U+2028 to U+202E */
                         (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9)))  /* U+2066 to U+2069 */
        return 3;
    return 0;
}

static void print(const char *text, bool lines, FILE *out)
{
    for (size_t n; *text; text += n ? n : 1) {
        n = lines && *text == '\n' ? 0 : s4d_unprintable(text);
        fputc(n ? '?' : *text, out);
    }
}

void s4d_print_line(const char *text, FILE *out)
{
    print(text, false, out);
}

void s4d_print_lines(const char *text, FILE *out)
{
    print(text, true, out);
}
