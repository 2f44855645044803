/// \file
/// FeatureMixing: Y = (I ⊗ A) dropout(X) Bᵀ, the step of a diffusion layer before it diffuses features, with its backward
/// pass. Source: math: "Backward pass of one diffusion step".
///
/// Works on groups of nodes that fit in the nearest cache. So dropout, both products and, backwards, both weight gradients
/// read and write the large arrays once.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/weights.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"

namespace sheafnn::detail {

/// FeatureMixing::forward() without a `prepare`.
struct NothingToPrepare {
  void operator()(Index, Index) const noexcept {}
};

/// A gain of 1 for every stalk coordinate.
template <class S>
inline constexpr auto unit_gain = [] {
  std::array<S, static_cast<std::size_t>(layers::max_coordinates)> r;
  r.fill(S(1));
  return r;
}();

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Buffers of the mixing of one layer on one graph. Features are n × d' × f, channels innermost.
///
/// Unchecked: shapes of weights, sizes of arrays and indices of nodes, which the layers around it check; at most
/// max_coordinates stalk coordinates and max_channels channels.
template <class S>
class FeatureMixing {
 public:
  FeatureMixing() = default;
  /// \param left, right  does the layer have A (d' × d') and B (f × f)?
  FeatureMixing(Index nodes, Index coordinates, Index channels, bool left, bool right);

  /// Y, n × d' × f, if the last forward() kept it; otherwise null.
  [[nodiscard]] const S* output() const noexcept { return output_; }

  /// Computes output() from x, which must not change until backward().
  ///
  /// \param keep    write output(); otherwise only `finish` sees it
  /// \param finish   called as finish(first node, nodes, rows of Y) for groups of nodes while they are near
  /// \param prepare  called as prepare(first node, nodes) just before the rows of x of these nodes are read
  template <class Finish, class Prepare = detail::NothingToPrepare>
  void forward(Execution execution, const DiffusionWeights<const S>& weights, const S* x, const Dropout& dropout,
               bool keep, const Finish& finish, const Prepare& prepare = {}) {
    begin(execution, weights, x, dropout);
    output_ = passes_on() ? x : keep ? buffer() : nullptr;
    forward_again(execution, weights, finish, prepare);
  }
  /// The same once more, where output() was overwritten, with the same features and dropout.
  template <class Finish, class Prepare = detail::NothingToPrepare>
  void forward_again(Execution execution, const DiffusionWeights<const S>& weights, const Finish& finish,
                     const Prepare& prepare = {}) {
    S* const mixed = passes_on() || output_ == nullptr ? nullptr : buffer();
    parallel_for(execution, chunks_.nodes, 16,
                 [&](Index first, Index last) { forward_rows(weights, first, last, mixed, finish, prepare); });
  }
  /// Keeps output() in this memory from now on, n × d' × f; null: in its own buffer.
  void keep_in(S* rows) noexcept { rows_ = rows; }

  // The same for some nodes, by the calling thread, without dropout; after begin().

  /// Takes the weights and the features of a pass, as forward() does.
  SHEAFNN_NOINLINE void begin(Execution execution, const DiffusionWeights<const S>& weights, const S* x,
                              const Dropout& dropout) {
    input_ = x;
    dropped_ = dropout.active();
    factor_ = static_cast<S>(dropout.scale());
    if (dropped_) mask_.draw(execution, dropout);
    if (right_)
      detail::transpose_into(channels_, channels_, weights.right.data(), right_transposed_.data(), channels_);
  }
  /// Memory for Y.
  [[nodiscard]] S* buffer() {
    if (rows_ != nullptr) return rows_;
    if (mixed_.empty()) mixed_.resize(chunks_.nodes * coordinates_ * channels_, to_be_written);
    return mixed_.data();
  }
  /// See Layer::list_memory().
  void list_memory(std::vector<Buffer<S>*>& list) { list.push_back(&mixed_); }
  /// Is Y = X, which is then not written?
  [[nodiscard]] bool passes_on() const noexcept { return !dropped_ && !left_ && !right_; }
  /// Y at nodes [begin, end). \param mixed  n × d' × f, whose rows are written; null: only `finish` sees them
  template <class Finish, class Prepare = detail::NothingToPrepare>
  void forward_rows(const DiffusionWeights<const S>& weights, Index begin, Index end, S* mixed,
                    const Finish& finish, const Prepare& prepare = {}) const {
    const Index row = coordinates_ * channels_;
    if (passes_on()) {
      for (Index u = begin; u < end; u += group_) {
        const Index nodes = std::min(group_, end - u);
        prepare(u, nodes);
        finish(u, nodes, input_ + u * row);
      }
      return;
    }
    S near[scratch_size];
    for (Index u = begin; u < end; u += group_) {
      const Index nodes = std::min(group_, end - u);
      prepare(u, nodes);
      S* out = mixed != nullptr ? mixed + u * row : near;
      mix_group(weights, u, nodes, out);
      finish(u, nodes, static_cast<const S*>(out));
    }
  }
  /// x_bar = gain ∘ x_bar + the derivative through Y at nodes [begin, end); partial += their share in Ā and B̄.
  ///
  /// \param y_bar_rows  as backward() takes it
  template <class Rows>
    requires std::invocable<const Rows&, Index, Index, S*>
  void backward_rows(const DiffusionWeights<const S>& weights, Index begin, Index end, const S* gain,
                     const Rows& y_bar_rows, S* x_bar, S* partial) const;
  /// Number of sums of backward_rows().
  [[nodiscard]] Index partial_size() const noexcept {
    return (left_ ? coordinates_ * coordinates_ : 0) + (right_ ? channels_ * channels_ : 0);
  }
  /// Adds sums of backward_rows() to derivatives.
  SHEAFNN_NOINLINE void add_partial(const S* partial, const DiffusionWeights<S>& weights_bar) const {
    const Index left_size = left_ ? coordinates_ * coordinates_ : 0;
    for (Index k = 0; k < left_size; ++k) weights_bar.left.data()[k] += partial[k];
    if (!right_) return;
    for (Index k = 0; k < channels_ * channels_; ++k) weights_bar.right.data()[k] += partial[left_size + k];
  }

