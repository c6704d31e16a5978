/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/format/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/quote.h"
#include "support/replace.h"

/* clang-format off */
const struct s4d_format s4d_formats[] = {
    {.name = "reframe-perflog", .writes = "ReFrame's performance logs: below a folder --output, SYSTEM/PARTITION/TEST.log, appended to",
     .write = s4d_write_reframe, .write_folder = s4d_write_reframe_folder},
    {.name = "github-bigger-is-better", .writes = "github-action-benchmark's customBiggerIsBetter: FLOP/s, bandwidths",
     .write = s4d_write_bigger_is_better},
    {.name = "github-smaller-is-better", .writes = "github-action-benchmark's customSmallerIsBetter: times, memory",
     .write = s4d_write_smaller_is_better},
    {.name = "junit", .writes = "JUnit XML: a test a series, failed where it got worse",
     .write = s4d_write_junit},
    {.name = "summary", .writes = "a line for mail or chat", .write = s4d_write_summary},
    {.name = NULL},
};
/* clang-format on */
const char *const s4d_format_names[] = {"reframe-perflog",
                                        "github-bigger-is-better",
                                        "github-smaller-is-better",
                                        "junit",
                                        "summary",
                                        NULL};

void s4d_write_escaped(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++)
        switch (*c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            if (*c != '\n' && *c != '\t' && s4d_unprintable(c)) {
                fputs("\xef\xbf\xbd", out);
                c += s4d_unprintable(c) - 1;
            } else {
                putc(*c, out);
            }
        }
}

int s4d_format_write(const struct s4d_format *format, const struct s4d_outcomes *outcomes,
                     const char *output, struct s4d_error *err)
{
    if (!output)
        return format->write(outcomes, stdout, err);
    if (format->write_folder)
        return format->write_folder(outcomes, output, err);
    struct s4d_replacement to;
    if (s4d_replace_open(&to, output, err))
        return -1;
    return s4d_replace_close(&to, format->write(outcomes, to.out, err), err);
}
