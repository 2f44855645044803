/// \file
/// What is checked of splits before the first of many trainings begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sheafnn/bsnn/stop_on.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <string>
#include <vector>

#include "models/data_options.hpp"

namespace programs {

/// Checks that a training on split i will find what it needs.
///
/// \throws std::invalid_argument  a set with nodes of which none has a known label; names dataset, split and set
/// \throws std::invalid_argument  validation nodes of a single class where the best epoch is the one that ranks them best
inline void require_trainable(const NodeData& data, std::size_t i, sheafnn::StopOn stop_on) {
  const sheafnn::Split& split = data.splits[i];
  const std::string name = sheafnn::detail::concat(data.name, ": splits[", i, "].");
  const bool numbers = !data.target_names.empty();
  const std::vector<std::int32_t> labels =
      numbers ? sheafnn::detail::known_rows(data.targets, data.node_count()) : data.labels;
  const auto labelled = [&](const std::vector<std::int32_t>& nodes, const char* set) {
    std::vector<std::int32_t> r = sheafnn::labelled_nodes(labels, nodes);
    sheafnn::require(!r.empty() || nodes.empty(), name + set, sheafnn::detail::concat(nodes.size(), " nodes"),
                     sheafnn::detail::concat("none of them has a known ", numbers ? "target" : "label"));
    return r;
  };
  labelled(split.train, "train");
  labelled(split.test, "test");
  const std::vector<std::int32_t> validation = labelled(split.validation, "validation");
  sheafnn::require(!numbers || !is_metric(stop_on), "--stop-on", to_string(stop_on),
                   "it is a metric of classes; choose loss or accuracy");
  const bool ranks = stop_on == sheafnn::StopOn::roc_auc || stop_on == sheafnn::StopOn::average_precision;
  if (!ranks || validation.empty()) return;
  const auto label = [&](std::int32_t u) { return data.labels[static_cast<std::size_t>(u)]; };
  const bool two_classes = std::any_of(validation.begin(), validation.end(),
                                       [&](std::int32_t u) { return label(u) != label(validation.front()); });
  sheafnn::require(two_classes, "--stop-on", to_string(stop_on),
                   sheafnn::detail::concat("the validation nodes of split ", i, " are all of one class"));
}

}  // namespace programs
