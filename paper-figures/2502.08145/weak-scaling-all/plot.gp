# SPDX-License-Identifier: Apache-2.0
# Sustained PFLOP/s, and shares of the advertised and of the measured peak, against devices.
# Columns: series workload gpus PFLOP/s peak% measured% machine grid micro_batch iteration provenance
set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,3
machines = "perlmutter frontier alps"
titles = "Perlmutter Frontier Alps"
measured_Tflops(name) = name eq "perlmutter" ? 280 : name eq "frontier" ? 125 : 813
peak_Tflops(name) = name eq "perlmutter" ? 312 : name eq "frontier" ? 191.5 : 989
array colour[3] = ["#0072b2", "#d55e00", "#009e73"]
set grid linecolor rgb "#dddddd"
set xlabel "devices (A100, GCD, GH200)"
set logscale x 2
set xrange [400:42000]
set xtics ("512" 512, "2048" 2048, "8192" 8192, "32768" 32768)
of(name, series, y) = strcol(7) eq name && strcol(1) eq series ? y : NaN
verified(name, y) = strcol(7) eq name && strcol(1) eq "published" && strcol(11) ne "unverified" ? y : NaN
unverified(name, y) = strcol(7) eq name && strcol(1) eq "published" && strcol(11) eq "unverified" ? y : NaN
part(y, Tflops) = 100 * y / (column(3) * Tflops / 1000)

set key left top reverse Left samplen 2
set ylabel "sustained PFLOP/s"
set logscale y
set yrange [30:100000]
plot for [i=1:3] data using 3:(of(word(machines, i), "overlap-all", column(4))) with lines \
         linecolor rgb colour[i] dashtype 2 title word(titles, i).", all overlaps", \
     for [i=1:3] data using 3:(of(word(machines, i), "axonn-sc24", column(4))) with linespoints \
         linecolor rgb colour[i] linewidth 2 pointtype 0 title word(titles, i).", axonn-sc24", \
     for [i=1:3] data using 3:(verified(word(machines, i), column(4))) with points \
         linecolor rgb colour[i] pointtype 9 pointsize 1.2 notitle, \
     for [i=1:3:2] data using 3:(unverified(word(machines, i), column(4))) with points \
         linecolor rgb colour[i] pointtype 8 pointsize 1.2 notitle, \
     NaN with points linecolor rgb "#000000" pointtype 9 title "published", \
     NaN with points linecolor rgb "#000000" pointtype 8 title "published, unverified"

unset logscale y
set key off
set yrange [0:100]
set ylabel "% of the advertised peak (312, 191.5, 989 TFLOP/s)"
plot for [i=1:3] data using 3:(of(word(machines, i), "overlap-all", column(5))) with lines \
         linecolor rgb colour[i] dashtype 2, \
     for [i=1:3] data using 3:(of(word(machines, i), "axonn-sc24", column(5))) with linespoints \
         linecolor rgb colour[i] linewidth 2 pointtype 0, \
     for [i=1:3] data using 3:(verified(word(machines, i), part(column(4), peak_Tflops(strcol(7))))) \
         with points linecolor rgb colour[i] pointtype 9 pointsize 1.2, \
     for [i=1:3:2] data using 3:(unverified(word(machines, i), part(column(4), peak_Tflops(strcol(7))))) \
         with points linecolor rgb colour[i] pointtype 8 pointsize 1.2

set ylabel "% of the measured peak (280, 125, 813 TFLOP/s)"
plot for [i=1:3] data using 3:(of(word(machines, i), "overlap-all", column(6))) with lines \
         linecolor rgb colour[i] dashtype 2, \
     for [i=1:3] data using 3:(of(word(machines, i), "axonn-sc24", column(6))) with linespoints \
         linecolor rgb colour[i] linewidth 2 pointtype 0, \
     for [i=1:3] data using 3:(verified(word(machines, i), part(column(4), measured_Tflops(strcol(7))))) \
         with points linecolor rgb colour[i] pointtype 9 pointsize 1.2, \
     for [i=1:3:2] data using 3:(unverified(word(machines, i), part(column(4), measured_Tflops(strcol(7))))) \
         with points linecolor rgb colour[i] pointtype 8 pointsize 1.2
unset multiplot
