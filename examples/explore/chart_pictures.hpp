/// \file
/// Charts of a trained model: histograms of its maps, spectra, features along the layers, rejection, training.
#pragma once

#include <algorithm>
#include <cmath>
#include <sheafnn/uncertainty/rejection.hpp>
#include <string>
#include <vector>

#include "explore/gnuplot.hpp"
#include "explore/graph_pictures.hpp"
#include "explore/numbers.hpp"
#include "explore/pictures.hpp"
#include "explore/subject.hpp"

namespace explore {

namespace detail {

inline constexpr const char* two_colours[] = {"#0072b2", "#d55e00"};

/// Rows (x, y).
inline Eigen::MatrixXd columns(const std::vector<double>& x, const std::vector<double>& y) {
  Eigen::MatrixXd r(static_cast<Index>(x.size()), 2);
  std::copy(x.begin(), x.end(), r.col(0).data());
  std::copy(y.begin(), y.end(), r.col(1).data());
  return r;
}
/// Two histograms, of the edges within a class and of the edges between classes, each of area 100 %.
inline void histogram_panel(Script& script, const Subject& s, const std::string& name, const std::string& axis,
                            const std::vector<double>& values, double low, double high) {
  const Index bins =
      std::clamp<Index>(static_cast<Index>(2 * std::sqrt(static_cast<double>(values.size()))), 8, 30);
  const double width = (high - low) / static_cast<double>(bins);
  const char* titles[] = {"within a class", "between classes"};
  std::string fills, lines;
  for (int between = 0; between < 2; ++between) {
    const std::vector<double> part = s.of_edges(values, between == 0);
    if (part.empty()) continue;
    const std::vector<double> shares = histogram(part, low, high, bins);
    std::vector<double> x = {low}, y = {0};
    for (Index i = 0; i < bins; ++i) {
      for (const Index end : {i, i + 1}) {
        x.push_back(low + width * static_cast<double>(end));
        y.push_back(100 * shares[static_cast<std::size_t>(i)]);
      }
    }
    x.push_back(high);
    y.push_back(0);
    const std::string block = joined({name, between});
    script.data(block, columns(x, y));
    fills +=
        joined({fills.empty() ? "" : ", ", "$", block, " with filledcurves y=0 fs transparent solid 0.3 lc rgb '",
                two_colours[between], "' notitle"});
    lines += joined({", $", block, " with lines lw 2 lc rgb '", two_colours[between], "' title '", titles[between],
                     " (", part.size(), ")'"});
  }
  script.line({"set xlabel '", axis, "'\nset ylabel 'edges (%)'"});
  script.line({"set xrange [", low, ":", high, "]\nset xtics ", round_up((high - low) / 4.5)});
  script.line({"set yrange [0:*]\nset offsets 0, 0, graph 0.35, 0"});  // room for the key
  script.line({"plot ", fills, lines});
}

}  // namespace detail

/// Histograms of the turns of edges and of the posterior's spread.
inline Picture draw_histograms(const Subject& s) {
  using namespace detail;
  const bool spread = !s.spread.empty(), kappa = s.learned.spread.name == "kappa";
  Script script(spread ? several_panels : one_panel, 400);
  script.line({"set multiplot layout 1,", spread ? 2 : 1});
  script.line({"set key top right samplen 0.7"});
  script.line({"set title 'What the maps of an edge do'"});
  const double largest = *std::max_element(s.turns.begin(), s.turns.end());
  histogram_panel(script, s, "turn", s.turn_axis(), s.turns, 0,
                  s.learned.rotations() ? std::min(180.0, 15 * std::ceil(largest / 15 + 1e-9))
                                        : round_up(largest));
  if (spread) {
    script.line({"set title 'Spread of their posterior'\nset key top ", kappa ? "left Left reverse" : "right"});
    const auto [low, high] = std::minmax_element(s.spread.begin(), s.spread.end());
    const double step = round_up(std::max((*high - *low) / 6, 1e-3 * *high));
    const double from = kappa && *high - *low > 0.3 ? 0 : step * std::floor(*low / step);
    histogram_panel(script, s, "spread", s.spread_axis(), s.spread, from,
                    kappa && *high - *low > 0.3 ? 1 : step * (std::floor(*high / step) + 1));
  }
  return {"histograms.svg", "Maps within and between classes",
          joined({"Do edges between classes carry other maps than edges within a class? ",
                  s.learned.rotations() ? "Angles by which edges turn" : "Distances of FᵤᵀFᵥ from the identity",
                  spread ? (kappa ? ", and concentrations κ of the posterior (mean of both ends)"
                                  : ", and standard deviations of the posterior (mean of both ends)")
                         : "",
                  "."}),
          script.draw()};
}

/// Scales of the nodes' maps, listening against speaking, by class.
inline Picture draw_roles(const Subject& s) {
  using namespace detail;
  const Eigen::MatrixXd scales = columns(logarithms(s.learned.listening), logarithms(s.learned.speaking));
  Script script(one_panel + 120, 500);
  const std::string plot = plot_classes(script, s, "class", scales, s.classes, 0.6, true);
  script.line({"set key outside right top samplen 0.4"});
  script.line({"set offsets graph 0.03, graph 0.03, graph 0.03, graph 0.03"});
  script.line({"set xlabel 'listening: log₁₀ τ'\nset ylabel 'speaking: log₁₀ σ'"});
  script.line({"plot ", plot});
  return {"roles.svg", "Roles",
          joined({"How strongly each node listens (scale τ of the map through which it receives) and speaks "
                  "(scale σ of the map through which it sends)",
                  s.learned.bayesian() ? ", medians of the posterior" : "", ", coloured by class."}),
          script.draw()};
}

/// Spectra of the Laplacians of the learned sheaf and of identity maps.
inline Picture draw_spectrum(const Subject& s) {
  using namespace detail;
  const std::vector<double> spectra[] = {spectrum(s.data.graph, s.learned.maps, s.learned.edge_weights,
                                                  s.learned.dimension),
                                         identity_spectrum(s.data.graph, s.learned.dimension)};
  const char* titles[] = {"learned sheaf", "identity maps"};
  Script script(several_panels, 400);
  std::string distribution, smallest;
  for (int i = 0; i < 2; ++i) {
    std::vector<double> share, x, rank, value;
    const double count = static_cast<double>(spectra[i].size());
    x.push_back(0);
    share.push_back(0);
    for (std::size_t k = 0; k < spectra[i].size(); ++k) {
      x.push_back(spectra[i][k]);
      share.push_back(100 * static_cast<double>(k + 1) / count);
      if (k >= 40) continue;
      rank.push_back(static_cast<double>(k + 1));
      value.push_back(spectra[i][k]);
    }
    x.push_back(2);
    share.push_back(100);
    script.data(joined({"distribution", i}), columns(x, share));
    script.data(joined({"smallest", i}), columns(rank, value));
    distribution += joined({i == 0 ? "plot " : ", ", "$distribution", i, " with steps lw 2 lc rgb '",
                            two_colours[i], i == 0 ? "'" : "' dt (6,3)", " title '", titles[i], "'"});
    smallest += joined({i == 0 ? "plot " : ", ", "$smallest", i, " with points ps 0.6 pt ", i == 0 ? 7 : 4,
                        " lc rgb '", two_colours[i], "' title '", titles[i], "'"});
  }
  script.line({"set multiplot layout 1,2\nset key samplen 0.7"});
  script.line({"set title 'All eigenvalues'\nset key bottom right"});
  script.line({"set xlabel 'eigenvalue'\nset ylabel 'share up to it (%)'\nset xrange [0:2]\nset yrange [0:100]"});
  script.line({distribution});
  script.line({"set title 'The smallest eigenvalues'\nset key top left Left reverse\nset xtics 10"});
  script.line({"set xlabel 'rank'\nset ylabel 'eigenvalue'\nset xrange [0:41]\nset yrange [0:*]"});
  script.line({smallest});
  return {
      "spectrum.svg", "Spectrum",
      joined({"Eigenvalues of the normalised sheaf Laplacian with the learned maps",
              s.learned.bayesian() ? " (mean of the posterior)" : "",
              " and with identity maps, for the same stalks: small ones belong to signals that diffusion keeps."}),
      script.draw()};
}

/// One panel per layer.
inline Picture draw_layers(const Subject& s) {
  using namespace detail;
  const std::vector<Projection> projections = project_layers(s.learned.layers);
  const int count = static_cast<int>(projections.size()), columns = std::min(count, 3),
            rows = (count + columns - 1) / columns;
  Script script(several_panels / 3 * columns, 270 * rows + 20);
  script.line({"set multiplot layout ", rows, ",", columns});
  script.line({"set tics font ',14'\nset format '%g'\nunset key"});
  for (int l = 0; l < count; ++l) {
    const Projection& p = projections[static_cast<std::size_t>(l)];
    const std::string plot =
        plot_classes(script, s, joined({"layer", l, "class"}), p.points, s.classes, 0.35, false);
    script.line({"set title '", l == 0 ? std::string("encoder") : joined({"after layer ", l}), "'"});
    script.line({"set xlabel sprintf('first (%.0f %%)', ", 100 * p.share[0], ")"});
    script.line({"set ylabel sprintf('second (%.0f %%)', ", 100 * p.share[1], ")"});
    for (int k = 0; k < 2; ++k) {
      const double range = p.points.col(k).maxCoeff() - p.points.col(k).minCoeff();
      script.line({"set ", k == 0 ? "x" : "y", "tics ", round_up(range / 4)});
    }
    script.line({"plot ", plot});
  }
  return {"layers.svg", "Features along the layers",
          "Features of the nodes after the encoder and after each diffusion layer, coloured by class as above. "
          "They are projected to their first two principal components, with the share of the variance in "
          "parentheses.",
          script.draw()};
}

/// Accuracy of what is left when the most uncertain nodes are rejected.
inline Picture draw_rejection(const Subject& s) {
  using namespace detail;
  Script script(one_panel, 400);
  const std::size_t count = s.evaluated.size();
  const auto curve = [&](const std::vector<double>& uncertainty) {
    const std::vector<double> kept =
        sheafnn::uncertainty::rejection_curve(uncertainty, s.learned.labels, s.learned.predicted, s.evaluated)
            .accuracy;
    const std::size_t least =
        std::min<std::size_t>(count, std::max<std::size_t>(5, count / 10));  // fewer are noise
    Eigen::MatrixXd r(static_cast<Index>(count - least + 1), 2);
    for (Index i = 0; i < r.rows(); ++i) {
      r(i, 0) = 100 * static_cast<double>(i) / static_cast<double>(count);
      r(i, 1) = 100 * kept[static_cast<std::size_t>(i)];
    }
    return r;
  };
  const Eigen::MatrixXd entropy = curve(s.learned.entropy);
  double low = entropy.col(1).minCoeff();
  script.data("entropy", entropy);
  std::string plot =
      joined({"plot ", entropy(0, 1), " with lines dt (6,3) lw 1.5 lc rgb '#7f7f7f' title 'at random', ",
              "$entropy with steps lw 2 lc rgb '", two_colours[0], "' title 'by entropy'"});
  if (s.is_sampled()) {
    const Eigen::MatrixXd information = curve(s.learned.mutual_information);
    low = std::min(low, information.col(1).minCoeff());
    script.data("information", information);
    plot += joined({", $information with steps lw 2 lc rgb '", two_colours[1], "' title 'by mutual information'"});
  }
  script.line({"set xlabel 'rejected nodes (%)'\nset ylabel 'accuracy of the rest (%)'\nset xrange [0:100]"});
  script.line({"set yrange [", std::max(0.0, 5 * std::floor(low / 5) - 5), ":101]"});
  script.line({"set key bottom left Left reverse samplen 2"});
  script.line({plot});
  return {"rejection.svg", "Accuracy and rejection",
          joined({"Accuracy on the rest of the ", count, " ", s.evaluated_name,
                  " when the most uncertain nodes are rejected. Where a curve rises, the uncertainty tells "
                  "right from wrong."}),
          script.draw()};
}

/// Losses and accuracy over the epochs, the best epoch marked.
///
/// \param kl_unit  what the KL term is a mean over
inline Picture draw_history(const History& h, const char* kl_unit) {
  using namespace detail;
  std::vector<double> epochs(h.objective.size());
  std::iota(epochs.begin(), epochs.end(), 0.0);
  const bool bayesian = std::any_of(h.kl.begin(), h.kl.end(), [](double kl) { return kl != 0; });
  Script script(bayesian ? several_panels : one_panel, 400);
  script.data("objective", columns(epochs, h.objective));
  script.data("kl", columns(epochs, h.kl));
  script.data("validation", columns(epochs, h.validation_loss));
  script.line({"set multiplot layout 1,", bayesian ? 2 : 1});
  script.line({"set xlabel 'epoch'\nset xrange [0:", std::max<Index>(1, static_cast<Index>(epochs.size()) - 1),
               "]\nset xtics ", round_up(static_cast<double>(epochs.size()) / 4.5)});
  script.line({"set arrow 1 from ", h.best_epoch, ", graph 0 to ", h.best_epoch,
               ", graph 1 nohead dt (2,2) lw 1.5 lc rgb '#444444' back"});
  script.line({"set label 1 'best epoch ", h.best_epoch, "' at ", h.best_epoch,
               ", graph 1.04 center font ',14' tc rgb '#444444'"});
  script.line({"set tmargin 4\nset key top right samplen 0.7"});
  const bool validated =
      std::none_of(h.validation_loss.begin(), h.validation_loss.end(), [](double x) { return std::isnan(x); });
  double highest = *std::max_element(h.objective.begin(), h.objective.end());
  if (validated)
    highest = std::max(highest, *std::max_element(h.validation_loss.begin(), h.validation_loss.end()));
  script.line({"set title 'Losses' offset 0,1\nset ylabel 'per node (nats)'"});
  script.line({"set yrange [0:", 1.3 * highest, "]"});  // room for the key
  std::string plot =
      joined({"plot $objective with lines lw 2 lc rgb '", two_colours[0], "' title 'training objective'"});
  if (validated) {
    plot += joined({", $validation with lines lw 2 lc rgb '", two_colours[1], "' title 'validation loss (NLL)'"});
  }
  script.line({plot});
  if (bayesian) {
    script.line({"set title 'KL term' offset 0,1\nset ylabel 'per ", kl_unit, " (nats)'"});
    script.line({"set yrange [0:*]"});
    script.line({"plot $kl with lines lw 2 lc rgb '#009e73' notitle"});
  }
  const char* losses = validated ? "Training and validation loss" : "Training loss";
  return {"history.svg", "Training",
          joined({losses, " of ", h.training, " over the epochs",
                  bayesian
                      ? " (left; the objective contains the KL term times its weight) and that term without its "
                        "weight (right); the best epoch is marked."
                      : "; the best epoch is marked."}),
          script.draw()};
}

}  // namespace explore
