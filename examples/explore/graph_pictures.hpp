/// \file
/// The graph, drawn: nodes coloured by class and uncertainty, edges by what their maps do.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "explore/gnuplot.hpp"
#include "explore/subject.hpp"

namespace explore {

namespace detail {

/// x as a number above it that is easy to read on an axis.
inline double round_up(double x) {
  if (!(x > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(x)));
  for (const double factor : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0}) {
    if (x <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// Edges as a broken line: two ends and a gap each.
inline Eigen::MatrixXd edge_lines(const sheafnn::Graph& graph, const Eigen::MatrixXd& at) {
  Eigen::MatrixXd r(3 * graph.edge_count(), 2);
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const auto [u, v] = graph.edge(e);
    r.row(3 * e) = at.row(u);
    r.row(3 * e + 1) = at.row(v);
    r.row(3 * e + 2).setConstant(std::numeric_limits<double>::quiet_NaN());
  }
  return r;
}
/// Numbers 0, 1, …, sorted by their values: what is large is drawn last, on top.
inline std::vector<Index> order_of(const std::vector<double>& values) {
  std::vector<Index> order(values.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    return values[static_cast<std::size_t>(a)] < values[static_cast<std::size_t>(b)];
  });
  return order;
}
/// Edges with a value each: start, difference of the ends, value.
inline Eigen::MatrixXd edge_vectors(const sheafnn::Graph& graph, const Eigen::MatrixXd& at,
                                    const std::vector<double>& values) {
  const std::vector<Index> order = order_of(values);
  Eigen::MatrixXd r(graph.edge_count(), 5);
  for (Index i = 0; i < r.rows(); ++i) {
    const Index e = order[static_cast<std::size_t>(i)];
    const auto [u, v] = graph.edge(e);
    for (Index j = 0; j < 2; ++j) {
      r(i, j) = at(u, j);
      r(i, 2 + j) = at(v, j) - at(u, j);
    }
    r(i, 4) = values[static_cast<std::size_t>(e)];
  }
  return r;
}
/// Nodes with a value each.
inline Eigen::MatrixXd node_points(const Eigen::MatrixXd& at, const std::vector<double>& values) {
  const std::vector<Index> order = order_of(values);
  Eigen::MatrixXd r(at.rows(), 3);
  for (Index i = 0; i < r.rows(); ++i) {
    const Index u = order[static_cast<std::size_t>(i)];
    for (Index j = 0; j < 2; ++j) r(i, j) = at(u, j);
    r(i, 2) = values[static_cast<std::size_t>(u)];
  }
  return r;
}
/// The nodes of one class.
inline Eigen::MatrixXd nodes_of_class(const Eigen::MatrixXd& at, const std::vector<std::int32_t>& classes,
                                      std::int32_t of) {
  std::vector<Index> rows;
  for (Index u = 0; u < at.rows(); ++u) {
    if (classes[static_cast<std::size_t>(u)] == of) rows.push_back(u);
  }
  Eigen::MatrixXd r(static_cast<Index>(rows.size()), 2);
  for (Index i = 0; i < r.rows(); ++i) r.row(i) = at.row(rows[static_cast<std::size_t>(i)]);
  return r;
}

/// Classes that a key names; it does not explain the colours of other classes.
inline constexpr std::int32_t most_in_key = 10;
/// Characters of a class name that a key has room for.
inline constexpr std::size_t longest_title = 18;

/// The name of a class in a key: its name, shortened if it is long. It is "class 3" if the class has no name or a number as
/// name.
inline std::string class_title(const std::vector<std::string>& class_names, std::int32_t c) {
  const std::size_t k = static_cast<std::size_t>(c);
  const std::string name = k < class_names.size() ? class_names[k] : "";
  if (name.find_first_not_of("0123456789 ") == std::string::npos)
    return joined({"class ", name.empty() ? std::to_string(c) : name});
  std::string r;
  std::size_t characters = 0;
  for (const char letter : name) {
    const bool begins_one = (letter & 0xC0) != 0x80;  // of UTF-8
    if (begins_one && ++characters > longest_title) return r + "…";
    r += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F ? ' ' : letter;
  }
  return r;
}
/// A text in gnuplot's language.
inline std::string quoted(const std::string& text) {
  std::string r = "'";
  for (const char letter : text) r += letter == '\'' ? std::string("''") : std::string(1, letter);
  return r + "'";
}

/// Adds the nodes of each class as blocks of data $NAMEc. \returns how to plot them
inline std::string plot_classes(Script& script, const Subject& s, const std::string& name,
                                const Eigen::MatrixXd& at, const std::vector<std::int32_t>& classes, double size,
                                bool with_key) {
  std::string plot;
  const std::int32_t most = classes.empty() ? -1 : *std::max_element(classes.begin(), classes.end());
  for (std::int32_t c = 0; c <= most; ++c) {
    const Eigen::MatrixXd points = nodes_of_class(at, classes, c);
    if (points.rows() == 0) continue;
    script.data(joined({name, c}), points);
    plot += joined({plot.empty() ? "" : ", ", "$", name, c, " with points pt ", class_shapes[c / colour_count % 4],
                    " ps ", size, " lc rgb '", class_colours[c % colour_count], "' "});
    plot += with_key && c < most_in_key ? "title " + quoted(class_title(s.data.class_names, c)) : "notitle";
  }
  return plot;
}

/// The script of drawn graphs side by side.
class GraphScript : public Script {
 public:
  /// \param key_rows  lines of names below the panels, where there are more than two
  GraphScript(const Subject& s, const Eigen::MatrixXd& at, int panels, int key_rows = 0)
      : Script(panels == 1 ? one_panel : several_panels, above + side + below + lower(key_rows)),
        node_size(std::clamp(8 / std::sqrt(static_cast<double>(s.nodes())), 0.2, 0.9)),
        edge_width(std::clamp(22 / std::sqrt(static_cast<double>(s.edges() + 1)), 0.3, 2.0)) {
    data("edges", edge_lines(s.data.graph, at));
    const double height = above + side + below + lower(key_rows);
    line({"set multiplot layout 1,", panels, " margins 0.01,0.99,", (below + lower(key_rows)) / height, ",",
          1 - above / height, " spacing 0.02,0"});
    line({"unset border\nunset tics\nunset grid"});
    // Ranges as wide and high as a panel, around the middle of the graph.
    const double aspect = (panels == 1 ? one_panel * 0.98 : several_panels * 0.48) / side;
    const Eigen::VectorXd x = at.col(0), y = at.col(1);
    const double high =
        1.05 * std::max({y.maxCoeff() - y.minCoeff(), (x.maxCoeff() - x.minCoeff()) / aspect, 1e-6});
    const double middle_x = (x.maxCoeff() + x.minCoeff()) / 2, middle_y = (y.maxCoeff() + y.minCoeff()) / 2;
    line({"set xrange [", middle_x - high * aspect / 2, ":", middle_x + high * aspect / 2, "]"});
    line({"set yrange [", middle_y - high / 2, ":", middle_y + high / 2, "]"});
    line({"set key at graph 0.5,-0.03 center top horizontal Left reverse samplen 0.4 width 0 maxrows ",
          std::max(key_rows, 2)});
    line({"set colorbox horizontal user origin graph 0.1,-0.08 size graph 0.8,0.035\nset cbtics out scale 0.4"});
  }
  /// All edges alike, in grey.
  [[nodiscard]] std::string grey_edges() const {
    return joined({"plot $edges with lines lw ", edge_width, " lc rgb '#cccccc' notitle, "});
  }

