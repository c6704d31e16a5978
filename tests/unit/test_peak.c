/* SPDX-License-Identifier: Apache-2.0 */
/* Which device's peak a name stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "real/peak.h"

static void test_names(void **state)
{
    static const struct {
        const char *name;
        enum s4d_type type;
        bool tf32;
        double tera; /* 0: not known */
    } rows[] = {
        {"NVIDIA A100-SXM4-40GB", S4D_BF16, false, 312},
        {"NVIDIA A100 80GB PCIe", S4D_F16, false, 312},
        {"NVIDIA A100-SXM4-80GB", S4D_F32, true, 156},
        {"NVIDIA H100 80GB HBM3", S4D_BF16, true, 989}, /* tf32 is of f32 alone */
        {"NVIDIA H100 PCIe", S4D_BF16, false, 756.5},
        {"NVIDIA H200", S4D_F64, false, 66.9},
        {"NVIDIA GH200 480GB", S4D_F32, false, 66.9},
        {"NVIDIA H100 NVL", S4D_BF16, false, 0},
        {"NVIDIA H200 NVL", S4D_BF16, false, 0},
        {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", S4D_BF16, false, 0},
        {"AMD EPYC 7763", S4D_F32, false, 0},
        {"", S4D_F32, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct s4d_peak p = s4d_advertised_peak(rows[i].name, rows[i].type, rows[i].tf32);
        if (p.flops_per_s != 1e12 * rows[i].tera || (p.source != NULL) != (rows[i].tera > 0))
            fail_msg("%s: %g", rows[i].name, p.flops_per_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
