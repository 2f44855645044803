/// \file
/// BatchConvolution: a convolution on a sheaf, X' = act(Q (I ⊗ A) dropout(X) Bᵀ + b) with Q = I − Δ, from c to c' channels.
/// It holds all instances of a batch. Formulas: laplacian_kernels.hpp. For one network: layers/sheaf_convolution.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/laplacian_layer.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/linear.hpp"
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
class BatchConvolution : public BatchEquation<Executor, Family, S> {
  using Base = BatchEquation<Executor, Family, S>;
  using Base::graph_, Base::shape_, Base::number_, Base::bias_, Base::sums_, Base::inputs_, Base::scaled_,
      Base::output_;
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
      : Base(executor, graph, shape_of(graph, options), number, batch, sheaf::is_learned<Family>),
        activation_(options.activation),
        input_size_(graph.nodes * D * options.inputs),
        left_(at.left, parameters, shape_, batch, sums) {
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
    if (at.bias < 0) {
      no_bias_ = array(options.outputs);
      return;
    }
    const RowChunks chunks{graph.nodes * batch.training_copies};
    bias_ = parameters.info(at.bias).offset;
    sums_ = sums.reserve(chunks.count(), shape_.row());
    sums.assign(bias_, options.outputs, sums_, chunks.count(), shape_.row(), D);
  }

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
    inputs_.mixed = left_.present() ? mixed_.data() : between_;
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
    this->diffuse(call, equation(parameters), this->diffusion_of(call, scaled_.data()),
                  StalkOutput<S>{output_.data()});
  }

  /// Replaces the derivative of output() in x_bar by the derivative of x. Partial sums of the gradients go to the arena,
  /// derivatives of the sheaf's blocks to the sheaf.
  ///
  /// \param ready  parts that share the first launch
  template <class... Ready>
  void backward(const Call& call, S* x_bar, const Ready&... ready) {
    const auto& [executor, runs, pass, parameters, sheaf, range, scratch, drop] = call;
    const Index instances = pass.instances();
    auto& side = scratch.of(number_);
    // What Y gets without Δ is read before P̄ is written.
    S* const direct = side.p_bar.data();
    S* const p_bar = linear_ ? side.p_bar.data() : x_bar;  // the derivative of X Bᵀ
    S* const y_bar = left_.present() ? side.y_bar.data() : p_bar;
    this->equation_backward(call, equation(parameters), x_bar, direct, bias_ >= 0, ready...);
    this->walk_backward(call, this->diffusion_of(call, side.r_bar.data()), direct, false, y_bar);
    this->block_gradients(call, inputs_.mixed, false, left_.products(pass, shape_, parameters, y_bar, between_),
                          Items{left_.present() ? shape_.items() : 0, instances,
                                MixBackward<Family, S>{shape_, runs, pass, number_, false, nullptr,
                                                       left_.of(parameters), nullptr, parameters.stride, y_bar,
                                                       p_bar, p_bar}});
    if (!linear_) return;
    executor.launch_together(linear_->weight_products(parameters, rows(pass), kept_, p_bar));
    linear_->backward(executor, parameters, rows(pass), p_bar, x_bar);
    executor.launch_together(
        dropout_part(drop, runs, pass, Purpose::layer_dropout, number_, x_bar, input_size_, x_bar));
  }

 private:
  [[nodiscard]] static FeatureShape<S> shape_of(const GraphView<S>& graph,
                                                const layers::SheafConvolutionOptions& options) {
    const FeatureShape<S> r{graph.nodes, D, options.outputs, {}};
    require_countable("features of a network", std::max(graph.nodes * D * options.inputs, r.size()));
    require_countable("tiles of the sums of segments", graph.walk_rows() * r.tiles);
    return r;
  }
  /// Rows of c channels of a run.
  [[nodiscard]] Index rows(const Pass& pass) const { return pass.copies * graph_.nodes * D; }
  [[nodiscard]] Equation equation(const ParameterView<S>& parameters) const {
    if (bias_ < 0) return {{}, nullptr, 0, D, no_bias_.data(), 0, activation_};
    return {{}, nullptr, 0, D, parameters.value + bias_, parameters.stride, activation_};
  }

  Activation activation_;
  Index input_size_;  ///< size of X of an instance
  LeftWeights<S> left_;
  std::optional<BatchLinear<S>> linear_;  ///< Bᵀ; none where the layer reads X Bᵀ
  Array<Executor, S> no_bias_;            ///< zeros, without b
  Array<Executor, S> input_;              ///< X after dropout, or of each instance
  Array<Executor, S> product_, mixed_;    ///< X Bᵀ and Y
  const S *kept_ = nullptr, *between_ = nullptr;  ///< what B and A multiply
};

}  // namespace sheafnn::batch::detail
