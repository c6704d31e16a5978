# SPDX-License-Identifier: Apache-2.0
# Stacked parts of an iteration: a panel a machine, a bar a step, its iteration against the
# baseline's above it. scale4d plot sets terminal, output, data. Columns: 1 series, 4 iteration,
# 5 compute, 6 x, 7 y, 8 z, 9 data, 10 other (seconds), 11 machine.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot
set style fill solid 0.9 noborder
set boxwidth 0.8
set grid ytics linecolor rgb "#dddddd"
set tmargin screen 0.8
set bmargin screen 0.24
machines = "frontier perlmutter"
array title_of[2] = ["Frontier, 8,192 GCDs", "Perlmutter, 1,024 A100"]
array left[2] = [0.07, 0.56]
array right[2] = [0.50, 0.99]
array name[6] = ["computing", "exposed: x", "exposed: y", "exposed: z", "exposed: data", "other"]
array colour[6] = ["#0072b2", "#f0e442", "#e69f00", "#d55e00", "#cc79a7", "#999999"]

# Published is one number, of Frontier's run with its optimisations: right of axonn-sc24's bar.
# GEMM modes have a place, and no bar: no rate of another transpose was measured on these machines.
steps = "baseline grid gemm-modes oar ors axonn-sc24 overlap-all"
array step_title[7] = ["baseline", "best grid", "GEMM modes", "+ OAR", "+ ORS", "+ OAG (axonn-sc24)", "+ OAG (all)"]
of_added(series) = sum [i = 1:words(added)] (series eq word(added, i) ? i : 0)
place(series) = (sum [i = 1:words(steps)] (series eq word(steps, i) ? i : 0)) \
              + (of_added(series) > 0 ? words(steps) + of_added(series) : 0)
at(i, series) = strcol(11) eq word(machines, i) && place(series) > 0 ? place(series) : NaN
of_machine(i, series, y) = strcol(11) eq word(machines, i) && strcol(1) eq series ? y : NaN
upto(n) = sum [i = 5:n] column(i)
change(series, part) = series eq "baseline" ? "" : sprintf("%+.0f %%", 100 * part)
simulated(y) = strcol(1) eq "published" ? NaN : y

set xrange [0.4:words(steps) + words(added) + 0.6]
do for [i = 1:2] {
    set yrange [*:*]
    stats data using (of_machine(i, "baseline", column(4))) nooutput
    baseline = STATS_max
    set lmargin screen left[i]
    set rmargin screen right[i]
    set yrange [0:1.15 * baseline]
    unset xtics
    set xtics nomirror scale 0 rotate by 35 right ("" 0)
    do for [k = 1:words(steps)] { set xtics add (step_title[k] k) }
    do for [k = 1:words(added)] { set xtics add (added_title(k) words(steps) + k) }
    set label 1 title_of[i] at graph 0.5, graph 1.05 center
    set label 2 "no rates of other transposes" at 3, 0.03 * baseline rotate by 90 textcolor rgb "#666666"
    if (i == 1) {
        set ylabel "seconds of an iteration"
        set key at screen 0.5, screen 0.99 center top horizontal reverse Left samplen 1.5
    } else {
        unset ylabel
        set key off
    }
    plot for [n = 10:5:-1] data using (at(i, strcol(1))):(simulated(upto(n))) with boxes \
             linecolor rgb colour[n - 4] title name[n - 4], \
         data using (at(i, strcol(1))):(simulated(column(4))):(change(strcol(1), column(4) / baseline - 1)) \
             with labels offset 0, 0.6 notitle, \
         for [k = i:1] data using (strcol(1) eq "published" ? place("axonn-sc24") + 0.5 : NaN):4 \
             with points pointtype 9 pointsize 1.5 linecolor rgb "#000000" title "published"
}
unset multiplot
