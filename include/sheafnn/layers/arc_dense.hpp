/// \file
/// A dense layer over arcs, W arcs side by side: the layers of a sheaf learner after its first one.
#pragma once

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"

namespace sheafnn::detail {

/// out[o] = Σ_i weight[o, i] in[i]. \param weight  outputs × inputs \param in, out  lanes-innermost
template <class S>
void arc_dense(const S* weight, Index inputs, Index outputs, const S* in, S* out) {
  constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  for (Index o = 0; o < outputs; ++o) {
    P sum = P(S(0));
    for (Index i = 0; i < inputs; ++i) sum += P(weight[o * inputs + i]) * P::load(in + i * W);
    sum.store(out + o * W);
  }
}

/// Adds to in_bar and to weight_bar (summed over lanes).
template <class S>
void arc_dense_backward(const S* weight, Index inputs, Index outputs, const S* in, const S* out_bar, S* in_bar,
                        S* weight_bar) {
  constexpr int W = lanes<S>;
  using P = Pack<S, W>;
  for (Index o = 0; o < outputs; ++o) {
    const P bar = P::load(out_bar + o * W);
    for (Index i = 0; i < inputs; ++i) {
      (P::load(in_bar + i * W) + P(weight[o * inputs + i]) * bar).store(in_bar + i * W);
      weight_bar[o * inputs + i] += reduce_add(bar * P::load(in + i * W));
    }
  }
}

}  // namespace sheafnn::detail
