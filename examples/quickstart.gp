# Draws quickstart.svg from curves.dat and reliability.dat: training curves and a reliability diagram.
# usage: gnuplot -e "folder='...'; output='quickstart.svg'" quickstart.gp
set terminal svg size 1080,430 font "Helvetica,13" background "white"
set output output
set multiplot layout 1,2
set style line 1 lc rgb "#1b6ca8" lw 2 pt 7 ps 0.7
set style line 2 lc rgb "#d1495b" lw 2 pt 5 ps 0.6
set style line 3 lc rgb "#8a8d91" lw 2 pt 9 ps 0.7
set border 3 lc rgb "#444444"
set tics nomirror out
set grid ytics lc rgb "#e3e3e3"
set key top right samplen 1.5 spacing 1.15

set title "Validation loss, first split"
set xlabel "epoch"
set ylabel "mean negative log-likelihood"
plot for [i=0:2] folder."/curves.dat" index i using 1:3 with lines ls i+1 title columnheader(1)

set title "Reliability on the test nodes, all splits"
set xlabel "confidence (mean largest probability)"
set ylabel "share of correct nodes"
set xrange [0.2:1.02]
set yrange [0:1.05]
set key bottom right
plot x with lines lc rgb "#bbbbbb" dt 2 notitle, \
  for [i=0:2] folder."/reliability.dat" index i using 1:2 with linespoints ls i+1 title columnheader(1)
unset multiplot
