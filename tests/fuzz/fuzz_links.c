/* SPDX-License-Identifier: Apache-2.0 */
/* The table of links: any bytes are a table or a clear message; a table can be summed up. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "plots/links.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s4d_links_table t;
    struct s4d_lines lines;
    struct s4d_error err;
    if (size == 0)
        return 0;
    FILE *in = fmemopen((void *)(uintptr_t)data, size, "r"), *out = fopen("/dev/null", "w");
    if (!in || !out)
        abort();
    s4d_lines_of(&lines, in, "fuzz", S4D_LINKS_LINE_MAX);
    int rc = s4d_links_parse(&t, &lines, &err);
    if (rc == 0)
        s4d_links_print(&t, out);
    else if (err.exit != S4D_EXIT_DATA || err.text[0] == '\0')
        abort();
    s4d_links_free(&t);
    s4d_lines_close(&lines);
    fclose(in);
    fclose(out);
    return 0;
}
