/// \file
/// BatchLaplacianLayer: a layer with an equation at a number, X' = φ(X̃, Δ X̃, X_1; θ), of all instances of a batch (formulas:
/// laplacian_kernels.hpp; for one network layers/laplacian_layer.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/laplacian_kernels.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchDiffusionLayer; no other layer shares its launches.
template <class Executor, template <class> class EquationType, class Family, class S>
class BatchLaplacianLayer {
  using Equation = WeightedEquation<EquationType, S>;

 public:
  static constexpr bool reads_first = Equation::with_first;

  /// \param number  of the layer, whose weights are named after it
  BatchLaplacianLayer(std::size_t number, Executor& executor, const GraphView<S>& graph,
                      const FeatureShape<S>& shape, const ModelLayout&, bool, const BatchFilter<Executor, S>&,
                      const ResidualOptions&, const layers::ParameterSet<S>& parameters, const BatchSize& batch,
                      bool dropout, PartialSums& sums)
      : graph_(graph), shape_(shape), number_(static_cast<std::uint32_t>(number)) {
    const auto array = [&](Index instances) {
      return Array<Executor, S>(executor, "layers", instances * shape.size());
    };
    if (dropout) dropped_ = array(batch.training_instances());
    scaled_ = array(batch.instances());
    if constexpr (sheaf::is_learned<Family>) diffused_ = array(batch.instances());
    z_ = array(batch.training_instances());
    direct_ = array(batch.training_instances());
    output_ = array(batch.instances());
    if constexpr (Equation::count > 0) {
      const Index d = shape.coordinates, chunks = RowChunks{shape.nodes * batch.training_copies}.count();
      const Index row = shape.row(), stride = Equation::count * row;
      sums_ = sums.reserve(chunks, stride);
      for (int k = 0; k < Equation::count; ++k) {
        const layers::EquationWeight& weight = EquationType<S>::weights[k];
        const layers::ParameterInfo& info =
            parameters.info(parameters.find(sheafnn::detail::concat(weight.name, ".", number)));
        if (k == 0) weights_ = info.offset;  // the others follow it
        sums.assign(info.offset, d, sums_ + k * row, chunks, stride, shape.channels, weight.tanh);
      }
    }
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }

  /// See BatchDiffusionLayer. \returns false: it does not go on with the next layer
  bool forward(const BatchLayerCall<Executor, Family, S>& call, const S* x, const S* first, bool drop, S* next) {
    drop_ = drop;
    x_ = drop ? dropped_.data() : x;
    first_ = first;
    const Pass& pass = call.pass;
    call.executor.launch(shape_.items(), pass.instances(),
                         MixForward<Family, S>{{graph_, call.range, call.sheaf.view()}, shape_, pass.copies, nullptr,
                                               0, nullptr, 0, x_, nullptr, nullptr, scaled_.data()});
    launch_diffusion(call.executor, pass.instances(),
                     EquationForward<Equation, LayerOutput<S>, Family, S>{
                         {diffusion_of(call, scaled_.data())},
                         equation(call.parameters),
                         pass,
                         x_,
                         first_,
                         diffused_.data(),
                         pass.training ? z_.data() : nullptr,
                         {nullptr, 0, false, nullptr, output_.data(), call.runs, pass, number_ + 1, next}});
    return false;
  }

  /// See BatchDiffusionLayer; also adds to scratch.first_bar.
  template <class... Ready>
  void backward(const BatchLayerCall<Executor, Family, S>& call, bool add, S* x_bar, const Ready&... ready) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances(), run_size = pass.copies * shape_.size();
    auto& side = call.scratch.of(number_);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *w_bar = call.scratch.w_bar.data();
    const EquationSums<Equation, S> sums{equation(call.parameters),
                                         x_,
                                         z_.data(),
                                         first_,
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
                                                      x_,
                                                      z_.data(),
                                                      first_,
                                                      x_bar,
                                                      z_bar,
                                                      r_bar,
                                                      direct_.data(),
                                                      call.scratch.first_bar.data()};
    call.executor.launch_together(ready..., Items{sums.items(), pass.runs, sums},
                                  Items{shape_.items(), instances, start});
    launch_diffusion(
        call.executor, instances,
        EquationDiffuseBackward<NoLayerBelow, Family, S>{
            {diffusion_of(call, r_bar)}, call.runs, pass, number_, drop_, direct_.data(), nullptr, w_bar, x_bar});
    if constexpr (sheaf::is_learned<Family>) {
      launch_block_gradients<Family>(call.executor, instances, graph_, call.range, shape_, StackedFeatures<S>{x_},
                                     DiffusionArrays<S>{scaled_.data(), diffused_.data(), z_bar, r_bar, w_bar},
                                     call.sheaf.gradient(), add, 1, 0);
    }
  }

  /// There is neither A nor B.
  [[nodiscard]] LayerProducts<S> products(const Pass&, const ParameterView<S>&,
                                          const LayerScratch<Executor, S>&) const {
    return {};
  }

 private:
  [[nodiscard]] Equation equation(const ParameterView<S>& parameters) const {
    return {parameters.value + weights_, parameters.stride, shape_.coordinates};
  }
  [[nodiscard]] Diffusion<Family, S> diffusion_of(const BatchLayerCall<Executor, Family, S>& call,
                                                  const S* features) const {
    return begin_diffusion(call.executor, call.pass.instances(), graph_, call.range, call.sheaf.view(), shape_,
                           features, call.scratch.segments.data());
  }

  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  std::uint32_t number_ = 0;
  bool drop_ = false;
  Index weights_ = 0, sums_ = 0;
  Array<Executor, S> dropped_;   ///< X after dropout
  Array<Executor, S> scaled_;    ///< W = S X̃
  Array<Executor, S> diffused_;  ///< R = L W; of learned maps
  Array<Executor, S> z_;         ///< Z = Δ X̃ of training passes
  Array<Executor, S> direct_;    ///< minus the derivative of X̃ that does not go through Δ
  Array<Executor, S> output_;
  const S *x_ = nullptr, *first_ = nullptr;
};

}  // namespace sheafnn::batch::detail
