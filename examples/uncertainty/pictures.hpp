/// \file
/// Pictures of the program uncertainty: reliability with the counts of its bins, rejection, sizes of conformal sets,
/// histograms of the measures.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "explore/gnuplot.hpp"
#include "explore/subject.hpp"
#include "models/progress.hpp"
#include "uncertainty/figures.hpp"

namespace uncertainty {

using explore::joined;
using explore::Picture;
using explore::Script;

/// Rows of values; all are as long as the first.
inline Eigen::MatrixXd matrix(const std::vector<Numbers>& rows) {
  Eigen::MatrixXd r(std::ssize(rows), rows.empty() ? 0 : std::ssize(rows[0]));
  for (Index i = 0; i < r.rows(); ++i) {
    for (Index j = 0; j < r.cols(); ++j) r(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }
  return r;
}

/// A distance between ticks, 1, 2 or 5 times a power of ten, of which about two fit into a range above 0.
inline double tick_distance(double range) {
  const double power = std::pow(10, std::floor(std::log10(range / 2)));
  const double leading = range / 2 / power;
  return power * (leading < 1.5 ? 1 : leading < 3.5 ? 2 : leading < 7.5 ? 5 : 10);
}

inline Picture draw_reliability(const Figures& figures) {
  const bool ensembles = figures.variants.size() > 3;
  const std::vector<std::size_t> shown =
      ensembles ? std::vector<std::size_t>{0, 1, 3} : std::vector<std::size_t>{0, 1, 2};
  const char* const titles[] = {"single model", "temperature", "two temperatures", "ensemble"};
  Script script(explore::several_panels, 480);
  script.line({"set multiplot layout 2,", shown.size(), " margins 0.14,0.98,0.18,0.9 spacing 0.09,0.14\n",
               "set xlabel offset 0,0.4\nset title offset 0,-0.4\nset ylabel offset 1,0"});
  script.line({"unset key\nset xrange [0:1]\nset xtics 0.5\nset tics font ',15'"});
  for (const std::size_t v : shown) {
    std::vector<Numbers> rows;
    for (const sheafnn::uncertainty::ReliabilityBin& bin : figures.variants[v].bins) {
      const double nothing = std::numeric_limits<double>::quiet_NaN();
      rows.push_back({(bin.lower + bin.upper) / 2, bin.upper - bin.lower, static_cast<double>(bin.count),
                      bin.count > 0 ? bin.confidence : nothing, bin.count > 0 ? bin.accuracy : nothing});
    }
    script.data(joined({"bins", v}), matrix(rows));
    script.line({"set title '", titles[v], "'\nset ylabel '", v == 0 ? "accuracy" : "",
                 "'\nset yrange [0:1]\nset ytics 0.5"});
    script.line({"plot $bins", v,
                 " using 1:5:2 with boxes fs solid 0.35 lc rgb '#0072b2', x with lines dt (6,3) lc rgb ",
                 "'#7f7f7f', $bins", v, " using 4:5 with points pt 7 ps 0.6 lc rgb '#d55e00'"});
  }
  for (const std::size_t v : shown) {
    Index most = 1;
    for (const sheafnn::uncertainty::ReliabilityBin& bin : figures.variants[v].bins)
      most = std::max(most, bin.count);
    script.line({"set title ''\nset xlabel 'confidence'\nset ylabel '", v == 0 ? "nodes" : "",
                 "'\nset yrange [0:*]\n", "set ytics 0, ", tick_distance(static_cast<double>(most))});
    script.line({"plot $bins", v, " using 1:3:2 with boxes fs solid 0.35 lc rgb '#7f7f7f'"});
  }
  return {"reliability.svg", "Reliability",
          "Accuracy on the test nodes by confidence, all splits and seeds together, and how many nodes are in "
          "each bin. Bars "
          "below the diagonal are overconfident; a bin of a few nodes says little.",
          script.draw()};
}

inline Picture draw_rejection(const Figures& figures) {
  const char* const colours[] = {"#0072b2", "#009e73", "#d55e00"};
  Script script(figures.samples.size() > 1 ? explore::several_panels : explore::one_panel, 400);
  script.line({"set multiplot layout 1,", figures.samples.size()});
  script.line({"set key bottom left Left reverse samplen 2\nset xrange [0:100]"});
  script.line({"set xlabel 'rejected nodes (%)'\nset ylabel 'accuracy of the rest (%)'"});
  for (std::size_t k = 0; k < figures.samples.size(); ++k) {
    std::vector<Numbers> rows;
    double low = 100;
    for (std::size_t percent = 0; percent < figures.samples[k].measures[0].curve.size(); ++percent) {
      rows.push_back({static_cast<double>(percent)});
      for (const Measure& m : figures.samples[k].measures) {
        rows.back().push_back(100 * m.curve[percent].mean());
        low = std::min(low, rows.back().back());
      }
    }
    low = std::max(0.0, low - 0.55 * (101 - low));  // room for the key
    const std::string block = joined({"curve", k});
    script.data(block, matrix(rows));
    std::string plot =
        joined({"plot ", rows[0][1], " with lines dt (6,3) lw 1.5 lc rgb '#7f7f7f' title 'at random'"});
    for (std::size_t m = 0; m < 3; ++m) {
      plot += joined({", $", block, " using 1:", m + 2, " with lines lw 2 lc rgb '", colours[m], "' title 'by ",
                      figures.samples[k].measures[m].name, "'"});
    }
    script.line({"set title '", figures.samples[k].name, "'\nset yrange [", low, ":101]"});
    script.line({plot});
  }
  return {"rejection.svg", "Accuracy and rejection",
          "Accuracy on the test nodes that are left when the most uncertain nodes are rejected, by three "
          "measures. Means over splits and seeds. On the right of the curves few nodes are left.",
          script.draw()};
}

inline Picture draw_sets(const Figures& figures, double alpha) {
  const char* const colours[] = {"#56b4e9", "#0072b2", "#e69f00"};
  Script script(figures.samples.size() > 1 ? explore::several_panels : explore::one_panel, 400);
  script.line({"set multiplot layout 1,", figures.samples.size()});
  script.line({"set key top right Right samplen 0.5 font ',12'\nset yrange [0:*]\nset style fill solid 0.8"});
  script.line({"set xlabel 'classes in the set'\nset ylabel 'test nodes (%)'\nset offsets 0, 0, graph 0.5, 0"});
  for (std::size_t k = 0; k < figures.samples.size(); ++k) {
    const auto& methods = figures.samples[k].methods;
    std::vector<Numbers> rows;
    for (std::size_t size = 0; size < methods[0].of_size.size(); ++size) {
      rows.push_back({static_cast<double>(size)});
      for (const SetMethod& method : methods) {
        double sets = 0;
        for (const Index count : method.of_size) sets += static_cast<double>(count);
        rows.back().push_back(100 * static_cast<double>(method.of_size[size]) / sets);
      }
    }
    script.line(
        {"set xrange [-0.6:", static_cast<double>(rows.size()) - 0.4, "]\nset xtics 0, ", 1 + rows.size() / 12});
    const std::string block = joined({"sets", k});
    script.data(block, matrix(rows));
    std::string plot;
    for (std::size_t m = 0; m < methods.size(); ++m) {
      plot += joined({m == 0 ? "plot " : ", ", "$", block, " using ($1 + ", 0.27 * (static_cast<double>(m) - 1),
                      "):", m + 2, ":(0.25) with boxes lc rgb '", colours[m], "' title '", methods[m].name, ": ",
                      programs::text("%.1f %%, ", 100 * methods[m].coverage.mean()),
                      programs::text("%.2f", methods[m].size.mean()), "'"});
    }
    script.line({"set title '", figures.samples[k].name, "'"});
    script.line({plot});
  }
  return {"sets.svg", "Sizes of conformal prediction sets",
          joined({"Sets of classes that are to contain the label of ", 100 * (1 - alpha),
                  " % of the nodes. Their scores have whole classes, are randomised, or are randomised and "
                  "averaged over neighbours. Behind each: its coverage and mean size. Small "
                  "sets are informative; empty sets and sets of all classes are not."}),
          script.draw()};
}

/// Shares of nodes by each measure: a row of single models, one of the ensemble where there is one. The last bin holds
/// the largest values too, which are few and far from the others.
inline Picture draw_histograms(const Figures& figures) {
  const char* const colours[] = {"#0072b2", "#d55e00", "#009e73"};
  const char* const names[] = {"predicted rightly", "predicted wrongly", "of the unseen class"};
  const std::size_t rows = figures.samples.size();
  Script script(explore::several_panels, 80 + static_cast<int>(rows) * 270);
  const double height = 80 + static_cast<double>(rows) * 270;
  script.line({"set multiplot layout ", rows, ",3 margins 0.13,0.97,", 90 / height, ",", 1 - 90 / height,
               " spacing 0.09,", 136 / height,
               "\nset xlabel offset 0,0.4\nset title offset 0,-0.4\nset ylabel offset 1,0"});
  script.line(
      {"set tics font ',15'\nset yrange [0:*]\nset ytics 20\nset key at screen 0.93,0.99 right top horizontal "
       "samplen 1"});
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t k = 0; k < figures.samples[row].measures.size(); ++k) {
      const Measure& m = figures.samples[row].measures[k];
      const Numbers* const groups[] = {&m.of_right, &m.of_wrong, &m.of_unseen};
      constexpr Index bins = 25;
      Numbers all;
      for (const Numbers* group : groups) all.insert(all.end(), group->begin(), group->end());
      const auto large = all.begin() + std::ssize(all) * 97 / 100;
      std::nth_element(all.begin(), large, all.end());
      const double range = *large > 0 ? *large : 1;
      const double width = range / static_cast<double>(bins);
      std::string plot;
      for (std::size_t g = 0; g < 3; ++g) {
        if (groups[g]->empty()) continue;
        Numbers shares(static_cast<std::size_t>(bins));
        for (const double value : *groups[g]) {
          const Index bin = std::clamp(static_cast<Index>(value / width), Index{0}, bins - 1);
          shares[static_cast<std::size_t>(bin)] += 100 / static_cast<double>(groups[g]->size());
        }
        std::vector<Numbers> outline = {{0, 0}};
        for (std::size_t i = 0; i < shares.size(); ++i) {
          outline.push_back({width * static_cast<double>(i), shares[i]});
          outline.push_back({width * static_cast<double>(i + 1), shares[i]});
        }
        outline.push_back({width * static_cast<double>(bins), 0});
        const std::string block = joined({"group", row, "of", k, "of", g});
        script.data(block, matrix(outline));
        plot += joined({plot.empty() ? "plot " : ", ", "$", block, " with lines lw 2 lc rgb '", colours[g], "' ",
                        row == 0 && k == 0 ? joined({"title '", names[g], "'"}) : "notitle"});
      }
      script.line({"set title '", k == 0 ? figures.samples[row].name : "", "'\nset xlabel '", m.name,
                   "'\nset ylabel '", k == 0 ? "nodes (%)" : "", "'\nset xrange [0:", range, "]\nset xtics 0, ",
                   tick_distance(range)});
      script.line({plot});
    }
  }
  return {"histograms.svg", "Uncertainty of right and wrong predictions",
          "Entropy (nats), epistemic variance and mutual information (nats) of the test nodes, all splits "
          "together. The height is the share of the nodes of a curve. A measure is of use where its curves "
          "differ. The last bin holds all larger values.",
          script.draw()};
}

}  // namespace uncertainty
