# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of scale4d-run share. BUILD and MPIRUN choose another build and its launcher,
# LIMIT_S how long a command may take, which is far longer than it takes on a busy machine.

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
    timeout "${LIMIT_S:-300}" "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
    if [ "$status" -ne "$want" ]; then
        echo "exit status $status, expected $want: $*"
        cat "$dir/err"
        return 1
    fi
    for text in "${texts[@]}"; do
        grep -qF -- "$text" "$dir/err" "$dir/out" || { echo "no '$text' in:"; cat "$dir/err"; return 1; }
    done
}

# nothing_for S: the job ended by --timeout S, which is looked at a few times a second; on a busy machine
# the look may come later.
nothing_for() {
    local s
    s=$(sed -nE 's/.*nothing has completed for ([0-9.]+) s \(--timeout\).*/\1/p' "$dir/err" | head -n 1)
    [ -n "$s" ] && [ "${s%.*}" -ge "$1" ] || { cat "$dir/err"; return 1; }
}

field() {
    python3 -c "import json, sys; print(json.load(open('$dir/out'))$1)"
}
