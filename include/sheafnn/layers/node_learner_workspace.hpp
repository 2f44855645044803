/// \file
/// NodeLearnerWorkspace: buffers that the learner pairs of a network (node_learner.hpp) share, since only one of them
/// works at a time.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/layers/node_learner_options.hpp"

namespace sheafnn::detail {

/// Unchecked: the number of nodes, at least 0.
template <class S>
struct NodeLearnerWorkspace {
  Index nodes;
  NodeLearnerOptions options;
  Buffer<S> product[2];         ///< of every other convolution: n × 2 · (g or o)
  Buffer<S> z_bar[2], raw_bar;  ///< derivatives of every other convolution's Z, and of the last one's
  Buffer<S> z, activated;       ///< of passes that keep nothing

  /// \throws std::invalid_argument  options out of range
  NodeLearnerWorkspace(Index node_count, const NodeLearnerOptions& of)
      : nodes(node_count), options((validate(of), of)), raw_bar(nodes * 2 * options.outputs) {
    if (options.kind == NodeLearnerKind::mlp) return;
    const Index width = options.layers > 1 ? options.width : 0;
    for (Buffer<S>& one : product) one.resize(nodes * 2 * std::max(width, options.outputs));
    for (Buffer<S>* one : {&z_bar[0], &z_bar[1], &z, &activated}) one->resize(nodes * 2 * width);
  }
};

}  // namespace sheafnn::detail
