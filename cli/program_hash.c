/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program_hash.h"

#include <stdlib.h>

#include "support/file.h"
#include "support/record.h" /* for: s4d_hash */

int s4d_program_hash(char hex[17], struct s4d_error *err)
{
    char *bytes;
    size_t n;
    if (s4d_file_read("/proc/self/exe", &bytes, &n, err))
        return -1;
    s4d_hash(bytes, n, hex);
    free(bytes);
    return 0;
}