  /// x_bar = gain ∘ x_bar + the derivative through Y, and adds the gradients of A and B.
  ///
  /// \param gain      factor of each stalk coordinate, d'; null: x_bar is overwritten
  /// \param y_bar     derivative of output(), n × d' × f
  /// \param x_bar     n × d' × f, replaced
  void backward(Execution execution, const DiffusionWeights<const S>& weights, const S* gain, const S* y_bar,
                S* x_bar, const DiffusionWeights<S>& weights_bar) {
    const Index row = coordinates_ * channels_;
    backward(
        execution, weights, gain, [=](Index first, Index, S*) { return y_bar + first * row; }, x_bar, weights_bar);
  }
  /// The same where the derivative of output() lies elsewhere.
  ///
  /// \param y_bar_rows  called as y_bar_rows(first node, nodes, scratch), from any thread, for groups of nodes: returns
  ///                    where their rows are, which may be the scratch
  template <class Rows>
    requires std::invocable<const Rows&, Index, Index, S*>
  void backward(Execution execution, const DiffusionWeights<const S>& weights, const S* gain,
                const Rows& y_bar_rows, S* x_bar, const DiffusionWeights<S>& weights_bar);

  [[nodiscard]] DropoutMask& mask() noexcept { return mask_; }
  [[nodiscard]] const NodeChunks& chunks() const noexcept { return chunks_; }

 private:
  /// Values of one group of nodes, at most.
  static constexpr Index scratch_size = max_coordinates * max_channels;

  /// The rows of Y of a group of nodes. Compiled once, and not for every `finish`; so is backward_group().
  void mix_group(const DiffusionWeights<const S>& weights, Index first, Index nodes, S* out) const;
  /// backward_rows() of a group of nodes. \param gains  of every element of the group, or null
  void backward_group(const DiffusionWeights<const S>& weights, Index first, Index nodes, const S* gains,
                      const S* y_bar, S* x_bar, S* partial) const;
  /// Elements [first, first + size) of dropout(X): x itself where nothing is dropped, else in `scratch`.
  [[nodiscard]] const S* dropped_rows(Index first, Index size, S* scratch) const;

  /// out = in · m for the rows of a group of nodes; returns out.
  const S* times_right(const S* m, Index nodes, const S* in, S* out) const;
  /// out_u = A in_u for a group of nodes.
  void times_left(const S* a, Index nodes, const S* in, S* out) const;
  /// out_u = Aᵀ in_u.
  void times_left_transposed(const S* a, Index nodes, const S* in, S* out) const;

  /// Calls body.template operator()<D>() with the number of coordinates, as a constant where it is a usual one (0:
  /// not).
  template <class Body>
  SHEAFNN_INLINE void with_coordinates(const Body& body) const {
    if (coordinates_ == 3) {
      body.template operator()<3>();
    } else if (coordinates_ == 4) {
      body.template operator()<4>();
    } else {
      body.template operator()<0>();
    }
  }

