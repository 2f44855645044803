/// \file
/// BatchConvolution: a convolution on a sheaf, X' = act(Q (I ⊗ A) dropout(X) Bᵀ + b) with Q = I − Δ, from c to c' channels.
/// It holds all instances of a batch. Formulas: laplacian_kernels.hpp. For one network: layers/sheaf_convolution.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/laplacian_kernels.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/linear.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/layers/sheaf_convolution.hpp"

namespace sheafnn::batch::detail {

/// What a layer gets in a pass.
template <class Executor, class Family, class S>
struct ConvolutionCall {
  Executor& executor;
  const Run* runs;
  Pass pass;
  ParameterView<S> parameters;
  BatchSheaf<Executor, Family, S>& sheaf;
  SheafRange range;  ///< of the layer's sheaves
  LayerScratch<Executor, S>& scratch;
  bool drop;  ///< apply the runs' dropout rules
};

/// One layer; what its backward pass needs stays in its own arrays.
template <class Executor, class Family, class S>
class BatchConvolution {
  static constexpr Index D = Family::stalk_dimension;
  using Equation = RunEquation<kernels::ChosenConvolutionEnd, S, Activation>;

 public:
  using Call = ConvolutionCall<Executor, Family, S>;

  /// \param multiplied  the layer reads X Bᵀ in place of X
  BatchConvolution(Executor& executor, const GraphView<S>& graph, std::size_t number, bool multiplied,
                   const layers::SheafConvolutionOptions& options,
                   const layers::SheafConvolutionWeights<layers::ParameterSlot>& at,
                   const layers::ParameterSet<S>& parameters, const BatchSize& batch, bool dropout,
                   PartialSums& sums)
      : graph_(graph),
        shape_{graph.nodes, D, options.outputs, {}},
        number_(static_cast<std::uint32_t>(number)),
        activation_(options.activation),
        input_size_(graph.nodes * D * options.inputs),
        left_(at.left, parameters, shape_, batch, sums) {
    require_countable("features of a network", std::max(input_size_, shape_.size()));
    require_countable("tiles of the sums of segments", graph.walk_rows() * shape_.tiles);
    const auto array = [&](Index count) { return Array<Executor, S>(executor, "layers", count); };
    const Index size = shape_.size(), all = batch.instances(), training = batch.training_instances();
    if (!multiplied) {
      const Index shared = number == 0 && batch.copies > 1 ? all : 0;
      input_ = array(std::max(shared, dropout ? training : 0) * input_size_);
      linear_.emplace(layers::LinearWeights<layers::ParameterSlot>{at.right, {-1}}, parameters, batch.runs,
                      batch.training_copies * graph.nodes * D, options.inputs, options.outputs, sums);
    }
    if (!multiplied || batch.copies > 1) product_ = array(all * size);
    if (left_.present()) mixed_ = array(all * size);
    for (Array<Executor, S>* one : {&scaled_, &output_}) *one = array(all * size);
    if constexpr (sheaf::is_learned<Family>) diffused_ = array(all * size);
    z_ = array(training * size);
    if (at.bias < 0) {
      no_bias_ = array(options.outputs);
      return;
    }
    const RowChunks chunks{graph.nodes * batch.training_copies};
    bias_ = parameters.info(at.bias).offset;
    bias_sums_ = sums.reserve(chunks.count(), shape_.row());
    sums.assign(bias_, options.outputs, bias_sums_, chunks.count(), shape_.row(), D);
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

  /// \param x       n × D × c per `shared` instances, or X Bᵀ; stays in place until backward()
  /// \param shared  instances that read the same x
  void forward(const Call& call, const S* x, Index shared) {
    const auto& [executor, runs, pass, parameters, sheaf, range, scratch, drop] = call;
    const Index instances = pass.instances();
    const auto spread = [&](Index size, S* to) {
      executor.launch(size, instances, CopyToInstances<S>{x, size, shared, to});
      return to;
    };
    if (!linear_) {
      between_ = shared > 1 ? spread(shape_.size(), product_.data()) : x;
    } else {
      kept_ = x;
      if (drop) {
        executor.launch_together(dropout_part(true, runs, pass, Purpose::layer_dropout, number_, x, input_size_,
                                              input_.data(), shared));
        kept_ = input_.data();
      } else if (shared > 1) {
        kept_ = spread(input_size_, input_.data());
      }
      linear_->forward(executor, parameters, rows(pass), kept_, product_.data());
      between_ = product_.data();
    }
    y_ = left_.present() ? mixed_.data() : between_;
    executor.launch(shape_.items(), instances,
                    MixForward<Family, S>{{graph_, range, sheaf.view()},
                                          shape_,
                                          pass.copies,
                                          nullptr,
                                          0,
                                          left_.of(parameters),
                                          parameters.stride,
                                          between_,
                                          nullptr,
                                          mixed_.data(),
                                          scaled_.data()});
    launch_diffusion(executor, instances,
                     EquationForward<Equation, StalkOutput<S>, Family, S>{{diffusion_of(call, scaled_.data())},
                                                                          equation(parameters),
                                                                          pass,
                                                                          inputs(),
                                                                          diffused_.data(),
                                                                          pass.keeps() ? z_.data() : nullptr,
                                                                          {output_.data()}});
  }

  /// Replaces the derivative of output() in x_bar by the derivative of x. Partial sums of the gradients go to the arena,
  /// derivatives of the sheaf's blocks to the sheaf.
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward(const Call& call, S* x_bar, const Ready&... ready) {
    const auto& [executor, runs, pass, parameters, sheaf, range, scratch, drop] = call;
    const Index instances = pass.instances(), run_size = pass.copies * shape_.size();
    auto& side = scratch.of(number_);
    // What Y gets without Δ is read before P̄ is written.
    S *const z_bar = side.z_bar.data(), *const r_bar = side.r_bar.data(), *const direct = side.p_bar.data();
    S* const p_bar = linear_ ? side.p_bar.data() : x_bar;  // the derivative of X Bᵀ
    S* const y_bar = left_.present() ? side.y_bar.data() : p_bar;
    const EquationSums<Equation, S> sums{equation(parameters),
                                         inputs(),
                                         z_.data(),
                                         x_bar,
                                         run_size,
                                         shape_.channels,
                                         {shape_.nodes * pass.copies},
                                         parameters.arena + bias_sums_,
                                         parameters.arena_stride,
                                         shape_.row()};
    const EquationBackward<Equation, Family, S> start{graph_,   range,     sheaf.view(),
                                                      shape_,   pass,      equation(parameters),
                                                      inputs(), z_.data(), x_bar,
                                                      z_bar,    r_bar,     direct,
                                                      nullptr,  nullptr};
    executor.launch_together(ready..., Items{bias_ >= 0 ? sums.items() : 0, pass.runs, sums},
                             Items{shape_.items(), instances, start});
    launch_diffusion(executor, instances,
                     EquationDiffuseBackward<NoLayerBelow, Family, S>{{diffusion_of(call, r_bar)},
                                                                      runs,
                                                                      pass,
                                                                      number_,
                                                                      false,
                                                                      direct,
                                                                      nullptr,
                                                                      scratch.w_bar.data(),
                                                                      y_bar});
    block_gradients(call, {scaled_.data(), diffused_.data(), z_bar, r_bar, scratch.w_bar.data()},
                    left_.products(pass, shape_, parameters, y_bar, between_),
                    Items{left_.present() ? shape_.items() : 0, instances,
                          MixBackward<Family, S>{shape_, runs, pass, number_, false, nullptr, left_.of(parameters),
                                                 nullptr, parameters.stride, y_bar, p_bar, p_bar}});
    if (!linear_) return;
    executor.launch_together(linear_->weight_products(parameters, rows(pass), kept_, p_bar));
    linear_->backward(executor, parameters, rows(pass), p_bar, x_bar);
    executor.launch_together(
        dropout_part(drop, runs, pass, Purpose::layer_dropout, number_, x_bar, input_size_, x_bar));
  }

 private:
  /// Rows of c channels of a run.
  [[nodiscard]] Index rows(const Pass& pass) const { return pass.copies * graph_.nodes * D; }
  [[nodiscard]] Equation equation(const ParameterView<S>& parameters) const {
    if (bias_ < 0) return {{}, nullptr, 0, D, no_bias_.data(), 0, activation_};
    return {{}, nullptr, 0, D, parameters.value + bias_, parameters.stride, activation_};
  }
  [[nodiscard]] EquationInputs<S> inputs() const { return {nullptr, nullptr, nullptr, y_}; }
  [[nodiscard]] Diffusion<Family, S> diffusion_of(const Call& call, const S* features) const {
    return begin_diffusion(call.executor, call.pass.instances(), graph_, call.range, call.sheaf.view(), shape_,
                           features, call.scratch.segments.data());
  }
  /// Launches the derivatives of learned blocks, and the others.
  template <class... Others>
  void block_gradients(const Call& call, const DiffusionArrays<S>& arrays, const Others&... others) const {
    if constexpr (sheaf::is_learned<Family>) {
      if (call.sheaf.learned()) {
        return launch_block_gradients<Family>(call.executor, call.pass.instances(), graph_, call.range, shape_,
                                              StackedFeatures<S>{y_}, arrays, call.sheaf.gradient(), false, 1, 0,
                                              others...);
      }
    }
    call.executor.launch_together(others...);
  }

  GraphView<S> graph_;
  FeatureShape<S> shape_;  ///< of the output
  std::uint32_t number_;
  Activation activation_;
  Index input_size_;  ///< numbers of X of an instance
  LeftWeights<S> left_;
  std::optional<BatchLinear<S>> linear_;  ///< Bᵀ; none where the layer reads X Bᵀ
  Index bias_ = -1, bias_sums_ = 0;
  Array<Executor, S> no_bias_;            ///< zeros, without b
  Array<Executor, S> input_;              ///< X after dropout, or of each instance
  Array<Executor, S> product_, mixed_;    ///< X Bᵀ and Y
  Array<Executor, S> scaled_, diffused_;  ///< W = S Y and R = L W
  Array<Executor, S> z_;                  ///< Δ Y of training passes
  Array<Executor, S> output_;
  const S *kept_ = nullptr, *between_ = nullptr, *y_ = nullptr;  ///< what B and A multiply, and Y
};

}  // namespace sheafnn::batch::detail
