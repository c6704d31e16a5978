# SPDX-License-Identifier: Apache-2.0
# Stacked parts of an iteration, a bar a series; above it the time against the first series.
# scale4d plot sets terminal, output, data. Columns: 1 series, 4 iteration, 5 compute, 6 x, 7 y,
# 8 z, 9 data, 10 other; seconds. A user's records are the last bars.
set datafile separator "\t"
set datafile missing "NaN"
set style fill solid 0.9 noborder
set boxwidth 0.8
set grid ytics linecolor rgb "#dddddd"
set ylabel "seconds of an iteration"
set yrange [0:*]
set offsets 0, 0, graph 0.14, 0
set xrange [-0.7:9.7 + words(added_gpus)]
set xtics nomirror scale 0 rotate by -25
set key left top reverse Left samplen 1.5
array name[6] = ["computing", "exposed: x", "exposed: y", "exposed: z", "exposed: data", "other"]
array colour[6] = ["#0072b2", "#f0e442", "#e69f00", "#d55e00", "#cc79a7", "#999999"]
upto(n) = sum [i = 5:n] column(i)
stats data skip 1 using 4 every ::0::0 nooutput
as_is = STATS_max
plot for [n = 10:5:-1] data skip 1 using 0:(upto(n)):xtic(strcol(1)[1:1] eq "+" ? substr(strcol(1), 2, -1) : strcol(1)) with boxes \
         linecolor rgb colour[n - 4] title name[n - 4], \
     data skip 1 using 0:4:(sprintf("%+.0f %%", 100 * (column(4) / as_is - 1))) with labels offset 0, 0.7 notitle
