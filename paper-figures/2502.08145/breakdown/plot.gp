# SPDX-License-Identifier: Apache-2.0
# Stacked parts of an iteration, a bar a series, a cluster a point. scale4d figure sets terminal,
# output, data. Columns: 4 iteration, 5 compute, 6 x, 7 y, 8 z, 9 data, 10 other; seconds.
set datafile separator "\t"
set datafile missing "NaN"
set style fill solid 0.9 border linecolor rgb "#ffffff"
set boxwidth 0.86
set key outside right top reverse Left
set grid ytics linecolor rgb "#dddddd"
set ylabel "seconds of an iteration"
set yrange [0:*]
set offsets 0, 0, graph 0.08, 0
set xtics nomirror scale 0 font ",9" ("none" 0)
set bmargin 5
set xrange [-0.8:14.8]

series(name) = name eq "none" ? 0 : name eq "axonn-sc24" ? 1 : name eq "overlap-all" ? 2 : NaN
point(gpus) = log(gpus / 512.) / log(2)
at(gpus, name) = 4 * point(gpus) + series(name)
upto(n) = sum [i = 5:n] column(i)
simulated(y) = strcol(1) eq "published" ? NaN : y

do for [p = 0:3] {
    set xtics add ("none" 4 * p, "axonn-sc24" 4 * p + 1, "all" 4 * p + 2)
    set label sprintf("GPT-%dB, %d A100", 5 * 2 ** p, 512 * 2 ** p) at first 4 * p + 1, graph -0.11 center
}
plot data using (at(column(3), strcol(1))):(simulated(upto(10))) with boxes linecolor rgb "#999999" title "other", \
     "" using (at(column(3), strcol(1))):(simulated(upto(9))) with boxes linecolor rgb "#cc79a7" title "exposed: data", \
     "" using (at(column(3), strcol(1))):(simulated(upto(8))) with boxes linecolor rgb "#d55e00" title "exposed: z", \
     "" using (at(column(3), strcol(1))):(simulated(upto(7))) with boxes linecolor rgb "#e69f00" title "exposed: y", \
     "" using (at(column(3), strcol(1))):(simulated(upto(6))) with boxes linecolor rgb "#f0e442" title "exposed: x", \
     "" using (at(column(3), strcol(1))):(simulated(column(5))) with boxes linecolor rgb "#0072b2" title "computing", \
     "" using (at(column(3), strcol(1))):(simulated(column(4))):(sprintf("%.0f%%", 100 * column(5) / column(4))) with labels offset 0, 0.6 font ",9" notitle
