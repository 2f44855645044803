/// \file
/// FilterActivation: what a polynomial diffusion layer does to Z = p(L̂) Y − (α/λ_max) ΔY once it is there,
///
///     Z += α X (or α Y),   X' = (1 + tanh ε) ∘ X − ELU(Z),
///
/// with its backward pass, and the sums over nodes of the filter's derivatives: independent of the family of maps.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/nn/activation.hpp"

namespace sheafnn {

/// What a filter has learned, the same for all layers. \tparam T const S or S
template <class T>
struct FilterWeights {
  std::span<T> theta;  ///< K + 1 numbers, see Polynomial
  std::span<T> skip;   ///< α, one number; empty without the high-pass term
};

/// Sums of one layer. Arrays are n × d' × f.
template <class S>
class FilterActivation {
 public:
  FilterActivation() = default;
  FilterActivation(const NodeChunks& chunks, Index coordinates, Index channels, bool activation)
      : chunks_(chunks),
        coordinates_(coordinates),
        channels_(channels),
        activation_(activation),
        partial_(chunks.count * sums_per_chunk) {}

  /// 1 + tanh ε_i.
  void gains(std::span<const S> epsilon, S* gain) const {
    for (Index i = 0; i < coordinates_; ++i) gain[i] = S(1) + std::tanh(epsilon[static_cast<std::size_t>(i)]);
  }

  /// out = (1 + tanh ε) ∘ x − ELU(z + skip · base) at some nodes, one row each.
  ///
  /// \param base  null: 0
  /// \param keep  z + skip · base at these nodes; may be z; null: not kept
  void forward(Execution execution, const NodeSelection& nodes, std::span<const S> epsilon, const S* x,
               const S* base, S skip, const S* z, S* keep, S* out) const {
    S gain[max_coordinates];
    gains(epsilon, gain);
    const Index f = channels_, row = coordinates_ * f;
    parallel_for(execution, nodes.count(), 16, [&](Index begin, Index end) {
      for (Index index = begin; index < end; ++index) {
        for (Index i = 0; i < coordinates_; ++i) {
          const Index from = nodes[index] * row + i * f, to = index * row + i * f;
          detail::for_tiles<S>(0, f, [&]<class T>(Index c) {
            T value = detail::load<T>(z + from + c);
            if (base != nullptr) value += T(skip) * detail::load<T>(base + from + c);
            if (keep != nullptr) detail::store(keep + from + c, value);
            if (activation_) value = elu(value);
            detail::store(out + to + c, T(gain[i]) * detail::load<T>(x + from + c) - value);
          });
        }
      }
    });
  }

  /// G = −x̄' ∘ ELU′(z), in the place of z, and x_bar = x̄', where x̄' is out_bar or, at other nodes, 0; the sums
  /// ⟨x, x̄'⟩ of each coordinate, ⟨G, base⟩ and ⟨G, last term⟩.
  ///
  /// \param degree  the number of the last term; all other sums become 0
  void backward(Execution execution, const NodeSelection& nodes, const S* x, const S* base, const S* last_term,
                Index degree, const S* out_bar, S* z, S* x_bar);

  /// Adds ⟨G, V_k⟩ and, for k = 0, ⟨G, ΔV_0⟩ of the nodes of a chunk.
  void add_products(Index chunk, Index k, S with_term, S with_laplacian) {
    S* sum = sums(chunk);
    sum[first_term + k] += with_term;
    if (k == 0) sum[laplacian] += with_laplacian;
  }
  /// ⟨G, V_k⟩.
  [[nodiscard]] double with_term(Index k) const { return total(first_term + k); }
  /// ⟨G, base⟩.
  [[nodiscard]] double with_base() const { return total(base_sum); }
  /// ⟨G, ΔY⟩.
  [[nodiscard]] double with_laplacian() const { return total(laplacian); }
  /// ε̄_i += (1 − tanh² ε_i) ⟨x, x̄'⟩_i.
  void add_epsilon_bar(std::span<const S> epsilon, std::span<S> epsilon_bar) const {
    for (Index i = 0; i < coordinates_; ++i) {
      const S tangent = std::tanh(epsilon[static_cast<std::size_t>(i)]);
      epsilon_bar[static_cast<std::size_t>(i)] += (S(1) - tangent * tangent) * static_cast<S>(total(i));
    }
  }

  /// out = factor · in.
  static void scale(Execution execution, Index size, S factor, const S* in, S* out) {
    parallel_for(execution, size, 4096, [&](Index begin, Index end) {
      detail::for_tiles<S>(begin, end,
                           [&]<class T>(Index i) { detail::store(out + i, T(factor) * detail::load<T>(in + i)); });
    });
  }
  /// out += factor · in.
  static void add_multiple(Execution execution, Index size, S factor, const S* in, S* out) {
    parallel_for(execution, size, 4096, [&](Index begin, Index end) {
      detail::for_tiles<S>(begin, end, [&]<class T>(Index i) {
        detail::store(out + i, detail::load<T>(out + i) + T(factor) * detail::load<T>(in + i));
      });
    });
  }

 private:
  static constexpr Index base_sum = max_coordinates, laplacian = base_sum + 1, first_term = laplacian + 1;
  static constexpr Index sums_per_chunk = first_term + max_polynomial_degree + 1;

  [[nodiscard]] S* sums(Index chunk) { return partial_.data() + chunk * sums_per_chunk; }
  [[nodiscard]] double total(Index i) const {
    double r = 0;
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) {
      r += static_cast<double>(partial_[chunk * sums_per_chunk + i]);
    }
    return r;
  }

  NodeChunks chunks_;
  Index coordinates_ = 0, channels_ = 0;
  bool activation_ = true;
  Buffer<S> partial_;  ///< per chunk of nodes: ⟨x, x̄'⟩ of each coordinate, ⟨G, base⟩, ⟨G, ΔY⟩, ⟨G, V_k⟩
};

template <class S>
void FilterActivation<S>::backward(Execution execution, const NodeSelection& nodes, const S* x, const S* base,
                                   const S* last_term, Index degree, const S* out_bar, S* z, S* x_bar) {
  const Index f = channels_, row = coordinates_ * f;
  chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
    S* sum = sums(chunk);
    std::fill_n(sum, sums_per_chunk, S(0));
    detail::for_tiles<S>(0, f, [&]<class T>(Index c) {
      T with_x[max_coordinates], with_base = T(S(0)), with_term = T(S(0));
      for (Index i = 0; i < coordinates_; ++i) with_x[i] = T(S(0));
      Index index = nodes.lower_bound(begin);
      for (Index u = begin; u < end; ++u) {
        const bool selected = index < nodes.count() && nodes[index] == u;
        for (Index i = 0; i < coordinates_; ++i) {
          const Index at = u * row + i * f + c;
          if (!selected) {
            detail::store(z + at, T(S(0)));
            detail::store(x_bar + at, T(S(0)));
            continue;
          }
          const T bar = detail::load<T>(out_bar + index * row + i * f + c);
          T g = -bar;
          if (activation_) g *= elu_derivative(detail::load<T>(z + at));
          detail::store(z + at, g);
          detail::store(x_bar + at, bar);
          with_x[i] += detail::load<T>(x + at) * bar;
          with_term += g * detail::load<T>(last_term + at);
          if (base != nullptr) with_base += g * detail::load<T>(base + at);
        }
        if (selected) ++index;
      }
      for (Index i = 0; i < coordinates_; ++i) sum[i] += reduce_add(with_x[i]);
      sum[base_sum] += reduce_add(with_base);
      sum[first_term + degree] += reduce_add(with_term);
    });
  });
}

}  // namespace sheafnn
