# SPDX-License-Identifier: Apache-2.0
# Published and simulated, two bars charts. scale4d figure sets terminal, output, data.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,2
set style fill solid 0.85 border -1
set boxwidth 0.6
set key off
set grid ytics linecolor rgb "#dddddd"
set xrange [-0.5:2.5]
set xtics ("published" 0, "axonn-sc24" 1, "all overlaps" 2) scale 0

place(name) = name eq "published" ? 0 : name eq "axonn-sc24" ? 1 : 2
colour(name) = name eq "published" ? 0x000000 : name eq "axonn-sc24" ? 0xd55e00 : 0x0072b2

set ylabel "sustained PFLOP/s"
set yrange [0:320]
plot data skip 1 using (place(strcol(1))):4:(colour(strcol(1))) with boxes linecolor rgb variable, \
     data skip 1 using (place(strcol(1))):4:(sprintf("%.0f", column(4))) with labels offset 0,0.7

set ylabel "% of the advertised peak (312 TFLOP/s)"
set yrange [0:100]
plot data skip 1 using (place(strcol(1))):5:(colour(strcol(1))) with boxes linecolor rgb variable, \
     data skip 1 using (place(strcol(1))):5:(sprintf("%.0f %%", column(5))) with labels offset 0,0.7
unset multiplot
