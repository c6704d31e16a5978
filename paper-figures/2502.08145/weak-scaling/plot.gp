# SPDX-License-Identifier: Apache-2.0
# Sustained PFLOP/s of three machines, and FLOP/s a device against each machine's smallest point.
# Columns: series workload gpus PFLOP/s peak% measured% efficiency% machine grid micro_batch
# iteration provenance. scale4d plot sets terminal, output, data and what plots/overlay.h tells of.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,2
machines = "perlmutter frontier alps"
titles = "Perlmutter Frontier Alps"
array colour[3] = ["#0072b2", "#d55e00", "#009e73"]
set grid linecolor rgb "#dddddd"
set xlabel "devices (A100, GCD of MI250X, GH200)"
set logscale x 2
set xrange [min(400, 0.8 * added_gpus_min):max(42000, 1.25 * added_gpus_max)]
set xtics ("512" 512, "1024" 1024, "2048" 2048, "4096" 4096, "8192" 8192, "16384" 16384, "32768" 32768) rotate by -35
do for [n in added_gpus] { set xtics add (n n + 0) }
of(name, series, y) = strcol(8) eq name && strcol(1) eq series ? y : NaN
verified(name, y) = strcol(8) eq name && strcol(1) eq "published" && strcol(12) ne "unverified" ? y : NaN
# Of Frontier every published number was seen or is derived: no unverified ones to draw.
unverified(name, y) = strcol(8) eq name && strcol(1) eq "published" && strcol(12) eq "unverified" ? y : NaN

set key right bottom reverse Left samplen 2
set ylabel "sustained PFLOP/s"
set logscale y
set yrange [min(20, 0.7 * added_pflops_min):max(4000, 1.4 * added_pflops_max)]
own = added_lines("column(4)")
plot for [i=1:3] data using 3:(of(word(machines, i), "overlap-all", column(4))) with lines \
         linecolor rgb colour[i] dashtype 2 title word(titles, i).", all overlaps", \
     for [i=1:3] data using 3:(of(word(machines, i), "axonn-sc24", column(4))) with lines \
         linecolor rgb colour[i] linewidth 2 title word(titles, i).", axonn-sc24", \
     for [i=1:3] data using 3:(verified(word(machines, i), column(4))) with points \
         linecolor rgb colour[i] pointtype 9 pointsize 1.3 notitle, \
     for [i=1:3:2] data using 3:(unverified(word(machines, i), column(4))) with points \
         linecolor rgb colour[i] pointtype 8 pointsize 1.3 notitle, \
     @own \
     NaN with points linecolor rgb "#000000" pointtype 9 pointsize 1.3 title "published", \
     NaN with points linecolor rgb "#000000" pointtype 8 pointsize 1.3 title "published, unverified"

# Only Frontier's smallest point was seen or is derived: what is measured against another is hollow.
published(name, y) = strcol(8) eq name && strcol(1) eq "published" ? y : NaN
unset logscale y
set key off
set yrange [0:130]
set ylabel "FLOP/s a device, % of the machine's smallest point"
own = added_lines("column(7)")
plot for [i=1:3] data using 3:(of(word(machines, i), "overlap-all", column(7))) with lines \
         linecolor rgb colour[i] dashtype 2, \
     for [i=1:3] data using 3:(of(word(machines, i), "axonn-sc24", column(7))) with lines \
         linecolor rgb colour[i] linewidth 2, \
     @own \
     data using 3:(verified("frontier", column(7))) with points \
         linecolor rgb colour[2] pointtype 9 pointsize 1.3, \
     for [i=1:3:2] data using 3:(published(word(machines, i), column(7))) with points \
         linecolor rgb colour[i] pointtype 8 pointsize 1.3
unset multiplot