  template <bool Transposed>
  SHEAFNN_NOINLINE void multiply_coordinates(const S* a, Index nodes, const S* in, S* out) const {
    with_coordinates([&]<int D>() {
      const Index f = channels_, d = D > 0 ? D : coordinates_;
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        S matrix[max_coordinates * max_coordinates];  // where no store to `out` can change it
        std::copy_n(a, d * d, matrix);
        for (Index u = 0; u < nodes; ++u) {
          const S* node = in + u * d * f + c;
          T value[D > 0 ? D : max_coordinates];
          for (Index j = 0; j < d; ++j) value[j] = c.load(node + j * f);
          for (Index i = 0; i < d; ++i) {
            T sum = T(Transposed ? matrix[i] : matrix[i * d]) * value[0];
            for (Index j = 1; j < d; ++j) sum += T(Transposed ? matrix[j * d + i] : matrix[i * d + j]) * value[j];
            c.store(out + (u * d + i) * f + c, sum);
          }
        }
      });
    });
  }

  /// out_ij += Σ_{u, c} a_i b_j over a group of nodes.
  SHEAFNN_NOINLINE void add_coordinate_products(Index nodes, const S* a, const S* b, S* out) const {
    with_coordinates([&]<int D>() {
      const Index f = channels_, d = D > 0 ? D : coordinates_;
      detail::for_tiles<S>(0, f, [&]<class T>(auto c) {
        if constexpr (D > 0) {
          T sum[D * D];
          for (T& one : sum) one = T(S(0));
          for (Index u = 0; u < nodes * D; u += D) {
            T left[D], right[D];
            SHEAFNN_UNROLL for (int i = 0; i < D; ++i) left[i] = c.load(a + (u + i) * f + c);
            SHEAFNN_UNROLL for (int j = 0; j < D; ++j) right[j] = c.load(b + (u + j) * f + c);
            SHEAFNN_UNROLL for (int k = 0; k < D * D; ++k) sum[k] += left[k / D] * right[k % D];
          }
          detail::lane_sums<D * D>(sum, out, true);
        } else {
          for (Index i = 0; i < d; ++i) {
            for (Index j = 0; j < d; ++j) {
              T sum = T(S(0));
              for (Index u = 0; u < nodes * d; u += d) {
                sum += c.load(a + (u + i) * f + c) * c.load(b + (u + j) * f + c);
              }
              out[i * d + j] += reduce_add(sum);
            }
          }
        }
      });
    });
  }

  /// x_bar = gain ∘ x_bar + dropout(bar) for a group of nodes; without a gain, dropout(bar).
  ///
  /// \param gain  for every value of the group, or null
  void add_to_input(Index first, Index size, const S* gain, const S* bar, S* x_bar) const {
    detail::for_tiles<S>(0, size, [&]<class T>(auto i) {
      T through = i.load(bar + i);
      if (dropped_) through = detail::dropped(through, mask_.bits(), first + i, factor_);
      if (gain != nullptr) through += i.load(gain + i) * i.load(x_bar + first + i);
      i.store(x_bar + first + i, through);
    });
  }
  /// The factor of each coordinate for every value of a group of nodes.
  void spread_gain(const S* gain, S* gains) const {
    for (Index i = 0; i < group_ * coordinates_; ++i) {
      std::fill_n(gains + i * channels_, channels_, gain[i % coordinates_]);
    }
  }

  Index coordinates_ = 0, channels_ = 0;
  bool left_ = false, right_ = false;
  Index group_ = 1;  ///< nodes treated at a time
  NodeChunks chunks_;
  DropoutMask mask_;
  Buffer<S> mixed_;    ///< taken when it is first needed
  S* rows_ = nullptr;  ///< keep_in()
  Buffer<S> right_transposed_;
  Buffer<S> partial_;  ///< per chunk of nodes: derivatives of A and B
  const S* input_ = nullptr;
  const S* output_ = nullptr;
  bool dropped_ = false;
  S factor_ = S(1);
};

template <class S>
FeatureMixing<S>::FeatureMixing(Index nodes, Index coordinates, Index channels, bool left, bool right)
    : coordinates_(coordinates),
      channels_(channels),
      left_(left),
      right_(right),
      group_(std::clamp<Index>(1024 / (coordinates * channels), 1, 16)),
      mask_(nodes * coordinates * channels),
      right_transposed_(right ? channels * channels : 0) {
  chunks_ = {nodes, std::clamp<Index>(std::min(nodes / 64, nodes * coordinates / channels), 1, 64)};
  partial_.resize(chunks_.count * partial_size());
}

template <class S>
template <class Rows>
  requires std::invocable<const Rows&, Index, Index, S*>
