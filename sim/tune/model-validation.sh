#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The models against simulation for every feasible grid of two jobs of arXiv 2502.08145 sec. V-B:
# GPT-20B on 32 GPUs of Perlmutter, GPT-40B on 64 GCDs of Frontier. Of each grid the micro-batch that
# the model ranks first; full recompute, no cached weights. Assumed, not printed in the paper: the
# global batch, two sequences a GPU and one.
#
#   sim/tune/model-validation.sh FOLDER      FOLDER/report.md, and a picture and a table of each job
set -eu
out=$1
mkdir -p "$out"

job() { # MACHINE WORKLOAD GPUS BATCH
    build/scale4d tune --machine "$1" --workload "$2" --gpus "$3" --global-batch "$4" \
        --recompute full --cache-layers 0 --simulate 1000000 --variants 1 --top 1 \
        --records "$out/records.jsonl" --plot "$out/$1-$2"
}

{
    echo '# Models against simulation, every feasible grid'
    for args in 'perlmutter gpt-20b 32 64' 'frontier gpt-40b 64 64'; do
        # shellcheck disable=SC2086 # the arguments are words
        set -- $args
        printf '\n## %s on %s GPUs of %s, %s sequences\n\n![%s](%s.png)\n\n```\n' \
            "$2" "$3" "$1" "$4" "$2" "$1-$2"
        job "$@" 2> /dev/null
        echo '```'
    done
} > "$out/report.md"
grep -h '^## \|^# of the\|^# rank\|^# best' "$out/report.md"
echo "$out/report.md"
