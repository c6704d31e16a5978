# SPDX-License-Identifier: Apache-2.0
# Pictures of the report: the part that all share. Colours are numbers of ink (plots/page/svg.h);
# the page's style says what they look like. `folder` is where they go.
array INK[10] = ["#000001", "#000002", "#000003", "#000004", "#000005", "#000006", "#000007", "#000008", "#000009", "#00000a"]
GRID = INK[1]; RANGE = INK[2]; SAMPLES = INK[3]; MEDIAN = INK[4]; CHANGE = INK[5]; BAND = INK[6]
SIMULATED = INK[7]; LEVEL = INK[8]; RESTART = INK[9]; OLDER = INK[10]

# A picture of one metric over the nights: one panel, or the older nights on the left and the last on
# the right; what they show is in datablocks of their own.
HISTORY = "reset; set terminal svg size 760,230 dynamic rounded noenhanced font 'sans,12'; \
    unset key; set border 0; set tics scale 0; set xdata time; set timefmt '%s'; \
    set tmargin screen 0.90; set bmargin screen 0.115; \
    set grid ytics lc rgb GRID lt 1 lw 1; set ytics nomirror; set xtics nomirror"
WHOLE = "set lmargin screen 0.10; set rmargin screen 0.965"
LEFT = "set lmargin screen 0.10; set rmargin screen 0.33"
RIGHT = "set lmargin screen 0.36; set rmargin screen 0.965"
# One line without axes, for a table.
SPARK = "reset; set terminal svg size 160,32 dynamic rounded noenhanced font 'sans,12'; \
    unset key; unset border; unset tics; set lmargin screen 0; set rmargin screen 1; \
    set tmargin screen 1; set bmargin screen 0"
