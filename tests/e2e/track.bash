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
    python3 - "$1" "${2-}" <<'PY'
import datetime, json, sys
for i in range(int(sys.argv[1])):
    night = str(datetime.date(2024, 3, 1) + datetime.timedelta(days=i))
    t = 1 + i / 100
    r = {"kind": "train", "model_version": "2", "backend": "host", "host_class": "cpu x2 n",
         "workload": {"name": "gpt-tiny", "hash": "f3a1"}, "gpus": 4, "grid": "1x1x4x1",
         "global_batch": 8, "precision": "f32", "clip_norm": 1.0, "load": None,
         "iteration_time_s": t, "samples_s": [t, round(t - 0.01, 6), round(t + 0.02, 6)],
         "flops_formula": 1e12, "flops_per_s": 1e12 / t, "gemm_flops_per_s": 2e12,
         "memory_peak_bytes": 1821184, "slowest_rank": 3,
         "exposed_s": {"compute": 0.7 * t, "x": 0.0, "z": 0.3 * t},
         "busbw_Bps": {"z-gather": 25e9}, "interrupted": False,
         "suite": {"name": "nightly", "experiment": "tiny", "night": night, "repeat": 1, "repeats": 1},
         "provenance": {"tool": "scale4d", "version": "0.1.0", "commit": "c%d" % (i // 2),
                        "argv": ["scale4d-run train"], "host": "n017", "time": night + "T03:00:00Z",
                        "environment": {"OMP_NUM_THREADS": "1", "SLURM_JOB_ID": str(1000 + i)}}}
    exec(sys.argv[2])
    print(json.dumps(r))
PY
}
