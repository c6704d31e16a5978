#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# provenance.devices: what NVIDIA's management library says of the GPUs, on its double.

load lib

double=${BUILD:-build}/tests/double
setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    [ -x "${BUILD:-build}/tests/double/scale4d-run" ] || skip "built without CUDA"
}

# trains NUMBER_OF_RANKS [VARIABLE=VALUE...]: the record is in $dir/out.
trains() {
    ends 0 -- env "${@:2}" "$mpirun" -n "$1" "$double/scale4d-run" train --workload gpt-tiny \
        --global-batch 8 --grid "$1x1x1x1" --iterations 2 --precision f32 --backend cuda --json
}
nvml=LD_LIBRARY_PATH=$PWD/$double/nvml

# holds PYTHON: it is true of d, the record's provenance.devices.
holds() {
    python3 - "$dir/out" "$1" <<'PY' || { echo "not so: $1"; return 1; }
import json, sys
d = json.load(open(sys.argv[1]))["provenance"]["devices"]
if not eval(sys.argv[2]):
    sys.exit(json.dumps(d, indent=1))
PY
}

@test "devices: without the library a GPU's name and address" {
    trains 2
    holds 'd["all"]["name"] == "double of a GPU, its times mean nothing" and d["all"]["memory_bytes"] == 16 << 30'
    holds '[r["pci"] for r in d["ranks"]] == ["0000:01:00.0", "0000:02:00.0"]'
    holds 'not any(k in r for r in d["ranks"] for k in ("uuid", "before", "after"))'
}

@test "devices: all that the library tells, common parts once" {
    trains 2 "$nvml"
    holds 'd["all"]["driver"] == "575.57.08" and d["all"]["persistence"] and not d["all"]["mig"]'
    holds 'd["all"]["sm_clock_max_Hz"] == 1980e6 and d["all"]["memory_clock_max_Hz"] == 2619e6'
    holds 'd["all"]["power_limit_W"] == 700 and "host" in d["all"]'
    holds '[r["rank"] for r in d["ranks"]] == [0, 1] and d["ranks"][1]["uuid"].endswith("1")'
    holds 'd["ranks"][1]["serial"] == "1650022000001" and "driver" not in d["ranks"][0]'
    holds 'all(r[w] == {"sm_clock_Hz": 1755e6, "memory_clock_Hz": 2619e6, "power_W": 412.345,
        "temperature_C": 45, "throttle": ["idle"], "throttled_power_s": 4, "throttled_thermal_s": 4,
        "ecc_uncorrected": 0, "ecc_uncorrected_ever": 7} for r in d["ranks"] for w in ("before", "after"))'
    [ "$(grep -c '^warning' "$dir/err")" -eq 0 ]
}

@test "devices: a GPU that was held back, or had memory errors, in the run is named" {
    trains 2 "$nvml" S4D_DOUBLE_NVML_HOT=1
    grep -qE '^warning: rank 1 \(.*, double of a GPU, its times mean nothing, GPU-d0b1e.*1, 1650022000001, 0000:02:00.0\) was held back by its temperature for 1.50 s of the run' "$dir/err"
    grep -q '^warning: rank 1 (.* met 1 memory errors' "$dir/err"
    [ "$(grep -c '^warning' "$dir/err")" -eq 2 ]
    holds 'd["ranks"][1]["after"]["throttle"] == ["thermal"] and d["ranks"][1]["after"]["sm_clock_Hz"] == 1200e6'
}

@test "devices: without a counter, what holds a GPU back at the end is said" {
    trains 1 "$nvml" S4D_DOUBLE_NVML_HOT=0 S4D_DOUBLE_NVML_REFUSE=nvmlDeviceGetViolationStatus
    grep -q '^warning: rank 0 (.*) is held back at the end of the run: thermal' "$dir/err"
    [ "$(grep -c '^warning' "$dir/err")" -eq 1 ]
}

@test "devices: a question that is refused is a key less, and no failure" {
    trains 1 "$nvml" S4D_DOUBLE_NVML_REFUSE=nvmlDeviceGetSerial,nvmlDeviceGetViolationStatus,nvmlDeviceGetTotalEccErrors,nvmlDeviceGetMigMode,nvmlDeviceGetClockInfo
    holds '"uuid" in d["all"] and "serial" not in d["all"] and "mig" not in d["all"]'
    holds 'set(d["ranks"][0]["after"]) == {"power_W", "temperature_C", "throttle"}'
    for call in nvmlInit_v2 nvmlDeviceGetHandleByPciBusId_v2; do
        trains 1 "$nvml" S4D_DOUBLE_NVML_REFUSE=$call
        holds '"uuid" not in d["all"] and d["all"]["pci"] == "0000:01:00.0"'
    done
}

@test "devices: a library that is none is not used" {
    mkdir "$dir/bad"
    echo "no library" > "$dir/bad/libnvidia-ml.so.1"
    trains 1 "LD_LIBRARY_PATH=$dir/bad"
    holds '"uuid" not in d["all"]'
}

@test "devices: a slow GPU of the health check is named by its numbers" {
    ends 1 "double of a GPU, its times mean nothing, GPU-d0b1e000-0000-0000-0000-000000000000, 1650022000000, 0000:01:00.0)" -- \
        env "$nvml" "$double/scale4d-run" preflight --backend cuda --precision f32 --machine dgx-a100
}

@test "libraries whose version is not known are said to be, with the library's words" {
    S4D_DOUBLE_FAIL=cudaRuntimeGetVersion:1 ends 0 "CUDA unknown (cudaRuntimeGetVersion: CUDA: " "NCCL 2" -- \
        "$double/scale4d-run" train --list-backends
    S4D_DOUBLE_FAIL=ncclGetVersion:1 ends 0 "CUDA 1" "NCCL unknown (ncclGetVersion: NCCL: " -- \
        "$double/scale4d-run" train --list-backends
}
