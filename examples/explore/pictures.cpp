#include "explore/pictures.hpp"

#include <numeric>
#include <sheafnn/graph/statistics.hpp>
#include <sheafnn/uncertainty/rejection.hpp>
#include <utility>

#include "explore/chart_pictures.hpp"
#include "explore/graph_pictures.hpp"
#include "explore/layout.hpp"
#include "explore/numbers.hpp"
#include "models/sheaf_figures.hpp"

namespace explore {
namespace {

/// More nodes than anybody can tell apart, and seconds of layout.
constexpr Index most_drawn_nodes = 3000;
/// Rows of a Laplacian that is decomposed densely: some seconds.
constexpr Index max_rows = 2000;

Subject make_subject(const sheafnn::Dataset& data, const Learned& learned,
                     const std::vector<std::int32_t>& evaluated, const std::string& evaluated_name) {
  Subject s{data, learned, {}, {}, learned.labels, {}, evaluated_name};
  for (std::size_t u = 0; u < s.classes.size(); ++u) {
    if (s.classes[u] < 0) s.classes[u] = learned.predicted[u];
  }
  for (const std::int32_t u : evaluated) {
    const std::int32_t label = learned.labels[static_cast<std::size_t>(u)];
    if (label >= 0 && label < learned.classes) s.evaluated.push_back(u);
  }
  if (!learned.fixed() && !learned.cooperative() && s.edges() > 0) {
    s.turns = edge_turns(learned, data.graph);
    if (!learned.spread.values.empty()) s.spread = edge_means(learned.spread.values, data.graph);
  }
  return s;
}

/// A number with few digits.
std::string shortly(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The table on top of the page.
std::vector<std::pair<std::string, std::string>> facts_of(const Subject& s) {
  const Learned& l = s.learned;
  std::vector<std::pair<std::string, std::string>> r = {
      {"graph", joined({s.nodes(), " nodes, ", s.edges(), " edges"})},
      {"model",
       joined({l.bayesian() ? "Bayesian" : "deterministic", ", ", l.family,
               l.cooperative() ? " maps of nodes, stalk dimension " : " maps, stalk dimension ", l.dimension})},
      {"layers, classes", joined({l.layers.size() - 1, ", ", l.classes})}};
  if (s.has_labels()) {
    if (s.edges() > 0) {
      r.emplace_back("homophily", shortly("%.2f", sheafnn::edge_homophily(s.data.graph, s.classes)));
    }
    const double accuracy =
        sheafnn::uncertainty::rejection_curve(l.entropy, l.labels, l.predicted, s.evaluated).accuracy.front();
    r.emplace_back("accuracy, " + s.evaluated_name, shortly("%.1f %%", 100 * accuracy));
  }
  r.emplace_back("mean entropy", shortly("%.3g nats", mean(l.entropy)));
  for (const bool within : {true, false}) {
    const std::vector<double> turns = s.turns.empty() ? s.turns : s.of_edges(s.turns, within);
    if (turns.empty() || !l.rotations()) continue;
    r.emplace_back(within ? "mean turn within a class" : "between classes", shortly("%.1f°", mean(turns)));
  }
  if (l.scaled()) {
    r.emplace_back("mean scales τ, σ", shortly("%.3g, ", mean(l.listening)) + shortly("%.3g", mean(l.speaking)));
  }
  return r;
}

}  // namespace

Exploration explore_model(const sheafnn::Dataset& data, const Learned& learned,
                          const std::vector<std::int32_t>& evaluated, const std::string& evaluated_name,
                          const History* history) {
  const Subject s = make_subject(data, learned, evaluated, evaluated_name);
  Exploration r;
  r.facts = facts_of(s);
  if (learned.use) {
    r.use = programs::map_figures(*learned.use);
    for (auto& figure : programs::loss_figures(*learned.use)) r.use.push_back(std::move(figure));
    r.warning = sheafnn::warning(*learned.use);
  } else if (!learned.fixed()) {
    r.notes.push_back("No figures say whether the sheaf is used: the model's file has none.");
  }
  if (s.nodes() <= most_drawn_nodes) {
    const Eigen::MatrixXd at = layout(data.graph);
    r.pictures.push_back(draw_classes(s, at));
    r.pictures.push_back(draw_uncertainty(s, at));
    if (!s.turns.empty()) r.pictures.push_back(draw_edges(s, at));
    if (learned.scaled()) r.pictures.push_back(draw_scales(s, at));
  } else {
    r.notes.push_back(joined({"The graph is not drawn: it has more than ", most_drawn_nodes, " nodes."}));
  }
  if (!s.turns.empty()) r.pictures.push_back(draw_histograms(s));
  if (learned.cooperative()) {  // no spectrum: their operators are not symmetric
    if (learned.scaled()) r.pictures.push_back(draw_roles(s));
  } else if (s.nodes() * learned.dimension <= max_rows) {
    r.pictures.push_back(draw_spectrum(s));
  } else {
    r.notes.push_back(joined({"No spectrum: the Laplacian has more than ", max_rows, " rows."}));
  }
  r.pictures.push_back(draw_layers(s));
  if (s.has_labels()) r.pictures.push_back(draw_rejection(s));
  if (history != nullptr) {
    r.pictures.push_back(draw_history(*history, learned.cooperative() ? "map" : "incident pair"));
  }
  return r;
}

}  // namespace explore
