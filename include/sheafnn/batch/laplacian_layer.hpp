/// \file
/// BatchLaplacianLayer: a layer with an equation at a number, X' = φ(X̃, Δ X̃, X_1, X_{l−1}; θ), or one that diffuses mixed
/// features, X' = φ(X, Y, Δ Y, X_{l−1}, b; θ) with Y = (I ⊗ A) X̃ Bᵀ. It holds all instances of a batch. Formulas:
/// laplacian_kernels.hpp. For one network: layers/laplacian_layer.hpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/laplacian_kernels.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchDiffusionLayer; no other layer shares its launches.
///
/// \tparam Equation  RunEquation
template <class Executor, class Equation, class Family, class S>
class BatchLaplacianLayer {
  using Sums = EquationSums<Equation, S>;

 public:
  static constexpr bool reads_first = Equation::with_first, reads_before = Equation::with_before,
                        reads_maps = false;

  explicit BatchLaplacianLayer(const BatchLayerSetting<Executor, S>& of)
      : graph_(of.graph),
        shape_(of.shape),
        number_(static_cast<std::uint32_t>(of.number)),
        activation_(of.activation),
        mixing_(of.layout.layers[of.number], of.parameters, of.shape, of.batch, of.sums) {
    const FeatureShape<S>& shape = of.shape;
    const BatchSize& batch = of.batch;
    if (of.dropout) dropped_ = of.features(batch.training_instances());
    if (mixing_.has_right()) product_ = of.features(batch.instances());
    if (mixing_.has_left()) mixed_ = of.features(batch.instances());
    scaled_ = of.features(batch.instances());
    if constexpr (sheaf::is_learned<Family>) diffused_ = of.features(batch.instances());
    z_ = of.features(batch.training_instances());
    direct_ = of.features(batch.training_instances());
    output_ = of.features(batch.instances());
    if constexpr (Sums::kinds > 0) {
      const Index chunks = RowChunks{shape.nodes * batch.training_copies}.count(), row = shape.row();
      const Index stride = Sums::kinds * row;
      sums_ = of.sums.reserve(chunks, stride);
      // The partial sums of kind k make `size` weights, of which each has `inner` sums.
      const auto assign = [&](int k, std::string_view name, Index size, Index inner, bool tanh) {
        const layers::ParameterInfo& info =
            of.parameters.info(of.parameters.find(sheafnn::detail::concat(name, ".", of.number)));
        if (k == 0) weights_ = info.offset;  // the others follow it
        of.sums.assign(info.offset, size, sums_ + k * row, chunks, stride, inner, tanh);
        return info.offset;
      };
      if constexpr (Equation::count > 0) {
        for (int k = 0; k < Equation::count; ++k) {
          const layers::EquationWeight& weight = Equation::weight(k);
          assign(k, weight.name, shape.coordinates, shape.channels, weight.tanh);
        }
      }
      if constexpr (Equation::with_bias)
        bias_ = assign(Equation::count, "bias", shape.channels, shape.coordinates, false);
    }
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const BatchLayerCall<Executor, Family, S>& call, const S* x, const S* first, bool drop, S* next) {
    const Pass& pass = call.pass;
    drop_ = drop;
    kept_ = drop ? dropped_.data() : x;
    between_ = mixing_.has_right() ? product_.data() : kept_;
    y_ = mixing_.has_left() ? mixed_.data() : between_;
    inputs_ = {Equation::mixes ? x : kept_, first, call.before, y_};
    call.executor.launch(shape_.items(), pass.instances(),
                         MixForward<Family, S>{{graph_, call.range, call.sheaf.view()},
                                               shape_,
                                               pass.copies,
                                               mixing_.has_right() ? call.right.layer(static_cast<Index>(number_))
                                                                   : nullptr,
                                               call.right.run_stride(),
                                               mixing_.left(call.parameters),
                                               call.parameters.stride,
                                               kept_,
                                               product_.data(),
                                               mixed_.data(),
                                               scaled_.data()});
    launch_diffusion(call.executor, pass.instances(),
                     EquationForward<Equation, LayerOutput<S>, Family, S>{
                         {diffusion_of(call, scaled_.data())},
                         equation(call.parameters),
                         pass,
                         inputs_,
                         diffused_.data(),
                         pass.training ? z_.data() : nullptr,
                         {nullptr, 0, false, nullptr, output_.data(), call.runs, pass, number_ + 1, next}});
    return false;
  }

