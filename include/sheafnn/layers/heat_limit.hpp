/// \file
/// HeatLimit: lim exp(−t𝓛) for t → ∞, the projection on the kernel of 𝓛 = I − Â: a weighted mean over every component,
///
///     Y_u = a_u Σ_{v ∈ component of u} b_v X_v,    a_u = b_u = √(d_u / Σd) for Â = D^{-1/2} A D^{-1/2},
///                                                a_u = 1, b_u = d_u / Σd for Â = D^{-1} A,
///
/// with the sum Σd of the degrees of the component; 0 at nodes with degree 0.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"

namespace sheafnn::layers {

/// Unchecked: the sizes of views.
template <class S>
class HeatLimit {
 public:
  HeatLimit(const NormalisedAdjacency<S>& adjacency, AdjacencyNormalisation normalisation)
      : component_(adjacency.nodes()), own_(adjacency.nodes()), other_(adjacency.nodes()) {
    const Index n = adjacency.nodes();
    component_.fill(-1);
    std::vector<double> total;
    std::vector<std::int32_t> open;
    for (Index start = 0; start < n; ++start) {
      if (component_[start] >= 0) continue;
      const auto number = static_cast<std::int32_t>(total.size());
      total.push_back(0);
      component_[start] = number;
      open.push_back(static_cast<std::int32_t>(start));
      while (!open.empty()) {
        const std::int32_t u = open.back();
        open.pop_back();
        total.back() += adjacency.degree(u);
        for (const std::int32_t v : adjacency.neighbours().of(u)) {
          if (component_[v] < 0) {
            component_[v] = number;
            open.push_back(v);
          }
        }
      }
    }
    components_ = static_cast<Index>(total.size());
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

  /// y = P x, or Pᵀ x. \param x, y  n rows of as many numbers
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
      for (Index u = 0; u < n; ++u) {
        const S* sum = sums_.data() + component_[u] * width;
        S* to = y.data() + u * y.stride();
        detail::for_tiles<S>(begin, end, [&]<class T>(auto c) { c.store(to + c, T(own[u]) * c.load(sum + c)); });
      }
    });
  }

 private:
  Buffer<std::int32_t> component_;
  Index components_ = 0;
  Buffer<S> own_, other_;  ///< a and b
  Buffer<S> sums_;         ///< per component
};

}  // namespace sheafnn::layers
