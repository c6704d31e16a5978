/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/page/svg.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plots/format/format.h" /* for: s4d_write_escaped */

const char *const s4d_ink_names[S4D_INKS] = {
    [0] = "axis",
    [S4D_INK_GRID] = "grid",
    [S4D_INK_RANGE] = "range",
    [S4D_INK_SAMPLES] = "samples",
    [S4D_INK_MEDIAN] = "median",
    [S4D_INK_CHANGE] = "change",
    [S4D_INK_BAND] = "band",
    [S4D_INK_SIMULATED] = "simulated",
    [S4D_INK_LEVEL] = "level",
    [S4D_INK_RESTART] = "restart",
    [S4D_INK_OLDER] = "older",
};

/* A tag from its < to its >, and where the text goes on. */
struct tag {
    const char *at, *end;
};

/* The value of an attribute, in either kind of quotes and with blanks around its =. */
static bool attribute(const struct tag *tag, const char *name, const char **value, size_t *n)
{
    size_t length = strlen(name);
    for (const char *c = tag->at + 1; c + length < tag->end; c++) {
        if (!isspace((unsigned char)c[-1]) || strncmp(c, name, length) != 0)
            continue;
        const char *v = c + length;
        v += strspn(v, " ");
        if (*v != '=')
            continue;
        v++;
        v += strspn(v, " ");
        const char *close = *v == '"' || *v == '\'' ? memchr(v + 1, *v, (size_t)(tag->end - v)) : 0;
        if (!close)
            return false;
        *value = v + 1;
        *n = (size_t)(close - v - 1);
        return true;
    }
    return false;
}

static bool is(const struct tag *tag, const char *name)
{
    size_t n = strlen(name);
    return strncmp(tag->at + 1, name, n) == 0 && strchr(" \t\n/>", tag->at[1 + n]) != NULL;
}

/* rgb(0, 0, N) is ink N; everything else the axis'. */
static int ink_of(const struct tag *tag, const char *name)
{
    const char *value;
    size_t n;
    int red, green, blue;
    if (attribute(tag, name, &value, &n) &&
        sscanf(value, "rgb( %d , %d , %d", &red, &green, &blue) == 3 && red == 0 && green == 0 &&
        blue > 0 && blue < S4D_INKS)
        return blue;
    return 0;
}

static void write_number(FILE *out, double value)
{
    double tenths = round(10 * value);
    if (fmod(tenths, 10) == 0)
        fprintf(out, "%.0f", tenths / 10 + 0.0);
    else
        fprintf(out, "%.1f", tenths / 10);
}

/* "M1.00,2.00 L3.04,4.00  " becomes "M1,2L3,4"; dots: a move without a line gets one of no length,
 * which a round cap makes a point. */
static void write_coordinates(FILE *out, const char *text, size_t n, bool dots)
{
    const char *end = text + n;
    bool letter = true, moved = false;
    while (text < end) {
        if (isdigit((unsigned char)*text) || *text == '-' || *text == '.') {
            char *after;
            double value = strtod(text, &after);
            if (!letter)
                putc(' ', out);
            write_number(out, value);
            letter = false;
            text = after > text ? after : text + 1;
        } else if (*text == ',') {
            putc(',', out);
            letter = true;
            text++;
        } else if (isalpha((unsigned char)*text)) {
            if (dots && moved && *text == 'M')
                fputs("h0", out);
            moved = *text == 'M';
            putc(*text++, out);
            letter = true;
        } else {
            text++;
        }
    }
    if (dots && moved)
        fputs("h0", out);
}

static void write_shape(FILE *out, const struct tag *tag, const char *name, const char *coordinates,
                        const char *colour)
{
    const char *value;
    size_t n;
    int ink = ink_of(tag, colour);
    if (!attribute(tag, coordinates, &value, &n) || n == 0)
        return;
    fprintf(out, "<%s class=\"%s\" %s=\"", name, s4d_ink_names[ink], coordinates);
    write_coordinates(out, value, n, ink == S4D_INK_SAMPLES);
    fputs("\"/>", out);
}

/* A group is kept where it places text; returns whether. */
static bool write_group(FILE *out, const struct tag *tag)
{
    const char *value;
    size_t n;
    if (!attribute(tag, "transform", &value, &n))
        return false;
    fprintf(out, "<g class=\"%s\" transform=\"%.*s\"", s4d_ink_names[ink_of(tag, "fill")], (int)n,
            value);
    if (attribute(tag, "text-anchor", &value, &n) && strncmp(value, "start", n) != 0)
        fprintf(out, " text-anchor=\"%.*s\"", (int)n, value);
    putc('>', out);
    return true;
}

static void write_head(FILE *out, const char *svg, const char *class, const char *label)
{
    const char *box = strstr(svg, "viewBox=\""), *value = "0 0 1 1";
    size_t n = strlen(value);
    if (box) {
        value = box + strlen("viewBox=\"");
        n = strcspn(value, "\"");
    }
    fprintf(out, "<svg class=\"%s\" viewBox=\"%.*s\" role=\"img\" aria-label=\"", class, (int)n,
            value);
    s4d_write_escaped(out, label);
    fputs("\">", out);
}

void s4d_svg_inline(FILE *out, const char *svg, const char *class, const char *label)
{
    bool kept[64] = {false};
    int depth = 0;
    bool in_text = false;
    write_head(out, svg, class, label);
    const char *body = strstr(svg, "</defs>");
    for (const char *c = body ? body + strlen("</defs>") : ""; *c;) {
        if (*c != '<') {
            if (in_text)
                putc(*c, out);
            c++;
            continue;
        }
        struct tag tag = {c, strchr(c, '>')};
        if (!tag.end)
            break;
        c = tag.end + 1;
        if (is(&tag, "title")) {
            const char *close = strstr(c, "</title>");
            c = close ? close + strlen("</title>") : c + strlen(c);
        } else if (is(&tag, "g") && depth < 64) {
            kept[depth++] = write_group(out, &tag);
        } else if (is(&tag, "/g") && depth > 0) {
            if (kept[--depth])
                fputs("</g>", out);
        } else if (is(&tag, "path")) {
            write_shape(out, &tag, "path", "d", "stroke");
        } else if (is(&tag, "polygon")) {
            write_shape(out, &tag, "polygon", "points", "fill");
        } else if (is(&tag, "text") || is(&tag, "/text")) {
            in_text = tag.at[1] != '/';
            fputs(in_text ? "<text>" : "</text>", out);
        }
    }
    fputs("</svg>", out);
}
