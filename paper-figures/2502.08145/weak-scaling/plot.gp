# SPDX-License-Identifier: Apache-2.0
# Sustained PFLOP/s and share of the peak against GPUs. scale4d figure sets terminal, output, data.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,2
set style line 1 linecolor rgb "#0072b2" linewidth 2 pointtype 7 pointsize 1
set style line 2 linecolor rgb "#d55e00" linewidth 2 pointtype 5 pointsize 1
set style line 3 linecolor rgb "#000000" pointtype 9 pointsize 1.4
set style line 4 linecolor rgb "#000000" pointtype 8 pointsize 1.4
set style line 5 linecolor rgb "#999999" linewidth 1 dashtype 2
set key left top reverse Left
set grid linecolor rgb "#dddddd"
set xlabel "A100 GPUs"
set logscale x 2
set xrange [400:5200]
set xtics (512, 1024, 2048, 4096)

only(name, y) = strcol(1) eq name ? y : NaN
verified(y) = strcol(1) eq "published" && strcol(9) ne "unverified" ? y : NaN
unverified(y) = strcol(1) eq "published" && strcol(9) eq "unverified" ? y : NaN
# The ideal: FLOP/s per GPU of the first simulated point, at every size.
stats data using (strcol(1) eq "overlap-all" && column(3) == 512 ? column(4) : NaN) nooutput
first = STATS_max

set ylabel "sustained PFLOP/s"
set logscale y
set yrange [40:1100]
set ytics (50, 100, 200, 400, 800)
plot first * x / 512 with lines linestyle 5 title "ideal from the first point", \
     data using 3:(only("overlap-all", column(4))) with linespoints linestyle 1 title "simulated, all overlaps", \
     data using 3:(only("axonn-sc24", column(4))) with linespoints linestyle 2 title "simulated, axonn-sc24", \
     data using 3:(verified(column(4))) with points linestyle 3 title "published", \
     data using 3:(unverified(column(4))) with points linestyle 4 title "published, unverified"

unset logscale y
set ylabel "% of the advertised peak (312 TFLOP/s)"
set yrange [0:100]
set ytics auto
plot data using 3:(only("overlap-all", column(5))) with linespoints linestyle 1 title "simulated, all overlaps", \
     data using 3:(only("axonn-sc24", column(5))) with linespoints linestyle 2 title "simulated, axonn-sc24", \
     data using 3:(verified(column(4)) / column(3) / 0.00312) with points linestyle 3 title "published", \
     data using 3:(unverified(column(4)) / column(3) / 0.00312) with points linestyle 4 title "published, unverified"
unset multiplot
