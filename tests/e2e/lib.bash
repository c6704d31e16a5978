# SPDX-License-Identifier: Apache-2.0
# For every end-to-end test: the program, a folder, and what a message must be like.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    root=$PWD
    s4d=$PWD/build/scale4d
    dir=$BATS_TEST_TMPDIR
    unset SCALE4D_MACHINES SOURCE_DATE_EPOCH
}

one_line=synthetic:topology=single-switch,nodes=64,devices_per_node=1,nic=50GB/s,latency=500ns,peak=312TFLOP/s

# refuses STATUS TEXT... -- ARGUMENT...: the program exits with STATUS, prints nothing on standard
# output, and its message holds every TEXT and starts with "scale4d: ".
refuses() {
    local want=$1 status=0 text
    local texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    "$s4d" "$@" > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
    if [ "$status" -ne "$want" ]; then
        echo "exit status $status, expected $want: scale4d $*"
        cat "$dir/err"
        return 1
    fi
    if [ -s "$dir/out" ]; then
        echo "printed on standard output: $(head -n 3 "$dir/out")"
        return 1
    fi
    if [ "$(grep -v '^warning: ' "$dir/err" | head -c 9)" != "scale4d: " ]; then
        echo "not a message: $(cat "$dir/err")"
        return 1
    fi
    for text in "${texts[@]}"; do
        if ! grep -qF -- "$text" "$dir/err"; then
            echo "the message lacks '$text':"
            cat "$dir/err"
            return 1
        fi
    done
}

# until FILE has N lines, or 300 s have passed.
await_lines() {
    for _ in $(seq 3000); do
        [ -f "$1" ] && [ "$(wc -l < "$1")" -ge "$2" ] && return
        sleep 0.1
    done
    echo "$1 has not got $2 lines"
    return 1
}

# simulate ARGUMENT...: a small run, where later options replace none of these.
small=(simulate --machine "$one_line" --workload gpt-tiny --global-batch 16)
