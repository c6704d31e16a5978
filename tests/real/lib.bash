# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of scale4d-run share. BUILD and MPIRUN choose another build and its launcher,
# LIMIT_S how long a command may take.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    run4d=$PWD/${BUILD:-build}/scale4d-run
    dir=$BATS_TEST_TMPDIR
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    mpirun=${MPIRUN:-mpirun}
    tiny=(train --workload gpt-tiny --global-batch 8 --precision f32)
}

# ends STATUS TEXT... -- COMMAND...: it ends with STATUS and its messages hold every TEXT.
ends() {
    local want=$1 status=0 text
    local texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    timeout "${LIMIT_S:-60}" "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
    if [ "$status" -ne "$want" ]; then
        echo "exit status $status, expected $want: $*"
        cat "$dir/err"
        return 1
    fi
    for text in "${texts[@]}"; do
        grep -qF -- "$text" "$dir/err" "$dir/out" || { echo "no '$text' in:"; cat "$dir/err"; return 1; }
    done
}

field() {
    python3 -c "import json, sys; print(json.load(open('$dir/out'))$1)"
}
