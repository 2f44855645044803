/// \file
/// DiffusedRow: how a cooperative layer ends at a node. x' = (1 + tanh ε) ∘ x − act(dropout(z)), or without the residual x'
/// = act(dropout(z)). It has the derivative of act for the backward pass. Rows are D × f.
/// Source: math: "Cooperative sheaves" (4.3).
#pragma once

#include <cstdint>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace sheafnn::detail {

/// X' at one node, from z = (Δ_inᵀ Δ_out Y)_u.
template <class S>
struct DiffusedRow {
  Activation activation;
  Index stalk, channels;     ///< D, f
  const S* gain;             ///< 1 + tanh ε: D; null without the residual
  const std::uint8_t* mask;  ///< mask of the dropout of z; null: no dropout
  S dropout_factor;
  S sign;  ///< of act(dropout(z)) without the residual: 1, or −1 with negate_diffused

  /// \param x       the node's row of X
  /// \param at      position of that row in n × D × f
  /// \param slopes  null, or n × D × f: receives the derivative of act(dropout(z)) in z
  /// \param z       the row of z, which X' replaces
  SHEAFNN_NOINLINE void update(const S* x, Index at, S* slopes, S* z) const {
    with_activation(activation, [&]<Activation A>() {
      for (Index i = 0; i < stalk; ++i, x += channels, z += channels, at += channels)
        update_with<A>(gain == nullptr ? S(0) : gain[i], x, at, slopes, z);
    });
  }

 private:
  template <Activation A>
  SHEAFNN_INLINE void update_with(S own_gain, const S* x, Index at, S* slopes, S* z) const {
    for_tiles<S>(0, channels, [&]<class T>(auto c) {
      T slope;
      T value = c.load(z + c);
      if (mask != nullptr) value = dropped(value, mask, at + c, dropout_factor);
      value = activate_with_slope<A>(value, slope);
      if (slopes != nullptr) {
        c.store(slopes + at + c, mask == nullptr ? slope : dropped(slope, mask, at + c, dropout_factor));
      }
      c.store(z + c, gain == nullptr ? T(sign) * value : T(own_gain) * c.load(x + c) - value);
    });
  }
};

}  // namespace sheafnn::detail
