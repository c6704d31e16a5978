# SPDX-License-Identifier: Apache-2.0
# Seconds of a batch and days for 2 T tokens of two models against GCDs. Columns: 1 series,
# 2 workload, 3 GCDs, 4 PFLOP/s, 7 efficiency %, 8 machine, 11 iteration, 12 provenance.
# scale4d plot sets terminal, output, data and what plots/overlay.h tells of.
set datafile separator "\t"
set datafile missing "NaN"
set multiplot layout 1,2
set tmargin screen 0.8
models = "gpt-80b gpt-640b"
titles = "GPT-80B GPT-640B"
array colour[2] = ["#0072b2", "#d55e00"]
tokens_of_batch = 8192 * 2048.0
days(seconds) = seconds * 2e12 / tokens_of_batch / 86400
set grid linecolor rgb "#dddddd"
set xlabel "GCDs of Frontier"
set logscale xy
set xrange [min(100, 0.8 * added_gpus_min):max(10500, 1.25 * added_gpus_max)]
set xtics ("128" 128, "256" 256, "512" 512, "1024" 1024, "2048" 2048, "4096" 4096, "8192" 8192) rotate by -35
do for [n in added_gpus] { set xtics add (n n + 0) }
of(model, series, y) = strcol(2) eq model && strcol(1) eq series ? y : NaN
verified(y) = strcol(1) eq "published" && strcol(12) ne "unverified" ? y : NaN
unverified(y) = strcol(1) eq "published" && strcol(12) eq "unverified" ? y : NaN
# Of a published row its model's colour.
painted(model) = model eq word(models, 1) ? 0x0072b2 : 0xd55e00
# Perfect scaling from each model's smallest point of axonn-sc24.
array first_gpus[2] = [128, 512]
array first_s[2]
do for [i=1:2] {
    stats data using (of(word(models, i), "axonn-sc24", $3 == first_gpus[i] ? column(11) : NaN)) nooutput
    first_s[i] = STATS_min
}
ideal(i, gpus) = gpus >= first_gpus[i] && gpus <= 8192 ? first_s[i] * first_gpus[i] / gpus : NaN
own = added_lines("in(column(11))")

do for [panel = 1:2] {
    in(y) = panel == 1 ? y : days(y)
    if (panel == 1) {
        set key at screen 0.5, screen 0.995 center top horizontal reverse Left samplen 2 maxrows 3
        set ylabel "seconds of a batch of 8,192 sequences"
        set format y "%g"
    } else {
        set key off
        set ylabel "days for 2 T tokens"
        set ytics add ("a year" 365.25)
    }
    set yrange [in(8):in(6000)]
    plot for [i=1:2] in(ideal(i, x)) with lines linecolor rgb "#666666" linewidth 1.5 dashtype 3 \
             title i == 1 ? "perfect scaling" : "", \
         for [i=1:2] data using 3:(in(of(word(models, i), "overlap-all", column(11)))) with linespoints \
             linecolor rgb colour[i] dashtype 2 pointtype 0 title word(titles, i).", all overlaps", \
         for [i=1:2] data using 3:(in(of(word(models, i), "axonn-sc24", column(11)))) with linespoints \
             linecolor rgb colour[i] linewidth 2 pointtype 7 pointsize 0.5 title word(titles, i).", axonn-sc24", \
         data using 3:(in(verified(column(11)))):(painted(strcol(2))) with points \
             linecolor rgb variable pointtype 9 pointsize 1.5 notitle, \
         data using 3:(in(unverified(column(11)))):(painted(strcol(2))) with points \
             linecolor rgb variable pointtype 8 pointsize 1.5 notitle, \
         @own \
         NaN with points linecolor rgb "#000000" pointtype 9 pointsize 1.3 title "published", \
         NaN with points linecolor rgb "#000000" pointtype 8 pointsize 1.3 title "published, unverified"
}
unset multiplot
