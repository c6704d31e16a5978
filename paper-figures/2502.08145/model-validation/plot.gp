# SPDX-License-Identifier: Apache-2.0
# Models against simulation, a point a grid: a panel a machine. scale4d plot sets terminal, output,
# data. Columns: 4 machine, 7 model of tune, 8 published model, 9 the same over the links, 10
# simulated (seconds).
set datafile separator "\t"
set multiplot layout 1, 2
set logscale xy
set grid linecolor rgb "#dddddd"
set xlabel "simulated iteration (s)"
set xtics add ("2" 2, "5" 5, "20" 20, "50" 50)
set ytics add ("0.5" 0.5, "2" 2, "5" 5, "20" 20, "50" 50)
set tmargin 2.5

machines = "perlmutter frontier"
array titles[2] = ["GPT-20B on 32 GPUs of Perlmutter", "GPT-40B on 64 GCDs of Frontier"]
of(i, y) = strcol(4) eq word(machines, i) ? y : NaN

do for [i = 1:2] {
    set autoscale # stats leaves out what lies outside the ranges
    stats data skip 1 using (of(i, column(10))) nooutput name "SIMULATED"
    stats data skip 1 using (of(i, column(9))) nooutput name "LINKS"
    set xrange [SIMULATED_min / 1.15:SIMULATED_max * 1.15]
    set yrange [LINKS_min / (i == 1 ? 6 : 1.5):SIMULATED_max * 1.5]
    set title titles[i]
    if (i == 1) {
        set ylabel "by the model (s)"
        set key right bottom Left reverse samplen 1.5 font ",10"
    } else {
        unset ylabel
        unset key
    }
    plot x title "equal" with lines linecolor "black", \
         1.15 * x title "15 % off" with lines dashtype 2 linecolor "gray50", \
         x / 1.15 notitle with lines dashtype 2 linecolor "gray50", \
         data skip 1 using 10:(of(i, column(7))) title "iteration, scale4d tune" \
             with points pointtype 7 pointsize 0.8 linecolor rgb "#0072b2", \
         data skip 1 using 10:(of(i, column(8))) \
             title "communication alone, arXiv 2502.08145, authors' bandwidths" \
             with points pointtype 4 linecolor rgb "#d55e00", \
         data skip 1 using 10:(of(i, column(9))) title "the same, bandwidths of the links" \
             with points pointtype 1 linecolor rgb "#009e73"
}
unset multiplot
