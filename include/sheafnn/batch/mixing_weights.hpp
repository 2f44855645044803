/// \file
/// A and B of a layer of a batch: where they are among the parameters, and the partial sums of their gradients. Also what
/// the layer makes with them, Y = (I ⊗ A) X̃ Bᵀ.
#pragma once

#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::batch::detail {

/// Partial sums of the gradients of a layer's weights: of ⟨ȳ_i, (X Bᵀ)_j⟩ for A, and of P̄ᵀ dropout(X) for B. With an
/// initial residual, of ⟨v̄_i, P_j⟩ and of P̄ᵀ G, of which the gradients are β times as much.
template <class S>
struct LayerProducts {
  Items<CoordinateProducts<S>> left;
  Items<RowProducts<S>> right;
};

/// A of a layer, which may lack it.
template <class S>
class LeftWeights {
 public:
  LeftWeights() = default;
  /// \param beta  see MixingWeights
  LeftWeights(layers::ParameterId at, const layers::ParameterSet<S>& parameters, const FeatureShape<S>& shape,
              const BatchSize& batch, PartialSums& sums, double beta = 1) {
    if (at < 0) return;
    const Index d = shape.coordinates, f = shape.channels;
    const RowChunks nodes{shape.nodes * batch.training_copies};
    offset_ = parameters.info(at).offset;
    sums_ = sums.reserve(nodes.count(), d * d * f);
    sums.assign(offset_, d * d, sums_, nodes.count(), d * d * f, f, false, beta);
  }

  [[nodiscard]] bool present() const noexcept { return offset_ >= 0; }
  /// The matrix of run 0; null: none.
  [[nodiscard]] const S* of(const ParameterView<S>& parameters) const noexcept {
    return present() ? parameters.value + offset_ : nullptr;
  }
  /// Partial sums of its gradient, of ⟨ȳ_i, between_j⟩; nothing without A.
  ///
  /// \param whole  of the arrays, where they have more channels than the weights
  [[nodiscard]] Items<CoordinateProducts<S>> products(const Pass& pass, const FeatureShape<S>& shape,
                                                      const ParameterView<S>& parameters, const S* y_bar,
                                                      const S* between,
                                                      const FeatureShape<S>* whole = nullptr) const {
    CoordinateProducts<S> products{y_bar,
                                   between,
                                   pass.copies * shape.size(),
                                   shape.coordinates,
                                   shape.channels,
                                   {shape.nodes * pass.copies},
                                   false,
                                   parameters.arena + sums_,
                                   parameters.arena_stride};
    if (whole != nullptr) {
      products.run_stride = pass.copies * whole->size();
      products.stride = whole->channels;
    }
    return {present() ? products.items() : 0, pass.runs, products};
  }

 private:
  Index offset_ = -1, sums_ = 0;
};

/// B of a layer, which may lack it, f × f.
template <class S>
class RightWeights {
 public:
  RightWeights() = default;
  /// \param rows  that it multiplies, of a run. \param beta  see MixingWeights
  RightWeights(layers::ParameterId at, const layers::ParameterSet<S>& parameters, Index channels,
               const RowChunks& rows, PartialSums& sums, double beta = 1)
      : channels_(channels) {
    if (at < 0) return;
    offset_ = parameters.info(at).offset;
    sums_ = sums.reserve(rows.count(), channels * channels);
    sums.assign(offset_, channels * channels, sums_, rows.count(), channels * channels, 1, false, beta);
  }

  [[nodiscard]] bool present() const noexcept { return offset_ >= 0; }
  /// The matrix of run 0; null: none.
  [[nodiscard]] const S* of(const ParameterView<S>& parameters) const noexcept {
    return present() ? parameters.value + offset_ : nullptr;
  }
  /// Partial sums of its gradient; nothing without B.
  ///
  /// \param p_bar, before  rows `stride` values apart
  [[nodiscard]] Items<RowProducts<S>> products(const Pass& pass, const RowChunks& rows, Index stride,
                                               Index run_size, const ParameterView<S>& parameters, const S* p_bar,
                                               const S* before) const {
    const RowProducts<S> products{p_bar,
                                  channels_,
                                  stride,
                                  run_size,
                                  before,
                                  channels_,
                                  stride,
                                  run_size,
                                  rows,
                                  false,
                                  parameters.arena + sums_,
                                  parameters.arena_stride};
    return {present() ? products.items() : 0, pass.runs, products};
  }

 private:
  Index channels_ = 1, offset_ = -1, sums_ = 0;
};

/// See the file comment. A layer may lack either of them.
template <class S>
class MixingWeights {
 public:
  /// Neither of them.
  MixingWeights() = default;
  /// \param beta  the gradients are `beta` times their partial sums
  MixingWeights(const layers::DiffusionWeights<layers::ParameterSlot>& layer,
                const layers::ParameterSet<S>& parameters, const FeatureShape<S>& shape, const BatchSize& batch,
                PartialSums& sums, double beta = 1)
      : left_(layer.left, parameters, shape, batch, sums, beta),
        right_(layer.right, parameters, shape.channels,
               RowChunks{shape.nodes * batch.training_copies * shape.coordinates}, sums, beta) {}

