/// \file
/// ComplexStart: the complex features X_1 = (1 + i) H or H with which directed layers start, from real embeddings H, with
/// the backward pass H̄ = Re X̄_1 [+ Im X̄_1]. Source: math: "Directed sheaves" (3.53). Complex features are n × d' × 2f:
/// every stalk coordinate has f real parts, then f imaginary parts.
///
/// Unchecked: shapes of views, which networks make.
#pragma once

#include <algorithm>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/core/views.hpp"

namespace sheafnn::layers {

/// Buffers of the embeddings of one graph.
template <class S>
class ComplexStart {
 public:
  /// \param channels   2f
  /// \param imaginary  does the imaginary part start as the real part does?
  ComplexStart(Index nodes, Index coordinates, Index channels, bool imaginary)
      : rows_(nodes * coordinates),
        channels_(channels / 2),
        imaginary_(imaginary),
        shape_{nodes, coordinates},
        output_(rows_ * channels),
        embedding_bar_(rows_ * channels_) {}

  /// X_1, n × d' × 2f.
  [[nodiscard]] FeatureView<const S> output() const noexcept {
    return {output_.data(), shape_[0], shape_[1], 2 * channels_};
  }
  /// \param embedding  H, n × d' f
  void forward(Execution execution, const S* embedding) {
    parallel_for(execution, rows_, 256, [&](Index begin, Index end) {
      for (Index k = begin; k < end; ++k) {
        const S* const from = embedding + k * channels_;
        S* const to = output_.data() + 2 * k * channels_;
        std::copy_n(from, channels_, to);
        if (imaginary_) {
          std::copy_n(from, channels_, to + channels_);
        } else {
          std::fill_n(to + channels_, channels_, S(0));
        }
      }
    });
  }
  /// The derivative of H, n × d' f, from the derivative of X_1; valid until the next call.
  [[nodiscard]] MatrixView<S> backward(Execution execution, const S* bar) {
    parallel_for(execution, rows_, 256, [&](Index begin, Index end) {
      detail::for_tiles<S>(0, channels_, [&]<class T>(auto c) {
        for (Index k = begin; k < end; ++k) {
          const S* const from = bar + 2 * k * channels_ + c;
          const T real = c.load(from);
          c.store(embedding_bar_.data() + k * channels_ + c, imaginary_ ? real + c.load(from + channels_) : real);
        }
      });
    });
    return {embedding_bar_.data(), shape_[0], shape_[1] * channels_};
  }

 private:
  Index rows_, channels_;
  bool imaginary_;
  Index shape_[2];
  Buffer<S> output_, embedding_bar_;
};

}  // namespace sheafnn::layers
