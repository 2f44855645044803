/// \file
/// LayerScratch: arrays that the layers of a batch use in turn.
#pragma once

#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Derivatives on the way through a layer, n × d' × f per instance. With a polynomial filter, z_bar, r_bar and w_bar
/// hold the derivatives of all applications of Δ, one after another.
template <class Executor, class S>
struct LayerScratch {
  /// The arrays of one layer while the layer below begins, or while sums for its weights are in the first launch of the
  /// layer below.
  struct Side {
    Array<Executor, S> z_bar, r_bar, y_bar, p_bar;
  };
  Side side[2];
  bool two_sides = false;  ///< else all layers use the first
  Array<Executor, S> w_bar;
  Array<Executor, S> g, q[2];        ///< of a filter: Z̄, and two cotangents of its terms
  Array<Executor, S> first_bar;      ///< of layers that read X_1: of what the first layer gets
  Array<Executor, S> before_bar[2];  ///< of layers that read X_{l−1}, with even and odd indices: its derivative
  Array<Executor, S> segments;       ///< partial sums of high-degree nodes, segments × d' × f per instance

  LayerScratch() = default;
  /// \param training     size of the features of a training pass, over all instances
  /// \param applications  of Δ in a layer
  /// \param first, before  do layers read X_1, X_{l−1}?
  /// \param two          a layer's first launch writes what is still read of the layer above
  LayerScratch(Executor& executor, Index training, Index applications, bool filter, bool first, bool before,
               bool two, Index segment_sums)
      : two_sides(two) {
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "layers", size); };
    for (int k = 0; k < (two ? 2 : 1); ++k) {
      for (Array<Executor, S>* a : {&side[k].z_bar, &side[k].r_bar}) *a = array(applications * training);
      for (Array<Executor, S>* a : {&side[k].y_bar, &side[k].p_bar}) *a = array(training);
    }
    w_bar = array(applications * training);
    if (filter) {
      for (Array<Executor, S>* a : {&g, &q[0], &q[1]}) *a = array(training);
    }
    if (first) first_bar = array(training);
    if (before) {
      for (Array<Executor, S>& bar : before_bar) bar = array(training);
    }
    segments = array(segment_sums);
  }
  /// The side of a layer.
  [[nodiscard]] Side& of(std::uint32_t layer) noexcept { return side[two_sides ? layer % 2 : 0]; }
  [[nodiscard]] const Side& of(std::uint32_t layer) const noexcept { return side[two_sides ? layer % 2 : 0]; }
  /// Where a layer that reads X_{l−1} puts its derivative: it is read before layer l − 2 writes there.
  [[nodiscard]] S* before_bar_of(std::size_t layer) noexcept { return before_bar[layer % 2].data(); }
};

}  // namespace sheafnn::batch::detail