  [[nodiscard]] bool has_left() const noexcept { return left_.present(); }
  [[nodiscard]] bool has_right() const noexcept { return right_.present(); }
  /// A of run 0; null: none.
  [[nodiscard]] const S* left(const ParameterView<S>& parameters) const noexcept { return left_.of(parameters); }
  [[nodiscard]] const S* right(const ParameterView<S>& parameters) const noexcept { return right_.of(parameters); }
  /// \param side             has Ȳ and P̄
  /// \param between, before  what A and B multiply
  template <class Side>
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const FeatureShape<S>& shape,
                                          const ParameterView<S>& parameters, const Side& side, const S* between,
                                          const S* before) const {
    const S *y_bar = side.y_bar.data(), *p_bar = has_left() ? side.p_bar.data() : y_bar;
    return {left_.products(pass, shape, parameters, y_bar, between),
            right_.products(pass, {shape.nodes * pass.copies * shape.coordinates}, shape.channels,
                            pass.copies * shape.size(), parameters, p_bar, before)};
  }

 private:
  LeftWeights<S> left_;
  RightWeights<S> right_;
};

/// A and B of a layer, and its features before it reads neighbours: X̃, the input after dropout, X̃ Bᵀ and Y.
template <class Executor, class S>
class BatchMixing {
 public:
  /// \param beta   see MixingWeights
  /// \param later  A and B come after the diffusion: Y = X̃
  template <class View>
  explicit BatchMixing(const BatchLayerSetting<Executor, S, View>& of, double beta = 1, bool later = false)
      : weights_(of.layout.layers[of.number], of.parameters, of.shape, of.batch, of.sums, beta),
        shape_(of.shape),
        number_(static_cast<std::uint32_t>(of.number)),
        left_(weights_.has_left() && !later),
        right_(weights_.has_right() && !later) {
    if (of.dropout) dropped_ = of.features(of.batch.training_instances());
    if (right_) product_ = of.features(of.batch.instances());
    if (left_) mixed_ = of.features(of.batch.instances());
  }

  [[nodiscard]] const MixingWeights<S>& weights() const noexcept { return weights_; }

  /// Where the input after dropout goes, to be filled before begin().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }
  /// Takes the input of a pass. \param drop  dropped_input() holds dropout(x)
  void begin(const S* x, bool drop) {
    drop_ = drop;
    kept_ = drop ? dropped_.data() : x;
    between_ = right_ ? product_.data() : kept_;
    y_ = left_ ? mixed_.data() : between_;
  }
  /// What A and B multiply, where they come later.
  void come_after(const S* between, const S* before) {
    between_ = between;
    kept_ = before;
  }
  /// X̃ and Y.
  [[nodiscard]] const S* kept() const noexcept { return kept_; }
  [[nodiscard]] const S* y() const noexcept { return y_; }
  [[nodiscard]] bool drops() const noexcept { return drop_; }

  /// Y, and to `out` what `scaling` makes of it.
  template <class Family, class Scaling, class Call>
  [[nodiscard]] MixForward<Family, S, Scaling> forward(const Call& call, const Scaling& scaling, S* out) {
    MixForward<Family, S, Scaling> r = later<Family>(call, scaling, kept_, product_.data());
    if (!right_) r.right = nullptr;
    if (!left_) r.left = nullptr;
    r.y = mixed_.data();
    r.w = out;
    return r;
  }
  /// Where A and B come later: what `scaling` makes of (I ⊗ A) X Bᵀ. \param product  where X Bᵀ goes
  template <class Family, class Scaling, class Call>
  [[nodiscard]] MixForward<Family, S, Scaling> later(const Call& call, const Scaling& scaling, const S* x,
                                                     S* product) const {
    return {scaling,
            shape_,
            call.pass.copies,
            weights_.has_right() ? call.right.layer(static_cast<Index>(number_)) : nullptr,
            call.right.run_stride(),
            weights_.left(call.parameters),
            call.parameters.stride,
            x,
            product,
            nullptr,
            nullptr};
  }
  /// Computes P̄ and x̄ from Ȳ of the layer's scratch.
  template <class Family, class Call>
  [[nodiscard]] MixBackward<Family, S> backward(const Call& call, S* x_bar) const {
    auto& side = call.scratch.of(number_);
    return {shape_,
            call.runs,
            call.pass,
            number_,
            drop_,
            weights_.right(call.parameters),
            weights_.left(call.parameters),
            nullptr,
            call.parameters.stride,
            side.y_bar.data(),
            side.p_bar.data(),
            x_bar};
  }
  /// See BatchDiffusionLayer.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return weights_.products(pass, shape_, parameters, scratch.of(number_), between_, kept_);
  }

 private:
  MixingWeights<S> weights_;
  FeatureShape<S> shape_;
  std::uint32_t number_;
  bool left_, right_, drop_ = false;
  Array<Executor, S> dropped_, product_, mixed_;                 ///< X after dropout, X̃ Bᵀ, Y
  const S *kept_ = nullptr, *between_ = nullptr, *y_ = nullptr;  ///< X̃, X̃ Bᵀ and Y
};

}  // namespace sheafnn::batch::detail
