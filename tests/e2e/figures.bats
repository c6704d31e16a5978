#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Figures: drawn, compared, interrupted and resumed.
load lib

# A small experiment in $dir/paper/small: two points, two series, on an ideal machine.
experiment() {
    fig=$dir/paper/small
    mkdir -p "$fig"
    cat > "$fig/experiment.yaml" <<END
title: "A small one"
machine: "$one_line"
tolerance_percent: 0.1
grid: auto
global_batch: 16
points:
  - {workload: gpt-tiny, gpus: 4}
  - {workload: gpt-tiny, gpus: 8}
series:
  - {name: overlap-all, title: "all", overlap: all}
  - {name: blocking, title: "none", overlap: none}
END
    cat > "$fig/published.csv" <<'END'
source,machine,devices,model,system,metric,value,unit,provenance,note
made up for this test,none,4,gpt-tiny,none,sustained,0.001,PFLOP/s,unverified,"a number, to draw"
END
    cat > "$fig/plot.gp" <<'END'
set datafile separator "\t"
plot data skip 1 using 3:4 with points
END
    out=$dir/figures
}
draw() {
    "$s4d" plot "$fig" --output "$out" "$@"
}

@test "a figure: data, report, png, svg, pdf; compared with what is expected" {
    experiment
    draw --accept
    [ "$(wc -l < "$fig/expected.tsv")" -eq 5 ]
    for suffix in png svg pdf; do
        [ -s "$out/paper/small/small.$suffix" ]
    done
    grep -q 'unverified' "$out/paper/small/report.md"
    [ "$(wc -l < "$out/paper/small/records.jsonl")" -eq 4 ]
    draw > "$dir/second"
    grep -q '4 of 4 points are finished already' "$dir/second"
}
@test "a figure that differs from what is expected: exit 1, and which row" {
    experiment
    draw --accept
    sed -i '3s/blocking\|overlap-all/&x/' "$fig/expected.tsv"
    status=0
    draw > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 1 ]
    grep -q 'expected.tsv:3' "$dir/err"
    grep -q -- '--accept' "$dir/err"
}
@test "other inputs are simulated anew, the others are kept" {
    experiment
    draw --accept
    sed -i 's/gpus: 8}/gpus: 8, recompute: none}/' "$fig/experiment.yaml"
    draw --accept > "$dir/out"
    grep -q '2 of 4 points are finished already' "$dir/out"
    sed -i 's/global_batch: 16/global_batch: 32/' "$fig/experiment.yaml"
    draw --accept > "$dir/out"
    ! grep -q 'finished already' "$dir/out"
}
@test "a half-written record is made again" {
    experiment
    draw --accept
    records=$out/paper/small/records.jsonl
    truncate -s -20 "$records"
    draw > "$dir/out"
    grep -q '3 of 4 points are finished already' "$dir/out"
    [ "$(wc -l < "$records")" -eq 4 ]
}
@test "interrupted: exit 130, what is finished stays and is not redone" {
    experiment
    cat > "$fig/experiment.yaml" <<END
title: "A long one"
machine: perlmutter
tolerance_percent: 0.1
global_batch: 4096
points:
  - {workload: gpt-tiny, gpus: 4, grid: 1x1x4x1, global_batch: 4}
  - {workload: gpt-40b, gpus: 1024, grid: 4x4x8x8, micro_batch: 1, no_fold: true}
series:
  - {name: overlap-all, title: "all", overlap: all}
END
    set -m # a process group of its own, as at a terminal
    draw > "$dir/out" 2> "$dir/err" &
    pid=$!
    set +m
    records=$out/paper/small/records.jsonl
    await_lines "$records" 1
    kill -INT -- "-$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || { echo "$status"; cat "$dir/err"; false; }
    grep -q 'What is finished stays in' "$dir/err"
    [ "$(grep -c 'stopped' "$dir/err")" -eq 1 ]
    [ "$(wc -l < "$records")" -eq 1 ]
    sed -i '/gpt-40b/d' "$fig/experiment.yaml"
    draw --accept > "$dir/out"
    grep -q '1 of 1 points are finished already' "$dir/out"
}
@test "a figure that cannot be written: exit 74" {
    experiment
    refuses 74 "/dev/null" -- plot "$fig" --output /dev/null
}
@test "no such figure, a key that is none, a grid that does not divide" {
    experiment
    refuses 65 "nothing" -- plot "$dir/nothing"
    refuses 65 "unknown figure" "'weak'" "did you mean weak-scaling?" -- plot weak
    refuses 64 "folder" -- figure
    mkdir -p "$dir/bin" "$dir/share/scale4d/paper-figures"/{a,b}/twins
    cp "$s4d" "$dir/bin"
    s4d=$dir/bin/scale4d refuses 64 "2 figures have the name twins" "a/twins or" -- plot twins
    s4d=$dir/bin/scale4d refuses 65 "b/twins" -- plot b/twins
    sed -i 's/^tolerance_percent/tolerence_percent/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:3" "tolerance_percent?" -- plot "$fig" --output "$out"
    experiment
    sed -i 's/overlap: none/overlap: no/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:11" "overlap" -- plot "$fig" --output "$out"
    experiment
    sed -i 's/^machine:.*/machine: perlmuter/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:2" "perlmutter?" -- plot "$fig" --output "$out"
}
@test "gnuplot fails: exit 69, in its own words; data and report are there" {
    experiment
    echo 'plto data' > "$fig/plot.gp"
    status=0
    draw --accept > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 69 ]
    grep -q 'plto' "$dir/err"
    [ -s "$out/paper/small/data.tsv" ]
    [ -s "$out/paper/small/report.md" ]
}
@test "--draw-only simulates nothing" {
    experiment
    refuses 65 "no record of gpt-tiny on 4 GPUs" "--draw-only" -- plot "$fig" --output "$out" --draw-only
    draw --accept
    rm "$out"/paper/small/small.*
    draw --draw-only
    [ -s "$out/paper/small/small.png" ]
}
@test "a figure of parts: they sum to the iteration" {
    experiment
    sed -i 's/^grid: auto/grid: auto\nrows: parts/' "$fig/experiment.yaml"
    draw --accept
    head -n 1 "$fig/expected.tsv" | grep -q '^series	workload	gpus	iteration_s	compute_s	x_s	y_s	z_s	data_s	other_s	machine	grid	micro_batch	provenance$'
    [ "$(grep -c '	simulated$' "$fig/expected.tsv")" -eq 4 ]
    awk -F'\t' '$NF == "simulated" { s = $5 + $6 + $7 + $8 + $9 + $10; d = s - $4
        if (d * d > 1e-10 * $4 * $4) { print; exit 1 } }' "$fig/expected.tsv"
    grep -q '^published	gpt-tiny	4	nan	nan' "$out/paper/small/data.tsv"
    sed -i 's/rows: parts/rows: pars/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:5" "merit, parts" -- plot "$fig" --output "$out"
}
# Two machines, the second a copy of the first; 1.5 times the FLOP/s on twice the GPUs is an
# efficiency of 75 %.
two_machines() {
    fig=$dir/paper/$1
    out=$dir/figures
    mkdir -p "$fig"
    cp sim/machines/perlmutter.yaml "$dir/mine.yaml"
    cat > "$fig/experiment.yaml" <<END
title: "Two machines"
machine: perlmutter
tolerance_percent: 0.1
rows: machines
grid: auto
global_batch: 16
points:
  - {workload: gpt-tiny, gpus: 4}
  - {workload: gpt-tiny, gpus: 8}
  - {machine: $dir/mine.yaml, workload: gpt-tiny, gpus: 4}
series:
  - {name: $2, title: "all", overlap: all}
END
    cat > "$fig/published.csv" <<END
source,machine,devices,model,system,metric,value,unit,provenance,note
made up,perlmutter,4,gpt-tiny,none,sustained,0.001,PFLOP/s,read,
made up,perlmutter,8,gpt-tiny,none,sustained,0.0015,PFLOP/s,derived,
made up,$dir/mine.yaml,4,gpt-tiny,none,sustained,0.002,PFLOP/s,unverified,
END
    printf 'set datafile separator "\\t"\nplot data skip 1 using 3:4 with points\n' > "$fig/plot.gp"
}
@test "a figure of machines: errors, means, efficiencies and entries of each" {
    two_machines one all
    draw --accept > "$dir/said"
    report=$out/paper/one/report.md
    awk -F'\t' '$1 == "all" && $3 == 4 && $7 != 100 { exit 1 }
        $1 == "published" && $3 == 8 && $7 != 75 { exit 1 }
        $1 == "published" && $3 == 4 { seen[$8] = $4; if ($5 <= 0 || $6 <= 0) exit 1 }
        END { if (seen["perlmutter"] != 0.001 || seen["'"$dir/mine.yaml"'"] != 0.002) exit 1 }' "$out/paper/one/data.tsv"
    grep -qE '^- all: .* over 2 verified points \(perlmutter [0-9.]+ % over 2\)$' "$dir/said"
    grep -qE '^\| perlmutter gpt-tiny \| 8 \| 4 \| 75.0 \| read or derived \|' "$report"
    grep -q '^Entries of the machine perlmutter ' "$report"
    grep -q "^Entries of the machine $dir/mine.yaml " "$report"
}
@test "two models at several sizes: each scales from its own smallest" {
    two_machines one all
    sed 's/^name: gpt-tiny/name: gpt-other/' workloads/gpt-tiny.yaml > "$dir/gpt-other.yaml"
    sed -i "s|  - {machine: .*|  - {workload: $dir/gpt-other.yaml, gpus: 8}\\n  - {workload: $dir/gpt-other.yaml, gpus: 16}|" "$fig/experiment.yaml"
    draw --accept
    awk -F'\t' '$2 ~ /other/ && $3 == 8 { n++; if ($7 != 100) exit 1 }
        $1 == "all" && $2 ~ /tiny/ && $3 == 4 { n++; if ($7 != 100) exit 1 }
        $1 == "all" && $2 ~ /tiny/ && $3 == 8 { n++; if ($7 == 100) exit 1 } END { exit n != 3 }' "$out/paper/one/data.tsv"
}
@test "a series against another: less time, faster, what was published; a point's own key in one series" {
    experiment
    sed -i 's/gpus: 8}/gpus: 8, grid: 1x1x8x1, in_series: {blocking: {grid: 4x1x2x1}}}/
        s/title: "all"/&, against: blocking/' "$fig/experiment.yaml"
    cat >> "$fig/published.csv" <<'END'
made up for this test,none,8,gpt-tiny,ours against theirs,speedup,26,%,read,
made up for this test,none,8,gpt-tiny,ours against theirs,time_to_solution_reduction,20,%,unverified,
END
    draw --accept > "$dir/said"
    awk -F'\t' '$3 == 8 { t[$1] = $8; grid[$1] = $6 } END {
        if (grid["overlap-all"] != "1x1x8x1" || grid["blocking"] != "4x1x2x1") exit 1
        printf "%.1f %% less time (published 20, unverified), %.1f %% faster (published 26, read)\n",
            100 * (1 - t["overlap-all"] / t["blocking"]), 100 * (t["blocking"] / t["overlap-all"] - 1) }' \
        "$fig/expected.tsv" > "$dir/want"
    grep -qF "overlap-all against blocking, gpt-tiny on 8 of $one_line: $(cat "$dir/want")" "$dir/said"
    grep -qF -e "$(cat "$dir/want")" "$out/paper/small/report.md"
    # theirs is no reproduction of what was published: no mean error of it
    ! grep -q '^- blocking: ' "$dir/said"
    sed -i 's/against: blocking/against: blokking/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:10" "another series" -- plot "$fig" --output "$out"
    sed -i 's/against: blokking/against: blocking/; s/{blocking: {grid/{blokking: {grid/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:8" "no series named" -- plot "$fig" --output "$out"
}
@test "figures beside each other take over records of the same inputs" {
    two_machines one all
    draw --accept
    two_machines two every
    draw --accept
    cmp <(tail -n +2 "$dir/paper/one/expected.tsv" | cut -f2-) <(tail -n +2 "$dir/paper/two/expected.tsv" | cut -f2-)
    # what was taken over says who made it
    [ "$(grep -c '/paper/one"' "$out/paper/two/records.jsonl")" -eq 3 ]
    sed -i 's/global_batch: 16/global_batch: 32/' "$fig/experiment.yaml"
    draw --accept
    [ "$(grep -c '/paper/one"' "$out/paper/two/records.jsonl")" -eq 0 ]
}
@test "set in a series and a point: as --set; a link by itself; which line is wrong" {
    experiment
    sed -i 's/overlap: none}/overlap: all, set: [node.nic_bandwidth_Bps=5GB\/s]}/; s/gpus: 8}/gpus: 8, grid: 1x1x4x2, set: [links.n1.nic0.out=0.5]}/' "$fig/experiment.yaml"
    draw --accept
    job=(simulate --machine "$one_line" --workload gpt-tiny --gpus 8 --grid 1x1x4x2 --global-batch 16 --overlap all --json)
    for set in "" "--set node.nic_bandwidth_Bps=5GB/s"; do
        # shellcheck disable=SC2086
        "$s4d" "${job[@]}" $set --set links.n1.nic0.out=0.5 > "$dir/one"
        want=$(grep -o '"iteration_time_s": [^,]*' "$dir/one")
        grep -q "\"gpus\": 8.*$want" "$out/paper/small/records.jsonl"
    done
    grep -q 'Series blocking: none (`node.nic_bandwidth_Bps=5GB/s`)' "$out/paper/small/report.md"
    sed -i 's/nic_bandwidth_Bps=5GB/nic_bandwith_Bps=5GB/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:11" "did you mean node.nic_bandwidth_Bps?" -- plot "$fig" --output "$out"
    sed -i 's/node.nic_bandwith_Bps=5GB.s/links.n99.nic0.out=0.5/' "$fig/experiment.yaml"
    status=0
    draw > "$dir/said" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    grep -q 'experiment.yaml:11: set: n99.nic0.out: ' "$dir/err" || { cat "$dir/err"; false; }
}

# mine FILE [ARGUMENT...]: records of simulate, 4 and 8 GPUs.
mine() {
    local file=$1 n
    shift
    for n in 4 8; do
        "$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus $n --grid 1x1x${n}x1 \
            --global-batch 16 --json "$@"
    done > "$file"
}

@test "plot --add: records of simulate, sweep and train over a figure" {
    experiment
    echo 'plot data skip 1 using 3:4, for [i=1:words(added)] data using 3:(is_added(i) ? column(4) : NaN) title added_title(i)' > "$fig/plot.gp"
    sed -i '1i set datafile separator "\t"' "$fig/plot.gp"
    draw --accept
    mine "$dir/my own.jsonl"
    cat > "$dir/s.yaml" <<END
machine: "$one_line"
global_batch: 16
series:
  - {name: a, workload: gpt-tiny, gpus: 8, grid: 2x2x2x1}
END
    "$s4d" sweep "$dir/s.yaml" --output "$dir/s.jsonl"
    echo '{"kind": "train", "backend": "host", "workload": {"name": "gpt-x"}, "gpus": 2, "flops_per_s": 1e12, "iteration_time_s": 0.5}' > "$dir/train.jsonl"
    draw --add "$dir/my own.jsonl" --add "$dir/s.jsonl" --add "Ours=$dir/train.jsonl" > "$dir/out"
    grep -q '^4 records of yours are drawn' "$dir/out"
    data=$out/paper/small/data.tsv
    [ "$(grep -c '^+my own	gpt-tiny	[48]	.*	simulated$' "$data")" -eq 2 ]
    grep -q '^+s a	gpt-tiny	8	.*	2x2x2x1	.*	simulated$' "$data"
    grep -q '^+Ours, measured	gpt-x	2	0.001	nan	-	0	0.5	measured$' "$data"
    grep -q 'Ours, measured' "$out/paper/small/small.svg"
}
@test "plot --add: what does not fit says why; none fits: exit 65" {
    experiment
    mine "$dir/mine.jsonl"
    "$s4d" collective --machine "$one_line" --op all_reduce --ranks 4 -b 1M -e 1M --json >> "$dir/mine.jsonl"
    echo '{"kind": "train", "flops_per_s": 1}' >> "$dir/mine.jsonl"
    draw --accept
    draw --add "$dir/mine.jsonl" 2> "$dir/err"
    grep -q "^warning: $dir/mine.jsonl:3: not drawn: expected a record of simulate or train, found 'collective'" "$dir/err"
    grep -q 'mine.jsonl:4: not drawn: it has no gpus' "$dir/err"
    sed -i 's/^tolerance_percent.*/&\nadded: points/' "$fig/experiment.yaml"
    sed -n 1p "$dir/mine.jsonl" | sed 's/"gpus": *4/"gpus":16/' > "$dir/off.jsonl"
    status=0
    draw --add "$dir/off.jsonl" > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    grep -q 'gpt-tiny on 16 GPUs is no point of the figure' "$dir/err"
    grep -q 'none of its 1 records fits' "$dir/err"
    sed -i 's/^added: points/added: points\nadded_needs: [nothing_per_s]/' "$fig/experiment.yaml"
    draw --add "$dir/mine.jsonl" > "$dir/out" 2> "$dir/err" || true
    grep -q 'it has no nothing_per_s' "$dir/err"
    sed -i 's/^added: points/added: none/' "$fig/experiment.yaml"
    refuses 65 "nothing can be added" -- plot "$fig" --output "$out" --add "$dir/mine.jsonl"
    refuses 65 "$dir/none.jsonl" -- plot weak-scaling --output "$out" --draw-only --add "$dir/none.jsonl"
}
@test "plot --draw-only says what is old" {
    experiment
    draw --accept
    draw --draw-only 2> "$dir/err"
    [ ! -s "$dir/err" ]
    sed -i 's/gpus: 8}/gpus: 8, recompute: none}/' "$fig/experiment.yaml"
    draw --draw-only 2> "$dir/err"
    grep -q '^warning: 2 of 4 points are drawn from old records: 2 of other inputs, 0 of another build' "$dir/err"
    grep -q '^\*\*2 of 4 points are drawn from old records' "$out/paper/small/report.md"
    sed -i 's/"program": *"[0-9a-f]*"/"program":"0"/' "$out/paper/small/records.jsonl"
    draw --draw-only 2> "$dir/err"
    grep -q '2 of other inputs, 2 of another build' "$dir/err"
}
@test "a figure by its name; a series that sets values of the machine and its links" {
    experiment
    sed -i 's/overlap: all}/overlap: all, set: [node.nic_bandwidth_Bps=5GB\/s, devices.n0.gpu0=0.5]}/' "$fig/experiment.yaml"
    draw --accept
    awk -F'\t' '$1 == "overlap-all" { slow = $8 } $1 == "blocking" { fast = $8 } END { exit !(slow > 1.5 * fast) }' \
        "$out/paper/small/data.tsv"
    refuses 65 "no-such-figure" -- plot no-such-figure
}

# A figure of all grids of gpt-tiny on 4 and on 8 GPUs.
grids() {
    experiment
    sed -i 's/^grid: auto/grid: auto\nrows: grids\nrecompute: none\ncache_layers: 0/; /blocking/d' "$fig/experiment.yaml"
    sed -i '2,$d' "$fig/published.csv"
    echo 'plot data skip 1 using 10:7' > "$fig/plot.gp"
    sed -i '1i set datafile separator "\t"' "$fig/plot.gp"
}
@test "a figure of grids: all of them, simulate's times, tune's ranking; a rerun simulates nothing" {
    grids
    draw --accept > "$dir/said"
    data=$out/paper/small/data.tsv
    tune=(tune --machine "$one_line" --workload gpt-tiny --gpus 8 --global-batch 16 --recompute none
        --cache-layers 0 --simulate 1000 --variants 1 --records "$dir/r.jsonl" --plot "$dir/t")
    "$s4d" "${tune[@]}" > "$dir/tune" 2> /dev/null
    want=$(awk -F'\t' '$2 ~ /^[0-9]+x/ { print $2, $3, $6, $7 }' "$dir/t.tsv" | sort)
    [ -n "$want" ]
    [ "$(awk -F'\t' '$3 == 8 { print $5, $6, $7, $10 }' "$data" | sort)" = "$want" ]
    spearman=$(sed -n 's/.*(Spearman).*: //p' "$dir/tune")
    grep -q "gpt-tiny on 8 GPUs of .*, overlap-all, .* model of scale4d tune $spearman" "$dir/said"
    grep -q "gpt-tiny on 8 GPUs of .* model of scale4d tune $spearman" "$out/paper/small/report.md"
    time_s=$("$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus 8 --grid 2x2x2x1 --global-batch 16 \
        --recompute none --micro-batch "$(awk -F'\t' '$5 == "2x2x2x1" { print $6 }' "$data")" --json |
        sed 's/.*"iteration_time_s": \([^,]*\).*/\1/')
    awk -F'\t' -v t="$time_s" '$5 == "2x2x2x1" { n++; if ($10 - t > 1e-5 * t || t - $10 > 1e-5 * t) exit 1 }
        END { exit n != 1 }' "$data"
    records=$out/paper/small/records.jsonl
    sum=$(md5sum < "$records")
    draw > "$dir/said"
    [ "$(md5sum < "$records")" = "$sum" ]
    draw --draw-only 2> "$dir/err"
    [ ! -s "$dir/err" ]
    # half of a record, and another batch: those alone are made again, and the old ones go
    truncate -s -20 "$records"
    draw > "$dir/said"
    [ "$(sort "$records" | sed 's/"provenance".*//' | md5sum)" = "$(sort "$records" | sed 's/"provenance".*//' | uniq | md5sum)" ]
    cmp <(cut -f 1-10 "$fig/expected.tsv") <(cut -f 1-10 "$data")
    sed -i 's/gpus: 8}/gpus: 8, global_batch: 32}/' "$fig/experiment.yaml"
    draw --accept > "$dir/said"
    [ "$(wc -l < "$records")" -eq $(($(wc -l < "$data") - 1)) ]
}
@test "a figure of grids: what it goes without, records that are no grids' points" {
    grids
    mine "$dir/mine.jsonl"
    refuses 65 "nothing can be added" -- plot "$fig" --output "$out" --add "$dir/mine.jsonl"
    sed -i 's/gpus: 8}/gpus: 8, grid: 2x2x2x1}/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:11" "grid: auto" -- plot "$fig" --output "$out"
    sed -i 's/grid: 2x2x2x1}/placement: random}/' "$fig/experiment.yaml"
    refuses 65 "experiment.yaml:11" "placement" -- plot "$fig" --output "$out"
    sed -i 's/gpus: 8, placement: random}/gpus: 7919}/' "$fig/experiment.yaml"
    status=0
    draw > "$dir/said" 2> "$dir/err" || status=$?
    [ "$status" -eq 65 ]
    grep -q 'experiment.yaml:11: .*7919 are more' "$dir/err" || { cat "$dir/err"; false; }
}
@test "a figure does not take a grid of another figure for its grid auto" {
    grids
    draw --accept
    sed -i '/^rows: grids/d' "$fig/experiment.yaml"
    sed -i 's/using .*/using 3:4/' "$fig/plot.gp"
    mv "$fig" "$dir/paper/other"
    fig=$dir/paper/other
    draw --accept > "$dir/said"
    "$s4d" plot "$fig" --output "$dir/alone" > "$dir/said"
    cmp "$out/paper/other/data.tsv" "$dir/alone/paper/other/data.tsv"
}
