/// \file
/// Subject: the data of all pictures; and Picture: one picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explore/learned.hpp"

namespace explore {

/// An SVG with its caption: what it shows, in a sentence.
struct Picture {
  std::string file, title, caption, svg;
};

struct Subject {
  const sheafnn::Dataset& data;
  const Learned& learned;
  std::vector<double> turns;            ///< of edges (edge_turns()); empty where the maps are fixed
  std::vector<double> spread;           ///< of edges, the mean of both ends; empty in deterministic models
  std::vector<std::int32_t> classes;    ///< of nodes: the label, or the prediction if there is no label
  std::vector<std::int32_t> evaluated;  ///< nodes that accuracies are of, all with a label
  std::string evaluated_name;           ///< "test nodes of split 0" or "labelled nodes"

  [[nodiscard]] Index nodes() const { return data.graph.node_count(); }
  [[nodiscard]] Index edges() const { return data.graph.edge_count(); }
  [[nodiscard]] bool within_class(Index e) const {
    const auto [u, v] = data.graph.edge(e);
    return classes[static_cast<std::size_t>(u)] == classes[static_cast<std::size_t>(v)];
  }
  /// Values of one of two kinds of edges: edges within a class, or edges between classes.
  [[nodiscard]] std::vector<double> of_edges(const std::vector<double>& values, bool within) const {
    std::vector<double> r;
    for (Index e = 0; e < edges(); ++e) {
      if (within_class(e) == within) r.push_back(values[static_cast<std::size_t>(e)]);
    }
    return r;
  }
  /// Does node u have a label that differs from the prediction?
  [[nodiscard]] bool is_wrong(std::size_t u) const {
    return learned.labels[u] >= 0 && learned.labels[u] != learned.predicted[u];
  }
  [[nodiscard]] bool has_wrong() const {
    for (std::size_t u = 0; u < learned.labels.size(); ++u) {
      if (is_wrong(u)) return true;
    }
    return false;
  }
  [[nodiscard]] std::string turn_axis() const {
    return learned.rotations() ? "angle of the edge (degrees)" : "‖FᵤᵀFᵥ − I‖ of the edge";
  }
  [[nodiscard]] std::string spread_axis() const {
    return learned.spread.name == "kappa" ? "concentration κ" : "standard deviation σ";
  }
  [[nodiscard]] bool has_labels() const { return !evaluated.empty(); }
  /// Is part of the uncertainty epistemic? Only where sheaves are drawn.
  [[nodiscard]] bool is_sampled() const { return learned.bayesian() && !learned.fixed(); }
};

}  // namespace explore
