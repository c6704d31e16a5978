#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All tests of scale4d, group by group; every group speaks TAP, and its "ok" and "not ok" lines are
# counted. A group that fails, or ends early, does not stop the others. The last line is
# "N passed, N failed"; the exit status is 1 when something failed.
#
#   tests/run.sh [GROUP...]       all groups by default
set -u
self=$(realpath "$0")
cd "$(dirname "$self")/.."
make=${MAKE:-make}
jobs=${JOBS--j$(nproc)}
fuzz_s=${FUZZ_SECONDS:-5}
passed=0
failed=0
log=build/test.log
mkdir -p build
[ "${1-}" = --one ] || : > $log

# group NAME COMMAND...: runs it, shows its TAP lines, counts them. A non-zero exit without a
# "not ok" line is a failure of its own (a crash, a compile error).
group() {
    local name=$1 start=$SECONDS out status ok not_ok
    shift
    printf '== %s\n' "$name"
    out=$(mktemp)
    "$@" > "$out" 2>&1
    status=$?
    cat "$out" >> $log
    ok=$(grep -cE '^ok\b' "$out")
    not_ok=$(grep -cE '^not ok\b' "$out")
    if [ $status -ne 0 ] && [ "$not_ok" -eq 0 ] || [ $((ok + not_ok)) -eq 0 ]; then
        echo "not ok - $name: exit status $status, $ok tests" >> "$out"
        not_ok=1
    fi
    if [ "$not_ok" -gt 0 ]; then
        grep -vE '^ok\b|^ok$' "$out" | tail -n 60
    fi
    printf '   %d passed, %d failed (%d s)\n' "$ok" "$not_ok" $((SECONDS - start))
    passed=$((passed + ok))
    failed=$((failed + not_ok))
    rm -f "$out"
}

# A command that is one test.
single() {
    local name=$1
    shift
    if "$@"; then echo "ok - $name"; else echo "not ok - $name"; fi
}

build() {
    single "$1" "$make" -k $jobs --no-print-directory "${@:2}"
}

# side_by_side COMMAND...: COMMAND once for every line of standard input, on all processors; what one
# says is shown in one piece when it ends.
side_by_side() {
    xargs -r -d '\n' -n 1 -P "$(nproc)" bash -c \
        'said=$("$@" 2>&1); status=$?; printf "%s\n" "$said"; exit $status' side_by_side "$@"
}

# A unit test program; one that does not exist did not compile. What it says is shown when it fails.
unit_program() {
    local said status
    if [ ! -x "$1" ]; then
        echo "not ok - $1 was not built"
        return
    fi
    said=$(CMOCKA_MESSAGE_OUTPUT=TAP "$1" 2>&1)
    status=$?
    if [ $status -eq 0 ]; then
        grep -E '^ok\b' <<< "$said"
    else
        printf '# %s\n%s\n' "$1" "$said"
        grep -q '^not ok' <<< "$said" || echo "not ok - $1 ended with status $status"
    fi
}

unit() {
    local source
    for source in tests/unit/test_*.c; do
        echo "$1/tests/$(basename "$source" .c)"
    done | side_by_side bash "$self" --one unit_program
}

