/// \file
/// HeatLimit: lim exp(−t𝓛) for t → ∞, the projection on the kernel of 𝓛 = I − Â: a weighted mean over every component,
///
///     Y_u = a_u Σ_{v ∈ component of u} b_v X_v,    a_u = b_u = √(d_u / Σd) for Â = D^{-1/2} A D^{-1/2},
///                                                a_u = 1, b_u = d_u / Σd for Â = D^{-1} A,
///
/// with the sum Σd of the degrees of the component; 0 at nodes with degree 0. On a part of a graph there are rows of the owned
/// nodes. Sums over components that lie in several parts are added up over all parts. Source: math: "Heat on a flat
/// bundle".
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/part_components.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"

namespace sheafnn::layers {

/// Unchecked: the sizes of views.
template <class S>
class HeatLimit {
 public:
  /// \param adjacency  of the graph
  HeatLimit(const Graph& graph, const NormalisedAdjacency<S>& adjacency, AdjacencyNormalisation normalisation)
      : part_(graph.part()), component_(adjacency.nodes()), own_(adjacency.nodes()), other_(adjacency.nodes()) {
    const Index n = adjacency.nodes();
    const detail::PartComponents found = sheafnn::detail::part_components(graph);
    components_ = found.count;
    shared_ = found.shared;
    std::copy_n(found.component_of.begin(), n, component_.data());
    std::vector<double> total(static_cast<std::size_t>(components_));
    for (Index u = 0; u < n; ++u) total[static_cast<std::size_t>(component_[u])] += adjacency.degree(u);
    if (shared_ > 0) part_->sum(std::span<double>(total).first(static_cast<std::size_t>(shared_)), {});
    for (Index u = 0; u < n; ++u) {
      const double sum = total[static_cast<std::size_t>(component_[u])];
      const double share = sum > 0 ? adjacency.degree(u) / sum : 0;
      const bool symmetric = normalisation == AdjacencyNormalisation::symmetric;
      own_[u] = static_cast<S>(symmetric ? std::sqrt(share) : share > 0 ? 1.0 : 0.0);
      other_[u] = static_cast<S>(symmetric ? std::sqrt(share) : share);
    }
  }

  [[nodiscard]] Index components() const noexcept { return components_; }
  /// The component of every node.
  [[nodiscard]] const Buffer<std::int32_t>& component() const noexcept { return component_; }
  /// a and b of every node.
  [[nodiscard]] const Buffer<S>& own() const noexcept { return own_; }
  [[nodiscard]] const Buffer<S>& other() const noexcept { return other_; }

  /// y = P x, or Pᵀ x. On a part of a graph all parts call it. \param x, y  n rows of as many values
  void multiply(Execution execution, bool transposed, const MatrixView<const S>& x, const MatrixView<S>& y) {
    const Index n = component_.size(), width = x.columns();
    const S* own = transposed ? other_.data() : own_.data();
    const S* other = transposed ? own_.data() : other_.data();
    if (sums_.size() < components_ * width) sums_.resize(components_ * width);
    parallel_for(execution, width, 64, [&](Index begin, Index end) {
      for (Index i = 0; i < components_; ++i) std::fill(&sums_[i * width] + begin, &sums_[i * width] + end, S(0));
      for (Index u = 0; u < n; ++u) {
        S* sum = sums_.data() + component_[u] * width;
        const S* from = x.data() + u * x.stride();
        detail::for_tiles<S>(begin, end, [&]<class T>(auto c) {
          c.store(sum + c, c.load(sum + c) + T(other[u]) * c.load(from + c));
        });
      }
    });
    if (shared_ > 0) part_->sum(sums_.view().first(static_cast<std::size_t>(shared_ * width)), {});
    parallel_for(execution, width, 64, [&](Index begin, Index end) {
      for (Index u = 0; u < n; ++u) {
        const S* sum = sums_.data() + component_[u] * width;
        S* to = y.data() + u * y.stride();
        detail::for_tiles<S>(begin, end, [&]<class T>(auto c) { c.store(to + c, T(own[u]) * c.load(sum + c)); });
      }
    });
  }

 private:
  GraphPart* part_;
  Buffer<std::int32_t> component_;
  Index components_ = 0, shared_ = 0;  ///< of these [0, shared_) lie in several parts
  Buffer<S> own_, other_;  ///< a and b
  Buffer<S> sums_;         ///< per component
};

}  // namespace sheafnn::layers
