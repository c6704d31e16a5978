/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sim/tune/terms.h. */
#include "cli/explain.h"

static void print_cell(const json_t *row, const char *key, FILE *out)
{
    const json_t *value = json_object_get(row, key);
    if (json_is_number(value))
        fprintf(out, " %12.3f", 1e3 * json_number_value(value));
    else
        fprintf(out, " %12s", "-");
}

static void print_row(const char *name, const json_t *row, FILE *out)
{
    static const char *const keys[] = {"published_s", "links_s", "model_s", "simulated_s"};
    fprintf(out, "%-10s", name);
    for (int i = 0; i < 4; i++)
        print_cell(row, keys[i], out);
    double model = json_number_value(json_object_get(row, "model_s")),
           simulated = json_number_value(json_object_get(row, "simulated_s"));
    if (simulated > 0)
        fprintf(out, " %+8.1f", 100 * (model / simulated - 1));
    fputc('\n', out);
}

void s4d_terms_print(const json_t *terms, FILE *out)
{
    const char *source = json_string_value(json_object_get(terms, "source"));
    size_t i;
    json_t *row;
    fprintf(out,
            "\n# terms of the models beside the simulated time of the same ops, hidden work "
            "included\n# published: arXiv 2502.08145 sec. V-B, each op once (%s); links: the same, "
            "bandwidths of this machine's links\n"
            "# model: all ops of the program, as scale4d tune ranks; its iteration counts overlap\n"
            "%-10s %12s %12s %12s %12s %8s\n%-10s %12s %12s %12s %12s %8s\n",
            source ? source : "no table of its authors for this machine", "term", "published",
            "links", "model", "simulated", "error", "", "(ms)", "(ms)", "(ms)", "(ms)", "(%)");
    json_array_foreach(json_object_get(terms, "terms"), i, row)
        print_row(json_string_value(json_object_get(row, "term")), row, out);
    print_row("total", json_object_get(terms, "total"), out);
}