# The largest files first: they tend to take longest.
end_to_end() {
    ls -S "$1"/*.bats | side_by_side bats --tap
}

fuzz_target() {
    local name corpus
    name=$(basename "$1" .c)
    corpus=tests/fuzz/corpus/${name#fuzz_}
    [ -d "$corpus" ] || corpus=
    mkdir -p "build/fuzz/found/$name"
    single "$name, $fuzz_s s" "build/fuzz/tests/$name" -max_total_time="$fuzz_s" -timeout=5 \
        -rss_limit_mb=2048 -artifact_prefix="build/fuzz/found/$name/" \
        "build/fuzz/found/$name" $corpus
}

fuzz() {
    ls tests/fuzz/fuzz_*.c | side_by_side bash "$self" --one fuzz_target
}

export ASAN_OPTIONS=${ASAN_OPTIONS:-abort_on_error=0}
export UBSAN_OPTIONS=print_stacktrace=1
fuzz_flags='-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined'

run_build() { group "build, gcc" build "gcc builds everything" all unit-programs; }
run_unit() { group "unit tests" unit build; }
run_golden() { group "golden files" tests/golden.sh; }
run_structure() { group "structure" bats --tap tests/structure; }
run_e2e() { group "end to end" end_to_end tests/e2e; }
run_report() { group "the report in Chromium" tests/report/run.sh; }
# The other MPI than mpicc's, where it is: the same programs, built and run with it.
second_mpi() {
    case $("${MPICC:-mpicc}" -show 2>/dev/null) in *mpich*) echo openmpi ;; *) echo mpich ;; esac
}
# grids LAUNCHER RANKS BUILD [PROGRAM [ARGUMENT...]]
grids() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    timeout 600 "$1" -n "$2" "$3/${4:-tests/real_grids}" "${@:5}"
}
run_real() {
    local other
    if [ -n "$(.ci/deps.sh quiet run 2>/dev/null)" ]; then
        echo "== training on ranks: skipped, $(.ci/deps.sh quiet run 2>/dev/null | head -n 1)"
        return
    fi
    group "build, MPI" build "gcc builds what needs MPI" all real-programs
    group "kernels of the host" build/tests/real_kernels
    group "kernels of CUDA, on the CPU" build/tests/cuda_kernels
    group "gradients and central differences" build/tests/real_slopes
    group "training on 1 to 16 ranks" grids "${MPIRUN:-mpirun}" 16 build
    group "health check of four ranks" grids "${MPIRUN:-mpirun}" 4 build tests/real_preflight
    group "messages and batches of four ranks" grids "${MPIRUN:-mpirun}" 4 build tests/real_posts
    if [ -x build/tests/double/grids ]; then
        group "the double of CUDA" grids "${MPIRUN:-mpirun}" 2 build tests/double/self_test
        group "faults of CUDA's double" grids "${MPIRUN:-mpirun}" 2 build tests/double/faulty
        group "messages and batches by CUDA's double" \
            grids "${MPIRUN:-mpirun}" 4 build tests/double/posts cuda
        group "training on 1 to 16 ranks by CUDA's double" \
            grids "${MPIRUN:-mpirun}" 16 build tests/double/grids cuda
        group "training as CUDA graphs by CUDA's double" \
            grids "${MPIRUN:-mpirun}" 4 build tests/double/grids cuda graphs
    fi
    if [ -x build/tests/double/preflight ]; then
        group "health check by CUDA's double" \
            grids "${MPIRUN:-mpirun}" 4 build tests/double/preflight cuda
    fi
    group "scale4d-run" end_to_end tests/real
    other=$(second_mpi)
    if command -v "mpicc.$other" "mpirun.$other" > /dev/null; then
        group "build, $other" build "gcc builds with $other" BUILD=build/$other MPICC=mpicc.$other \
            all real-programs
        group "training on two ranks, $other" grids "mpirun.$other" 2 "build/$other"
    fi
}
run_format() { group "format" single "clang-format" "$make" --no-print-directory format-check; }
run_clang() {
    group "build, clang" build "clang builds everything" BUILD=build/fuzz CC=clang CXX=clang++ \
        CFLAGS="$fuzz_flags" LDFLAGS=-fsanitize=address,undefined all fuzz-programs
}
run_fuzz() { group "fuzzing" fuzz; }
run_asan() {
    group "build, ASan and UBSan" build "gcc builds everything for sanitizers" SANITIZE=1 \
        CFLAGS='-O1 -g' unit-programs
    group "unit tests, ASan and UBSan" unit build/asan
}

if [ "${1-}" = --one ]; then
    "${@:2}"
    exit
fi
for g in ${*:-build unit golden structure e2e report real format clang fuzz asan}; do
    "run_$g"
done
echo "The output of every test is in $log."
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
