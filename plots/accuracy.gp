# SPDX-License-Identifier: Apache-2.0
# Measured and simulated bus bandwidth of one operation against size. A block a group size, its
# title first; columns: MiB, measured, measured outlier, as checked, by the machine file, without
# tables (GB/s). The first line of the file is the title.
set datafile separator "\t"
set title system("head -n 1 '".data."' | cut -c 3-") noenhanced
set xlabel "size (MiB)"
set ylabel "bus bandwidth (GB/s)"
set logscale xy
set format xy "%g"
set grid
set key outside right top
stats data using 1 nooutput name "X"
stats data using (valid(2) ? $2 : $3) nooutput name "Y"
blocks = X_blocks
set xrange [X_min / 1.5:X_max * 1.5]
set yrange [Y_min / 2:Y_max * 2]
plot for [i = 0:blocks - 1] data index i using 1:2 with points pointtype 7 pointsize 1.2 \
         linecolor i + 1 title columnheader(1), \
     for [i = 0:blocks - 1] data index i using 1:3 every ::1 with points pointtype 6 \
         pointsize 1.2 linecolor i + 1 notitle, \
     for [i = 0:blocks - 1] data index i using 1:4 every ::1 with lines linewidth 2 \
         linecolor i + 1 notitle, \
     for [i = 0:blocks - 1] data index i using 1:6 every ::1 with lines linewidth 1.5 dashtype 3 \
         linecolor i + 1 notitle, \
     NaN with points pointtype 7 linecolor "gray30" title "measured", \
     NaN with points pointtype 6 linecolor "gray30" title "outlier", \
     NaN with lines linewidth 2 linecolor "gray30" title "simulated", \
     NaN with lines linewidth 1.5 dashtype 3 linecolor "gray30" title "without tables"