void FeatureMixing<S>::backward(Execution execution, const DiffusionWeights<const S>& weights, const S* gain,
                                const Rows& y_bar_rows, S* x_bar, const DiffusionWeights<S>& weights_bar) {
  chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
    S* partial = partial_.data() + chunk * partial_size();
    std::fill_n(partial, partial_size(), S(0));
    backward_rows(weights, begin, end, gain, y_bar_rows, x_bar, partial);
  });
  for (Index chunk = 0; chunk < chunks_.count; ++chunk) {
    add_partial(partial_.data() + chunk * partial_size(), weights_bar);
  }
}

template <class S>
template <class Rows>
  requires std::invocable<const Rows&, Index, Index, S*>
void FeatureMixing<S>::backward_rows(const DiffusionWeights<const S>& weights, Index begin, Index end,
                                     const S* gain, const Rows& y_bar_rows, S* x_bar, S* partial) const {
  S rows[scratch_size], gains[scratch_size];
  if (gain != nullptr) spread_gain(gain, gains);
  for (Index u = begin; u < end; u += group_) {
    const Index nodes = std::min(group_, end - u);
    backward_group(weights, u, nodes, gain != nullptr ? gains : nullptr, y_bar_rows(u, nodes, rows), x_bar,
                   partial);
  }
}

template <class S>
SHEAFNN_NOINLINE void FeatureMixing<S>::mix_group(const DiffusionWeights<const S>& weights, Index first,
                                                  Index nodes, S* out) const {
  const Index row = coordinates_ * channels_, size = nodes * row;
  S source[scratch_size], product[scratch_size];
  const S* in = dropped_rows(first * row, size, source);
  if (right_) in = times_right(right_transposed_.data(), nodes, in, left_ ? product : out);
  if (left_) {
    times_left(weights.left.data(), nodes, in, out);
  } else if (!right_) {
    std::copy_n(in, size, out);
  }
}

template <class S>
SHEAFNN_NOINLINE void FeatureMixing<S>::backward_group(const DiffusionWeights<const S>& weights, Index first,
                                                       Index nodes, const S* gains, const S* y_bar, S* x_bar,
                                                       S* partial) const {
  const Index f = channels_, d = coordinates_, row = d * f, size = nodes * row;
  const S* left = left_ ? weights.left.data() : nullptr;
  const S* right = right_ ? weights.right.data() : nullptr;
  S source[scratch_size], product[scratch_size], product_bar[scratch_size];
  S* left_bar = partial;
  S* right_bar = left_bar + (left != nullptr ? d * d : 0);
  const S* in = left != nullptr || right != nullptr ? dropped_rows(first * row, size, source) : nullptr;
  const S* bar = y_bar;        // becomes the derivative of dropout(X): Aᵀ Ȳ B
  const S* mixed_bar = y_bar;  // and this is the derivative of dropout(X) Bᵀ: Aᵀ Ȳ
  if (left != nullptr) {
    times_left_transposed(left, nodes, bar, product_bar);
    mixed_bar = product_bar;
  }
  if (right != nullptr) {
    const MatrixView<const S> mixed(mixed_bar, nodes * d, f);
    detail::multiply_block(detail::transposed(mixed), {in, nodes * d, f}, MatrixView<S>(right_bar, f, f), true);
    bar = times_right(right, nodes, bar, product);
  }
  if (left != nullptr) {
    add_coordinate_products(nodes, bar, in, left_bar);  // ⟨ȳ_i, x_j Bᵀ⟩ = ⟨ȳ_i B, x_j⟩
    times_left_transposed(left, nodes, bar, product_bar);
    bar = product_bar;
  }
  add_to_input(first * row, size, gains, bar, x_bar);
}

template <class S>
const S* FeatureMixing<S>::dropped_rows(Index first, Index size, S* scratch) const {
  if (!dropped_) return input_ + first;
  detail::for_tiles<S>(0, size, [&]<class T>(auto i) {
    i.store(scratch + i, detail::dropped(i.load(input_ + first + i), mask_.bits(), first + i, factor_));
  });
  return scratch;
}

template <class S>
const S* FeatureMixing<S>::times_right(const S* m, Index nodes, const S* in, S* out) const {
  const Index rows = nodes * coordinates_;
  detail::multiply_block(MatrixView<const S>(in, rows, channels_), {m, channels_, channels_},
                         MatrixView<S>(out, rows, channels_), false);
  return out;
}

template <class S>
void FeatureMixing<S>::times_left(const S* a, Index nodes, const S* in, S* out) const {
  multiply_coordinates<false>(a, nodes, in, out);
}

template <class S>
void FeatureMixing<S>::times_left_transposed(const S* a, Index nodes, const S* in, S* out) const {
  multiply_coordinates<true>(a, nodes, in, out);
}

}  // namespace sheafnn::layers
