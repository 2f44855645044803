/// \file
/// LayerScratch: arrays that the layers of a batch use in turn.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the room behind pointers and views; BatchNetwork and
/// BatchTrainer check what they are given.
#pragma once

#include "sheafnn/batch/array.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Derivatives on the way through a layer, n × d' × f per instance. With a polynomial filter z_bar, r_bar and w_bar
/// hold those of all applications of Δ, one after another.
template <class Executor, class S>
struct LayerScratch {
  Array<Executor, S> z_bar, r_bar, w_bar, y_bar, p_bar;
  Array<Executor, S> g, q[2];   ///< of a filter: Z̄, and two cotangents of its terms
  Array<Executor, S> segments;  ///< partial sums of high-degree nodes, segments × d' × f per instance

  LayerScratch() = default;
  /// \param training     numbers of a training pass' features, of all instances
  /// \param applications  of Δ in a layer
  LayerScratch(Executor& executor, Index training, Index applications, bool filter, Index segment_sums) {
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "layers", size); };
    for (Array<Executor, S>* a : {&z_bar, &r_bar, &w_bar}) *a = array(applications * training);
    for (Array<Executor, S>* a : {&y_bar, &p_bar}) *a = array(training);
    if (filter) {
      for (Array<Executor, S>* a : {&g, &q[0], &q[1]}) *a = array(training);
    }
    segments = array(segment_sums);
  }
};

}  // namespace sheafnn::batch::detail