  const double node_size, edge_width;

 private:
  /// Pixels of a panel, above it and below it.
  static constexpr int above = 56, side = 370, below = 84;

  /// Pixels that such a key needs below the margin of every picture.
  static int lower(int key_rows) { return 26 * std::max(key_rows - 2, 0); }
};

/// log₁₀: a scale and its inverse are as far from 1.
inline std::vector<double> logarithms(std::vector<double> scales) {
  for (double& scale : scales) scale = std::log10(scale);
  return scales;
}

inline constexpr const char* colours_sentence = "Colours reach from the 5 % to the 95 % quantile.";

/// The 5 % and 95 % quantiles of values, between which colours differ: a few extreme values then do not use up the
/// range of colours.
inline std::pair<double, double> colour_range(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t last = values.size() - 1, cut = last / 20;
  const double low = values[cut], high = values[last - cut];
  return {low, std::max(high, low + 1e-3 * std::max(std::abs(low), 1e-3))};
}
/// Sets the colours of the next panel.
inline void set_colours(GraphScript& script, const std::vector<double>& values) {
  const auto [low, high] = colour_range(values);
  script.line({"set cbrange [", low, ":", high, "]\nset cbtics ", round_up((high - low) / 4)});
}

/// A panel with nodes coloured by their values, as data $NAME.
///
/// \param rings  plots of other data on top
inline void plot_node_values(GraphScript& script, const char* name, const char* title, const Eigen::MatrixXd& at,
                             const std::vector<double>& values, const std::string& rings = "") {
  script.data(name, node_points(at, values));
  set_colours(script, values);
  script.line({"set title '", title, "'"});
  script.line({script.grey_edges(), "$", name, " with points pt 7 ps ", 1.25 * script.node_size,
               " lc rgb '#555555' notitle, $", name, " with points pt 7 ps ", script.node_size,
               " lc palette notitle", rings});
}

/// Adds the nodes whose prediction is not the label as data $wrong. \returns how to ring them, or nothing
inline std::string rings_of_wrong(GraphScript& script, const Subject& s, const Eigen::MatrixXd& at) {
  std::vector<std::int32_t> wrong;
  for (std::size_t u = 0; u < s.learned.labels.size(); ++u) wrong.push_back(s.is_wrong(u));
  const Eigen::MatrixXd rings = nodes_of_class(at, wrong, 1);
  script.data("wrong", rings);
  if (rings.rows() == 0) return "";
  return joined(
      {", $wrong with points pt 6 ps ", 1.9 * script.node_size, " lw 2 lc rgb 'black' title 'not the label'"});
}

/// Lines that the names of the classes and "not the label" take in a panel of that many pixels.
inline int rows_of_key(const Subject& s, int width) {
  const std::int32_t classes = static_cast<std::int32_t>(std::min<Index>(s.learned.classes, most_in_key));
  std::size_t longest = 13;
  for (std::int32_t c = 0; c < classes; ++c) {
    longest = std::max(longest, std::min(class_title(s.data.class_names, c).size(), longest_title + 1));
  }
  const int columns = std::max(1, width / (8 * static_cast<int>(longest) + 50));  // as gnuplot has them
  return (classes + columns) / columns;
}

}  // namespace detail

/// Labels next to predictions.
inline Picture draw_classes(const Subject& s, const Eigen::MatrixXd& at) {
  using namespace detail;
  const bool labels = *std::max_element(s.learned.labels.begin(), s.learned.labels.end()) >= 0;
  GraphScript script(s, at, labels ? 2 : 1, rows_of_key(s, labels ? several_panels / 2 : one_panel));
  Picture r{"classes.svg", "Classes", "The graph, nodes coloured by the class that the model predicts.", {}};
  if (labels) {
    r.caption =
        "The graph, nodes coloured by label (left; open circles: unknown) and by the class that the "
        "model predicts (right; ringed: not the label).";
    const std::string of_labels = plot_classes(script, s, "label", at, s.learned.labels, script.node_size, true);
    const Eigen::MatrixXd unknown = nodes_of_class(at, s.learned.labels, -1);
    script.data("unknown", unknown);
    script.line({"set title 'Labels'"});
    script.line({script.grey_edges(), of_labels,
                 unknown.rows() > 0
                     ? joined({", $unknown with points pt 6 ps ", script.node_size, " lc rgb '#666666' notitle"})
                     : std::string()});
  }
  const std::string predicted =
      plot_classes(script, s, "predicted", at, s.learned.predicted, script.node_size, true);
  script.line({"set title 'Predicted classes'"});
  script.line({script.grey_edges(), predicted, rings_of_wrong(script, s, at)});
  r.svg = script.draw();
  return r;
}

/// Entropy and, of models that draw sheaves, mutual information.
inline Picture draw_uncertainty(const Subject& s, const Eigen::MatrixXd& at) {
  using namespace detail;
  GraphScript script(s, at, s.is_sampled() ? 2 : 1);
  script.line({"unset key"});
  plot_node_values(script, "entropy", "Entropy (nats)", at, s.learned.entropy, rings_of_wrong(script, s, at));
  if (s.is_sampled()) {
    plot_node_values(script, "information", "Mutual information (nats)", at, s.learned.mutual_information,
                     rings_of_wrong(script, s, at));
  }
  return {"uncertainty.svg", "Uncertainty",
          joined({"Where the model is uncertain: the entropy of the predicted classes",
                  s.is_sampled()
                      ? ", and the part of it that comes from not knowing the sheaf (mutual information)"
                      : "",
                  s.has_wrong() ? "; ringed nodes are predicted wrongly. " : ". ", colours_sentence}),
          script.draw()};
}

/// Scales of the nodes' maps.
inline Picture draw_scales(const Subject& s, const Eigen::MatrixXd& at) {
  using namespace detail;
  GraphScript script(s, at, 2);
  plot_node_values(script, "listening", "Listening: log₁₀ τ", at, logarithms(s.learned.listening));
  plot_node_values(script, "speaking", "Speaking: log₁₀ σ", at, logarithms(s.learned.speaking));
  return {"scales.svg", "Listening and speaking",
          joined({"How strongly each node listens (left: scale τ of its receiving map) and speaks (right: scale "
                  "σ of its sending map)",
                  s.learned.bayesian() ? "; medians of the posterior. " : ". ", colours_sentence}),
          script.draw()};
}

/// What the maps of each edge do, and the posterior's spread.
inline Picture draw_edges(const Subject& s, const Eigen::MatrixXd& at) {
  using namespace detail;
  const bool spread = !s.spread.empty();
  GraphScript script(s, at, spread ? 2 : 1);
  script.data("nodes", at);
  const std::string nodes =
      joined({"$nodes with points pt 7 ps ", 1.15 * script.node_size, " lc rgb 'white' notitle, "}) +
      plot_classes(script, s, "class", at, s.classes, 0.75 * script.node_size, true);
  const auto panel = [&](const char* name, const std::string& title, const std::vector<double>& values) {
    script.data(name, edge_vectors(s.data.graph, at, values));
    script.line({"set title '", title, "'"});
    set_colours(script, values);
    script.line({"unset key"});
    script.line(
        {"plot $", name, " with vectors nohead lw ", 1.6 * script.edge_width, " lc palette notitle, ", nodes});
  };
  panel("turns", s.learned.rotations() ? "Angle of the edge (degrees)" : "Distance of FᵤᵀFᵥ from identity",
        s.turns);
  if (spread) {
    panel("spread", s.learned.spread.name == "kappa" ? "Concentration κ" : "Standard deviation σ", s.spread);
  }
  const std::string what = s.learned.rotations()
                               ? "the angle by which its maps turn a vector on the way from one end to the other"
                               : "how far the product of its two maps is from the identity, ‖FᵤᵀFᵥ − I‖";
  return {
      "edges.svg", "Edges",
      joined(
          {"Each edge coloured by ", what,
           spread
               ? (s.learned.spread.name == "kappa"
                      ? " (left), and by how certain the model is of its maps (right; κ = 1: certain, 0: uniform)"
                      : " (left), and by the spread of its maps (right)")
               : "",
           "; nodes coloured by class. ", colours_sentence}),
      script.draw()};
}

}  // namespace explore
