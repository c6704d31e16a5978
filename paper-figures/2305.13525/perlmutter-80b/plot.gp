# SPDX-License-Identifier: Apache-2.0
# Published and simulated, two bar charts. scale4d plot sets terminal, output, data.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,2
set style fill solid 0.85 border -1
set boxwidth 0.6
set key off
set grid ytics linecolor rgb "#dddddd"
set xrange [-0.5:3.5 + words(added)]
set xtics ("published" 0, "axonn-sc24" 1, "all overlaps" 2, "Megatron-like" 3) scale 0
do for [i=1:words(added)] { set xtics add (added_title(i) 3 + i) }

of_added(name) = sum [i = 1:words(added)] (name eq word(added, i) ? i : 0)
place(name) = name eq "published" ? 0 : name eq "axonn-sc24" ? 1 : name eq "overlap-all" ? 2 \
            : 3 + of_added(name)
colour(name) = name eq "published" ? 0x000000 : name eq "axonn-sc24" ? 0xd55e00 : name eq "megatron-like" ? 0x999999 \
             : of_added(name) > 0 ? 0xcc79a7 : 0x0072b2

of(series, y) = strcol(1) eq series ? y : NaN
stats data skip 1 using (of("axonn-sc24", column(4))) nooutput
ours = STATS_max
stats data skip 1 using (of("megatron-like", column(4))) nooutput
set label 1 sprintf("axonn-sc24 is\n%.0f %% faster", 100 * (ours / STATS_max - 1)) at 3, STATS_max + 45 center

set ylabel "sustained PFLOP/s"
set yrange [0:max(320, 1.15 * added_pflops_max)]
plot data skip 1 using (place(strcol(1))):4:(colour(strcol(1))) with boxes linecolor rgb variable, \
     data skip 1 using (place(strcol(1))):4:(sprintf("%.0f", column(4))) with labels offset 0,0.7

unset label 1
set ylabel "% of the advertised peak (312 TFLOP/s)"
set yrange [0:100]
plot data skip 1 using (place(strcol(1))):5:(colour(strcol(1))) with boxes linecolor rgb variable, \
     data skip 1 using (place(strcol(1))):5:(sprintf("%.0f %%", column(5))) with labels offset 0,0.7
unset multiplot
