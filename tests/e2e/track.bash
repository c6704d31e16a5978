# SPDX-License-Identifier: Apache-2.0
# For the tests of scale4d track: a store of the test's own, and records of nights.

eval "$(declare -f setup | sed '1s/setup/lib_setup/')"
setup() {
    lib_setup
    export SCALE4D_STORE=$dir/store.sqlite
}

# nights N [PYTHON]: a record of scale4d-run train from each of N nights since 2024-03-01, small but
# with all that matters, changed by the lines of Python, which know r and the night i. Of night i the
# samples are 1 + i/100 s, and 0.01 s below and 0.02 s above it; commits last two nights.
nights() {
    TZ=UTC0 awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++) {
            t = 1 + i / 100
            night = strftime("%Y-%m-%d", 1709262000 + 86400 * i)
            printf "{\"kind\": \"train\", \"model_version\": \"2\", \"backend\": \"host\", "
            printf "\"host_class\": \"cpu x2 n\", \"workload\": {\"name\": \"gpt-tiny\", \"hash\": \"f3a1\"}, "
            printf "\"gpus\": 4, \"grid\": \"1x1x4x1\", \"global_batch\": 8, \"precision\": \"f32\", "
            printf "\"clip_norm\": 1.0, \"load\": null, \"iteration_time_s\": %.6f, ", t
            printf "\"samples_s\": [%.6f, %.6f, %.6f], ", t, t - 0.01, t + 0.02
            printf "\"flops_formula\": 1e12, \"flops_per_s\": %.6f, \"gemm_flops_per_s\": 2e12, ", 1e12 / t
            printf "\"memory_peak_bytes\": 1821184, \"slowest_rank\": 3, "
            printf "\"exposed_s\": {\"compute\": %.6f, \"x\": 0.0, \"z\": %.6f}, ", 0.7 * t, 0.3 * t
            printf "\"busbw_Bps\": {\"z-gather\": 25e9}, \"interrupted\": false, "
            printf "\"suite\": {\"name\": \"nightly\", \"experiment\": \"tiny\", \"night\": \"%s\", ", night
            printf "\"repeat\": 1, \"repeats\": 1}, \"provenance\": {\"tool\": \"scale4d\", "
            printf "\"version\": \"0.1.0\", \"commit\": \"c%d\", \"argv\": [\"scale4d-run train\"], ", i / 2
            printf "\"host\": \"n017\", \"time\": \"%sT03:00:00Z\", ", night
            printf "\"environment\": {\"OMP_NUM_THREADS\": \"1\", \"SLURM_JOB_ID\": \"%d\"}}}\n", 1000 + i
        }
    }' | if [ -z "${2-}" ]; then cat; else python3 -c '
import json, sys
for i, line in enumerate(sys.stdin):
    r = json.loads(line)
    exec(sys.argv[1])
    print(json.dumps(r))' "$2"; fi
}
