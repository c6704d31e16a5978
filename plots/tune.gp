# SPDX-License-Identifier: Apache-2.0
# The model of scale4d tune against simulation. Columns: rank, grid, micro-batch, recompute, cached
# layers, model (s), simulated (s), rank by time, published model (s), the same over the links (s).
set datafile separator "\t"
set title title
set xlabel "simulated iteration time (s)"
set ylabel "time by the model (s)"
set logscale xy
set grid
set key right bottom
stats data skip 2 using 7 nooutput
set xrange [STATS_min / 1.3:STATS_max * 1.3]
plot x title "equal" with lines linetype -1, \
     1.15 * x title "15 % off" with lines dashtype 2 linecolor "gray50", \
     x / 1.15 notitle with lines dashtype 2 linecolor "gray50", \
     data skip 2 using 7:6 title "iteration by the model of scale4d tune" \
         with points pointtype 7 linecolor "#0060ad", \
     data skip 2 using 7:9 title "communication alone, arXiv 2502.08145, its authors' bandwidths" \
         with points pointtype 4 linecolor "#c04000", \
     data skip 2 using 7:10 title "the same, bandwidths of the links" \
         with points pointtype 1 linecolor "#208020"
