/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track check: whether the store is whole. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/track/track.h"

static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = s4d_track_store_option}, {.options = NULL}};

static void tell(void *to, const char *fault)
{
    (void)to;
    printf("%s\n", fault);
}

static int check(const char *file, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    int64_t records = 0;
    int rc = s4d_store_open(&store, file, S4D_STORE_READ, err);
    if (rc == 0)
        rc = s4d_store_check(store, tell, NULL, &records, err);
    if (rc >= 0) {
        printf("# %" PRId64 " records read  %s  %s\n", records, rc ? "DAMAGED" : "OK",
               s4d_store_file(store));
        if (rc)
            rc = s4d_store_damage(store, err);
    }
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    char *store = NULL;
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Reads every page and every record of the store, and says what is "
                              "damaged. Exit status 65 where something is.",
                              argc, argv, &store, NULL, &err);
    if (rc == 0)
        rc = check(store, &err);
    s4d_options_free(groups, &store);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_check = {
    .name = "check",
    .summary = "read all of the store, and say whether it is whole",
    .run = run,
};
