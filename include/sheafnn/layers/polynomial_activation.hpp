/// \file
/// FilterActivation: what a polynomial diffusion layer does with Z = p(L̂) Y − (α/λ_max) ΔY,
///
///     Z += α X (or α Y),   X' = (1 + tanh ε) ∘ X − ELU(Z),
///
/// with its backward pass, and the sums over nodes of the filter's derivatives: independent of the family of maps. Source: math:
/// "Polynomial filters".
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/kernels/layer_end.hpp"
#include "sheafnn/layers/channel_tiles.hpp"
#include "sheafnn/layers/feature_mixing.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::layers {

/// The elementwise end of a polynomial layer, X' = (1 + tanh ε) ∘ X − ELU(Z + α X), with its backward pass, and the
/// sums over nodes of the whole layer. Arrays are n × d' × f, or in tiles of channels where that is said. Unchecked:
/// their sizes.
template <class S>
class FilterActivation {
 public:
  FilterActivation() = default;
  FilterActivation(const NodeChunks& chunks, const detail::ChannelTiles<S>& tiles, bool activation)
      : chunks_(chunks),
        tiles_(tiles),
        activation_(activation),
        partial_(chunks.count * (sums_per_chunk + tiles.count() * terms)) {}

  /// 1 + tanh ε_i.
  void gains(std::span<const S> epsilon, S* gain) const {
    for (Index i = 0; i < tiles_.coordinates; ++i) gain[i] = kernels::gain(epsilon[static_cast<std::size_t>(i)]);
  }

  /// out = (1 + tanh ε) ∘ x − ELU(z + skip · base) at some nodes, one row each.
  ///
  /// \param base  null: 0
  /// \param z     in tiles
  /// \param keep  z + skip · base at these nodes; null: not kept
  void forward(Execution execution, const NodeSelection& nodes, std::span<const S> epsilon, const S* x,
               const S* base, S skip, const S* z, S* keep, S* out) const {
    S gain[max_coordinates];
    gains(epsilon, gain);
    const Index f = tiles_.channels, row = tiles_.coordinates * f;
    parallel_for(execution, nodes.count(), 16, [&](Index begin, Index end) {
      S z_rows[max_coordinates * max_channels];
      const Index group = std::max<Index>(1, max_coordinates * max_channels / row / 4);
      for (Index first = begin; first < end; first += group) {
        const Index last = std::min(end, first + group);
        for (Index index = first; index < last; ++index) {
          tiles_.take(nodes[index], 1, z, z_rows + (index - first) * row);
        }
        for (Index index = first; index < last; ++index) {
          const S* const z_row = z_rows + (index - first) * row;
          for (Index i = 0; i < tiles_.coordinates; ++i) {
            const Index from = nodes[index] * row + i * f, to = index * row + i * f;
            detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
              T value = c.load(z_row + i * f + c);
              if (base != nullptr) value += T(skip) * c.load(base + from + c);
              if (keep != nullptr) c.store(keep + from + c, value);
              const T own = c.load(x + from + c);
              c.store(out + to + c, kernels::gated(T(gain[i]), own, kernels::activated(value, activation_)));
            });
          }
        }
      }
    });
  }

  /// G = −x̄' ∘ ELU′(z), in place of z and in tiles, and x_bar = x̄', where x̄' is out_bar or, at other nodes, 0.
  /// Also the sums ⟨x, x̄'⟩ of each coordinate and ⟨G, base⟩.
  void backward(Execution execution, const NodeSelection& nodes, const S* x, const S* base, const S* out_bar, S* z,
                S* g_tiles, S* x_bar);

  /// Sets ⟨G, V_k⟩ of the nodes of a chunk and the channels of a tile.
  void put_product(Index chunk, Index tile, Index k, S with_term) { products(chunk, tile)[k] = with_term; }
  /// ⟨G, V_k⟩.
  [[nodiscard]] double with_term(Index k) const {
    double r = 0;
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) {
      for (Index tile = 0; tile < tiles_.count(); ++tile) r += static_cast<double>(products(chunk, tile)[k]);
    }
    return r;
  }
  /// ⟨G, base⟩.
  [[nodiscard]] double with_base() const { return total(base_sum); }
  /// ε̄_i += (1 − tanh² ε_i) ⟨x, x̄'⟩_i.
  void add_epsilon_bar(std::span<const S> epsilon, std::span<S> epsilon_bar) const {
    for (Index i = 0; i < tiles_.coordinates; ++i) {
      const std::size_t k = static_cast<std::size_t>(i);
      epsilon_bar[k] += kernels::gain_slope(std::tanh(epsilon[k])) * static_cast<S>(total(i));
    }
  }

  /// out += factor · in.
  static void add_multiple(Execution execution, Index size, S factor, const S* in, S* out) {
    parallel_for(execution, size, 4096, [&](Index begin, Index end) {
      detail::for_tiles<S>(begin, end, [&]<class T>(auto i) {
        i.store(out + i, i.load(out + i) + T(factor) * i.load(in + i));
      });
    });
  }

 private:
  static constexpr Index base_sum = max_coordinates, sums_per_chunk = base_sum + 1;
  static constexpr Index terms = max_polynomial_degree + 1;

  [[nodiscard]] S* sums(Index chunk) { return partial_.data() + chunk * sums_per_chunk; }
  [[nodiscard]] Index place(Index chunk, Index tile) const {
    return chunks_.count * sums_per_chunk + (tile * chunks_.count + chunk) * terms;
  }
  [[nodiscard]] S* products(Index chunk, Index tile) { return partial_.data() + place(chunk, tile); }
  [[nodiscard]] const S* products(Index chunk, Index tile) const { return partial_.data() + place(chunk, tile); }
  [[nodiscard]] double total(Index i) const {
    double r = 0;
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) {
      r += static_cast<double>(partial_[chunk * sums_per_chunk + i]);
    }
    return r;
  }

  NodeChunks chunks_;
  detail::ChannelTiles<S> tiles_;
  bool activation_ = true;
  Buffer<S> partial_;  ///< per chunk of nodes: ⟨x, x̄'⟩ of each coordinate, ⟨G, base⟩; per tile and chunk: ⟨G, V_k⟩
};

