# SPDX-License-Identifier: Apache-2.0
# Simulated against measured iteration times. Columns: workload number, workload, ranks, grid,
# median, q1, q3, simulated (ms), error (%).
set datafile separator "\t"
set title "Simulated against measured iteration time"
set xlabel "measured: median and quartiles (ms)"
set ylabel "simulated (ms)"
set logscale xy
set grid
set key left top
stats data using 5:8 nooutput
low = (STATS_min_x < STATS_min_y ? STATS_min_x : STATS_min_y) / 1.5
high = (STATS_max_x > STATS_max_y ? STATS_max_x : STATS_max_y) * 1.5
set xrange [low:high]
set yrange [low:high]
of(n) = strcol(3) eq n ? column(5) : NaN
plot x title "equal" with lines linetype -1, \
     1.15 * x title "15 % off" with lines dashtype 2 linecolor "gray50", \
     x / 1.15 notitle with lines dashtype 2 linecolor "gray50", \
     data using (of("1")):8:6:7 title "1 rank" with xerrorbars pointtype 7, \
     data using (of("2")):8:6:7 title "2 ranks" with xerrorbars pointtype 5, \
     data using (of("4")):8:6:7 title "4 ranks" with xerrorbars pointtype 9
