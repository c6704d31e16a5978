# SPDX-License-Identifier: Apache-2.0
# Stacked parts of an iteration: a panel a machine, a cluster of bars a point, a bar a series.
# scale4d plot sets terminal, output, data. Columns: 1 series, 3 devices, 4 iteration, 5 compute,
# 6 x, 7 y, 8 z, 9 data, 10 other (seconds), 11 machine.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot
set style fill solid 0.9 noborder
set boxwidth 0.9
set grid ytics linecolor rgb "#dddddd"
set yrange [0:*]
set xtics nomirror scale 0 rotate by -35 font ",10"
set tmargin screen 0.93
set bmargin screen 0.17

machines = "perlmutter frontier alps"
titles = "Perlmutter (A100) Frontier (GCD) Alps (GH200)"
# Of each panel: left and right edge, devices of the first point, points.
array left[3] = [0.06, 0.33, 0.76]
array right[3] = [0.28, 0.71, 0.985]
array first[3] = [512, 512, 1024]
array points[3] = [4, 7, 4]
array name[6] = ["computing", "exposed: x", "exposed: y", "exposed: z", "exposed: data", "other"]
array colour[6] = ["#0072b2", "#f0e442", "#e69f00", "#d55e00", "#cc79a7", "#999999"]

# A user's records are bars behind the three of their point.
of_added(series) = sum [i = 1:words(added)] (series eq word(added, i) ? i : 0)
bars = 3 + words(added)
bar(series) = series eq "none" ? 0 : series eq "axonn-sc24" ? 1 : series eq "overlap-all" ? 2 \
            : of_added(series) > 0 ? 2 + of_added(series) : NaN
# Doubling devices are a cluster each; 6,144 of Alps come after 4,096.
cluster(i, gpus) = gpus == 6144 ? 3 : log(gpus / first[i]) / log(2)
at(i, gpus, series) = strcol(11) eq word(machines, i) ? (bars + 1) * cluster(i, gpus) + bar(series) : NaN
upto(n) = sum [i = 5:n] column(i)
simulated(y) = strcol(1) eq "published" ? NaN : y
title_of(i) = word(titles, 2 * i - 1)." ".word(titles, 2 * i)

do for [i = 1:3] {
    set lmargin screen left[i]
    set rmargin screen right[i]
    set xrange [-0.8:(bars + 1) * points[i] - 1.2]
    unset xtics
    set xtics nomirror scale 0 rotate by -35 font ",10" ("" 0)
    do for [p = 0:points[i] - 1] {
        devices = i == 3 && p == 3 ? 6144 : first[i] * 2 ** p
        set xtics add (sprintf("%d", devices) (bars + 1) * p + 1)
    }
    set label 1 title_of(i) at graph 0.5, graph 1.04 center
    set offsets 0, 0, graph (i == 1 ? 0.3 : 0.04), 0
    if (i == 1) {
        set ylabel "seconds of an iteration"
        set key left top reverse Left samplen 1.5
    } else {
        unset ylabel
        unset key
    }
    if (i == 2) {
        own = ""
        do for [k=1:words(added)] { own = own.", ".added_title(k) }
        set xlabel "devices. Bars: no overlap, the published runs' (axonn-sc24), all overlaps".own
    } else {
        unset xlabel
    }
    plot for [n = 10:5:-1] data using (at(i, column(3), strcol(1))):(simulated(upto(n))) with boxes \
             linecolor rgb colour[n - 4] title name[n - 4]
}
unset multiplot