template <class S>
void FilterActivation<S>::backward(Execution execution, const NodeSelection& nodes, const S* x, const S* base,
                                   const S* out_bar, S* z, S* g_tiles, S* x_bar) {
  const Index f = tiles_.channels, row = tiles_.coordinates * f;
  chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
    S* sum = sums(chunk);
    std::fill_n(sum, sums_per_chunk, S(0));
    detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
      T with_x[max_coordinates], with_base = T(S(0));
      for (Index i = 0; i < tiles_.coordinates; ++i) with_x[i] = T(S(0));
      Index index = nodes.lower_bound(begin);
      for (Index u = begin; u < end; ++u) {
        const bool selected = index < nodes.count() && nodes[index] == u;
        for (Index i = 0; i < tiles_.coordinates; ++i) {
          const Index at = u * row + i * f + c;
          if (!selected) {
            c.store(z + at, T(S(0)));
            c.store(x_bar + at, T(S(0)));
            continue;
          }
          const T bar = c.load(out_bar + index * row + i * f + c);
          const T g = kernels::activated_bar(bar, c.load(z + at), activation_);
          c.store(z + at, g);
          c.store(x_bar + at, bar);
          with_x[i] += c.load(x + at) * bar;
          if (base != nullptr) with_base += g * c.load(base + at);
        }
        if (selected) ++index;
      }
      for (Index i = 0; i < tiles_.coordinates; ++i) sum[i] += reduce_add(with_x[i]);
      sum[base_sum] += reduce_add(with_base);
    });
    tiles_.put(begin, end - begin, z + begin * row, g_tiles);
  });
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::FilterActivation;

}  // namespace sheafnn
