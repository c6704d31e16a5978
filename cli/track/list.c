/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track list: the series of the store. */
#include <stdio.h>

#include "cli/track/track.h"

static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = s4d_track_store_option}, {.options = NULL}};

static int list(const char *file, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    struct s4d_series_list all = {0};
    int rc = s4d_store_open(&store, file, S4D_STORE_READ, err);
    if (rc == 0)
        rc = s4d_store_series(store, &all, err);
    if (rc == 0)
        printf("#   id  nights  records  first       last        series\n");
    for (int i = 0; rc == 0 && i < all.n; i++)
        printf("%6lld  %6d  %7lld  %s  %s  %s\n", (long long)all.v[i].id, all.v[i].nights,
               (long long)all.v[i].records, s4d_date(all.v[i].first).text,
               s4d_date(all.v[i].last).text, all.v[i].label);
    s4d_series_list_free(&all);
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    char *store = NULL;
    struct s4d_error err = {0};
    int rc =
        s4d_options_argv(groups, "Lists the series of the store.", argc, argv, &store, NULL, &err);
    if (rc == 0)
        rc = list(store, &err);
    s4d_options_free(groups, &store);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_list = {
    .name = "list", .summary = "the series of the store, a line each", .run = run};
