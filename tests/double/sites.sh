#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every place of the CUDA backend that calls one of NVIDIA's libraries fails once, in runs of two
# ranks on the double of these libraries: the run ends with 69 within 30 s and says rank, host, call
# and the library's words; where something is only given back, it is no failure. Speaks TAP.
#
#   tests/double/sites.sh [middle]     the first call of every place fails; or the middle one of them
#
# BUILD, MPIRUN: another build, its launcher. JOBS: runs side by side (6; most of a run is waiting).
set -u
self=$(realpath "$0")
cd "$(dirname "$self")/../.." || exit
export BUILD=${BUILD:-build} MPIRUN=${MPIRUN:-mpirun}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
program=$BUILD/tests/double/scale4d-run

# Between them they reach every call. NCCL is asked ten times a second.
options_of() {
    local tiny="train --backend cuda --global-batch 8 --precision bf16 --workload gpt-tiny"
    case $1 in
    1-axis-x) echo "$tiny --grid 2x1x1x1 --iterations 2" ;;
    2-axis-z) echo "${tiny/gpt/llama} --grid 1x1x2x1 --iterations 2" ;;
    3-tuning) echo "$tiny --grid 2x1x1x1 --iterations 1 --gemm-tuning full" ;;
    4-longer) echo "$tiny --grid 2x1x1x1 --iterations 50" ;;
    5-preflight) echo "preflight --backend cuda --precision f32 --slower 100" ;;
    esac
}

# words_of NAME LINE: how the library's words begin; "" for what is no reason to end a run: versions
# for the record, and calls whose result nobody wants (S4D_CUDA(NULL, ...): they give back).
words_of() {
    local file=${2%:*} line=${2##*:}
    if sed -n "${line}p" "$file" | grep -qE 'S4D_(CUDA|CUBLAS|NCCL)\(NULL,'; then
        return
    fi
    case $1 in
    cudaRuntimeGetVersion | ncclGetVersion) ;;
    cublas*) echo "cuBLAS: " ;;
    cuda*) echo "CUDA: " ;;
    nccl*) echo "NCCL: " ;;
    esac
}

# fail SCENARIO SITE NAME AT RANK LINE: one run; a line of TAP without a number.
fail() {
    local scenario=$1 site=$2 name=$3 at=$4 rank=$5 line=$6 status words want=69 start why=
    local dir options try
    dir=$(mktemp -d)
    read -ra options <<< "$(options_of "$scenario")"
    words=$(words_of "$name" "$line")
    for try in 1 2; do # twice, where the first takes long: other work may have held it up
        status=0 start=$SECONDS
        S4D_DOUBLE_SEED=$((site % 1000)) S4D_DOUBLE_FAIL=$site:$at:$rank XDG_CACHE_HOME=$dir/$try \
            timeout 60 "$MPIRUN" -n 2 "$program" "${options[@]}" \
            > "$dir/out" 2> "$dir/err" < /dev/null || status=$?
        [ $((SECONDS - start)) -gt 30 ] || break
    done
    if [ -n "$words" ]; then
        grep -qF "scale4d: rank $rank ($(hostname)): $name: $words" "$dir/err" || why="its words"
    else
        want=0
    fi
    [ "$status" -eq "$want" ] || why="exit status $status, expected $want"
    [ $((SECONDS - start)) -le 30 ] || why="it took $((SECONDS - start)) s"
    echo "${why:+not }ok - $name at $line, call $at, rank $rank${why:+: $why}"
    [ -z "$why" ] || sed 's/^/# /' "$dir/err"
    rm -rf "$dir"
}
if [ "${1-}" = --fail ]; then
    shift
    fail "$@"
    exit
fi

# sites SCENARIO: address, name, calls and rank of all sites of a run that nothing fails in.
sites() {
    local rank options
    read -ra options <<< "$(options_of "$1")"
    S4D_DOUBLE_SITES=$tmp/$1 XDG_CACHE_HOME=$tmp timeout 60 "$MPIRUN" -n 2 "$program" \
        "${options[@]}" > "$tmp/out" 2> "$tmp/err" < /dev/null ||
        { sed 's/^/# /' "$tmp/err" >&2; return 1; }
    for rank in 0 1; do
        sed "s/\$/ $rank/" "$tmp/$1.$rank"
    done
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
which=${1:-first}
declare -A seen both
for scenario in 1-axis-x 2-axis-z 3-tuning 4-longer 5-preflight; do
    sites "$scenario" > "$tmp/sites" || { echo "not ok - nothing fails, and $scenario does"; exit 1; }
    both=()
    while read -r site name calls rank; do
        both[$site]=${both[$site]-}$rank
    done < "$tmp/sites"
    while read -r site name calls rank; do
        [ -z "${seen[$site]-}" ] || continue
        seen[$site]=1
        # On the ranks in turn, where both come there.
        [ "${both[$site]}" != 01 ] || rank=$((${#seen[@]} % 2))
        line=$(addr2line -e "$program" "$(printf '0x%x' $((site - 1)))")
        line=real/cuda/${line##*/real/cuda/} # the compiler's cache may have it from another folder
        at=1
        of=$scenario
        case $name in # how often these are made depends on time
        cudaEventQuery | cudaEventCreateWithFlags) ;;
        ncclCommGetAsyncError) of=4-longer ;;
        *) [ "$which" = first ] || at=$(((calls + 1) / 2)) ;;
        esac
        # Memory may end at any of these.
        case $name in cudaMalloc | cudaHostAlloc) at=$(seq "$calls") ;; esac
        for at in $at; do
            echo "$of $site $name $at $rank ${line%% *}"
        done
    done < "$tmp/sites"
done > "$tmp/runs"

xargs -r -L 1 -P "${JOBS:-6}" "$self" --fail < "$tmp/runs" | tee "$tmp/said"

# Every call of the sources is among them, but for what only a failure leads to, and those of CUDA
# graphs, of messages and of groups, which self/faulty.c lets fail.
perl -0ne 'while (/\bS4D_(?:CUDA|CUBLAS)\(\w+,\s*(\w+)|\bS4D_NCCL\(\w+,\s*[^,]+,\s*(\w+)|\b(cudaEventQuery)\(/g) {
    my $name = $1 // $2 // $3;
    my $line = 1 + (substr($_, 0, $-[0]) =~ tr/\n//);
    print "$name at $ARGV:$line\n" }' real/cuda/*.c |
    grep -vE 'ncclCommAbort|nccl(Send|Recv|GroupStart|GroupEnd) at|at real/cuda/(trouble|graph).c:' > "$tmp/calls"
missed=$(grep -vFf <(sed -E 's/^(not )?ok - (.*), call .*/\2/' "$tmp/said") "$tmp/calls")
echo "${missed:+not }ok - every call of real/cuda is one of them: $(wc -l < "$tmp/calls") calls"
[ -z "$missed" ] || printf '# never came: %s\n' "$missed"
! grep -q '^not ok' "$tmp/said" && [ -z "$missed" ]