  /// See BatchDiffusionLayer; also adds to scratch.first_bar, and sets the layer's scratch.before_bar.
  template <class... Ready>
  void backward(const BatchLayerCall<Executor, Family, S>& call, bool add, S* x_bar, const Ready&... ready) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances(), run_size = pass.copies * shape_.size();
    auto& side = call.scratch.of(number_);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *w_bar = call.scratch.w_bar.data();
    S* const y_bar = side.y_bar.data();
    const Sums sums{equation(call.parameters),
                    inputs_,
                    z_.data(),
                    x_bar,
                    run_size,
                    shape_.channels,
                    {shape_.nodes * pass.copies},
                    call.parameters.arena + sums_,
                    call.parameters.arena_stride,
                    shape_.row()};
    const EquationBackward<Equation, Family, S> start{graph_,
                                                      call.range,
                                                      call.sheaf.view(),
                                                      shape_,
                                                      pass,
                                                      equation(call.parameters),
                                                      inputs_,
                                                      z_.data(),
                                                      x_bar,
                                                      z_bar,
                                                      r_bar,
                                                      direct_.data(),
                                                      call.scratch.first_bar.data(),
                                                      call.scratch.before_bar_of(number_)};
    call.executor.launch_together(ready..., Items{sums.items(), pass.runs, sums},
                                  Items{shape_.items(), instances, start});
    const DiffusionTeam<Family, S> diffuse{diffusion_of(call, r_bar)};
    if constexpr (!Equation::mixes) {
      launch_diffusion(call.executor, instances,
                       EquationDiffuseBackward<NoLayerBelow, Family, S>{diffuse, call.runs, pass, number_, drop_,
                                                                        direct_.data(), nullptr, w_bar, x_bar});
      block_gradients(call, add, {scaled_.data(), diffused_.data(), z_bar, r_bar, w_bar});
    } else {
      if constexpr (Equation::with_mixed) {
        launch_diffusion(call.executor, instances,
                         EquationDiffuseBackward<NoLayerBelow, Family, S>{diffuse, call.runs, pass, number_, false,
                                                                          direct_.data(), nullptr, w_bar, y_bar});
      } else {
        launch_diffusion(call.executor, instances, DiffuseBackward<Family, S>{diffuse, w_bar, y_bar});
      }
      block_gradients(call, add, {scaled_.data(), diffused_.data(), z_bar, r_bar, w_bar},
                      Items{shape_.items(), instances,
                            EquationMixBackward<Equation, Family, S>{
                                {shape_, call.runs, pass, number_, drop_, mixing_.right(call.parameters),
                                 mixing_.left(call.parameters), nullptr, call.parameters.stride, y_bar,
                                 side.p_bar.data(), x_bar},
                                direct_.data()}});
    }
  }

  /// See BatchDiffusionLayer; nothing without A and B.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return mixing_.products(pass, shape_, parameters, scratch.of(number_), between_, kept_);
  }

 private:
  [[nodiscard]] Equation equation(const ParameterView<S>& parameters) const {
    return {{}, parameters.value + weights_, parameters.stride, shape_.coordinates, parameters.value + bias_,
            parameters.stride, activation_};
  }
  [[nodiscard]] Diffusion<Family, S> diffusion_of(const BatchLayerCall<Executor, Family, S>& call,
                                                  const S* features) const {
    return begin_diffusion(call.executor, call.pass.instances(), graph_, call.range, call.sheaf.view(), shape_,
                           features, call.scratch.segments.data());
  }
  /// Launches the derivatives of learned blocks. \param others  parts that share the launch
  template <class... Others>
  void block_gradients(const BatchLayerCall<Executor, Family, S>& call, bool add, const DiffusionArrays<S>& arrays,
                       const Others&... others) const {
    if constexpr (sheaf::is_learned<Family>) {
      if (call.sheaf.learned()) {
        return launch_block_gradients<Family>(call.executor, call.pass.instances(), graph_, call.range, shape_,
                                              StackedFeatures<S>{y_}, arrays, call.sheaf.gradient(), add, 1, 0,
                                              others...);
      }
    }
    if constexpr (sizeof...(others) > 0) call.executor.launch_together(others...);
  }

  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  std::uint32_t number_ = 0;
  bool activation_ = true, drop_ = false;
  Index weights_ = 0, bias_ = 0, sums_ = 0;
  MixingWeights<S> mixing_;      ///< of layers that mix
  Array<Executor, S> dropped_;   ///< X after dropout
  Array<Executor, S> product_;   ///< X̃ Bᵀ
  Array<Executor, S> mixed_;     ///< Y
  Array<Executor, S> scaled_;    ///< W = S Y
  Array<Executor, S> diffused_;  ///< R = L W; of learned maps
  Array<Executor, S> z_;         ///< Z = Δ Y of training passes
  Array<Executor, S> direct_;    ///< minus the derivative of X or Y that does not go through Δ
  Array<Executor, S> output_;
  EquationInputs<S> inputs_;
  const S *kept_ = nullptr, *between_ = nullptr, *y_ = nullptr;  ///< X̃, X̃ Bᵀ and Y
};

}  // namespace sheafnn::batch::detail
