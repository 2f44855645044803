/// \file
/// BatchLaplacianLayer: a layer with an equation at one value, X' = φ(X̃, Δ X̃, X_1, X_{l−1}; θ). Or one that diffuses mixed
/// features, X' = φ(X, Y, Δ Y, X_{l−1}, b; θ) with Y = (I ⊗ A) X̃ Bᵀ. It holds all instances of a batch. Formulas:
/// laplacian_kernels.hpp. For one network: layers/laplacian_layer.hpp.
#pragma once

#include <cstdint>
#include <string_view>

#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/laplacian_kernels.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch::detail {

/// An equation at one value around a walk over neighbours: its buffers and launches.
///
/// \tparam View  GraphView or, over hypergraphs, IncidenceView
template <class Executor, class Family, class S, class View = GraphView<S>>
class BatchEquation {
 public:
  [[nodiscard]] const S* output() const noexcept { return output_.data(); }

 protected:
  /// \param keeps_r  R is read backwards
  BatchEquation(Executor& executor, const View& graph, const FeatureShape<S>& shape, std::size_t number,
                const BatchSize& batch, bool keeps_r)
      : graph_(graph), shape_(shape), number_(static_cast<std::uint32_t>(number)) {
    const auto array = [&](Index instances) {
      return Array<Executor, S>(executor, "layers", instances * shape.size());
    };
    for (Array<Executor, S>* one : {&scaled_, &output_}) *one = array(batch.instances());
    if (keeps_r) diffused_ = array(batch.instances());
    z_ = array(batch.training_instances());
  }
  /// X' from the walk over W. \param to  see EquationForward
  template <class Call, class Equation, class Walk, class Output>
  void diffuse(const Call& call, const Equation& equation, const Walk& walk, const Output& to) {
    const Pass& pass = call.pass;
    launch_diffusion(
        call.executor, pass.instances(),
        EquationForward<Equation, Output, Family, S, Walk>{
            {walk}, equation, pass, inputs_, diffused_.data(), pass.keeps() ? z_.data() : nullptr, to});
  }
  /// The sums for the equation's weights and bias, z̄ and r̄, from the derivative of X'. Adds to scratch.first_bar, and sets the
  /// layer's scratch.before_bar.
  ///
  /// \param direct  where minus the derivative of X or Y goes that does not go through Δ
  /// \param sums    has the equation weights or a bias?
  /// \param ready   parts that share the launch
  template <class Call, class Equation, class... Ready>
  void equation_backward(const Call& call, const Equation& equation, const S* x_bar, S* direct, bool sums,
                         const Ready&... ready) {
    const Pass& pass = call.pass;
    auto& side = call.scratch.of(number_);
    const EquationSums<Equation, S> weights{equation,
                                            inputs_,
                                            z_.data(),
                                            x_bar,
                                            pass.copies * shape_.size(),
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
                                                      equation,
                                                      inputs_,
                                                      z_.data(),
                                                      x_bar,
                                                      side.z_bar.data(),
                                                      side.r_bar.data(),
                                                      direct,
                                                      call.scratch.first_bar.data(),
                                                      call.scratch.before_bar_of(number_)};
    call.executor.launch_together(ready..., Items{sums ? weights.items() : 0, pass.runs, weights},
                                  Items{shape_.items(), pass.instances(), start});
  }
  /// W̄, and to `bar` S W̄ − direct, from the walk over r̄. \param dropped  through the dropout
  template <class Call, class Walk>
  void walk_backward(const Call& call, const Walk& walk, const S* direct, bool dropped, S* bar) const {
    launch_diffusion(
        call.executor, call.pass.instances(),
        EquationDiffuseBackward<NoLayerBelow, Family, S, Walk>{
            {walk}, call.runs, call.pass, number_, dropped, direct, nullptr, call.scratch.w_bar.data(), bar});
  }
  /// W, R, z̄, r̄ and W̄.
  template <class Call>
  [[nodiscard]] DiffusionArrays<S> arrays(const Call& call) const {
    auto& side = call.scratch.of(number_);
    return {scaled_.data(), diffused_.data(), side.z_bar.data(), side.r_bar.data(), call.scratch.w_bar.data()};
  }
  /// The walk over arcs of graphs.
  template <class Call>
  [[nodiscard]] Diffusion<Family, S> diffusion_of(const Call& call, const S* features) const {
    return begin_diffusion(call.executor, call.pass.instances(), graph_, call.range, call.sheaf.view(), shape_,
                           features, call.scratch.segments.data());
  }
  /// Launches the derivatives of learned blocks of graphs. \param others  parts that share the launch
  template <class Call, class... Others>
  void block_gradients(const Call& call, const S* y, bool add, const Others&... others) const {
    if constexpr (sheaf::is_learned<Family>) {
      if (call.sheaf.learned()) {
        return launch_block_gradients<Family>(call.executor, call.pass.instances(), graph_, call.range, shape_,
                                              StackedFeatures<S>{y}, arrays(call), call.sheaf.gradient(), add, 1,
                                              0, others...);
      }
    }
    if constexpr (sizeof...(others) > 0) call.executor.launch_together(others...);
  }

  View graph_{};
  FeatureShape<S> shape_;
  std::uint32_t number_ = 0;
  Index weights_ = 0, bias_ = -1, sums_ = 0;
  Array<Executor, S> scaled_, diffused_;  ///< W = S Y and R = L W
  Array<Executor, S> z_;                  ///< Z = Δ Y of training passes
  Array<Executor, S> output_;
  EquationInputs<S> inputs_;
};

/// What layers with an equation have in common. They share no launches with other layers.
template <class Executor, class Family, class S, class View>
class BatchEquationLayer : public BatchEquation<Executor, Family, S, View> {
  using Base = BatchEquation<Executor, Family, S, View>;

 public:
  using Call = BatchLayerCall<Executor, Family, S, View>;

  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return mixing_.dropped_input(); }
  /// See BatchDiffusionLayer; nothing without A and B.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return mixing_.products(pass, parameters, scratch);
  }

 protected:
  using Base::graph_, Base::shape_, Base::number_;

  /// \param keeps_r  R is read backwards
  BatchEquationLayer(const BatchLayerSetting<Executor, S, View>& of, bool keeps_r)
      : Base(of.executor, of.graph, of.shape, of.number, of.batch, keeps_r),
        mixing_(of),
        direct_(of.features(of.batch.training_instances())) {}
  /// Y and W = S Y. \param mixes  does the equation mix?
  void begin(const Call& call, const S* x, const S* first, bool drop, bool mixes) {
    mixing_.begin(x, drop);
    this->inputs_ = {mixes ? x : mixing_.kept(), first, call.before, mixing_.y()};
    call.executor.launch(
        shape_.items(), call.pass.instances(),
        mixing_.template forward<Family>(call, SheafScaling<Family, S>{graph_, call.range, call.sheaf.view()},
                                         this->scaled_.data()));
  }
  /// X' from the walk over W. \param next  see BatchDiffusionLayer
  template <class Equation, class Walk>
  void end(const Call& call, const Equation& equation, const Walk& walk, S* next) {
    this->diffuse(call, equation, walk,
                  LayerOutput<S>{nullptr, 0, false, nullptr, this->output_.data(), call.runs, call.pass,
                                 number_ + 1, next});
  }
  /// See equation_backward().
  template <class Equation, class... Ready>
  void begin_backward(const Call& call, const Equation& equation, const S* x_bar, const Ready&... ready) {
    this->equation_backward(call, equation, x_bar, direct_.data(), true, ready...);
  }
  /// W̄, and Ȳ or, of equations that do not mix, x̄, from the walk over r̄.
  template <class Equation, class Walk>
  void diffuse_backward(const Call& call, const Walk& walk, S* x_bar) const {
    S* const y_bar = call.scratch.of(number_).y_bar.data();
    if constexpr (Equation::mixes && !Equation::with_mixed) {
      launch_diffusion(call.executor, call.pass.instances(),
                       DiffuseBackward<Family, S, Walk>{{walk}, call.scratch.w_bar.data(), y_bar});
    } else {
      this->walk_backward(call, walk, direct_.data(), !Equation::mixes && mixing_.drops(),
                          Equation::mixes ? y_bar : x_bar);
    }
  }
  /// x̄ from Ȳ.
  template <class Equation>
  [[nodiscard]] auto mix_backward(const Call& call, S* x_bar) const {
    return Items{shape_.items(), call.pass.instances(),
                 EquationMixBackward<Equation, Family, S>{mixing_.template backward<Family>(call, x_bar),
                                                          direct_.data()}};
  }

  BatchMixing<Executor, S> mixing_;
  Array<Executor, S> direct_;  ///< minus the derivative of X or Y that does not go through Δ
};

/// One layer, with the interface of BatchDiffusionLayer.
///
/// \tparam Equation  RunEquation
template <class Executor, class Equation, class Family, class S>
class BatchLaplacianLayer : public BatchEquationLayer<Executor, Family, S, GraphView<S>> {
  using Base = BatchEquationLayer<Executor, Family, S, GraphView<S>>;
  using Base::shape_, Base::number_, Base::weights_, Base::bias_, Base::sums_, Base::mixing_, Base::scaled_;
  using Sums = EquationSums<Equation, S>;

 public:
  using typename Base::Call;
  static constexpr bool reads_first = Equation::with_first, reads_before = Equation::with_before,
                        reads_maps = false;

  explicit BatchLaplacianLayer(const BatchLayerSetting<Executor, S>& of)
      : Base(of, sheaf::is_learned<Family>), activation_(of.activation) {
    if constexpr (Sums::kinds > 0) {
      const FeatureShape<S>& shape = of.shape;
      const Index chunks = RowChunks{shape.nodes * of.batch.training_copies}.count(), row = shape.row();
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

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const Call& call, const S* x, const S* first, bool drop, S* next) {
    this->begin(call, x, first, drop, Equation::mixes);
    this->end(call, equation(call.parameters), this->diffusion_of(call, scaled_.data()), next);
    return false;
  }
  /// See BatchDiffusionLayer; also adds to scratch.first_bar, and sets the layer's scratch.before_bar.
  template <class... Ready>
  void backward(const Call& call, bool add, S* x_bar, const Ready&... ready) {
    this->begin_backward(call, equation(call.parameters), x_bar, ready...);
    this->template diffuse_backward<Equation>(call,
                                              this->diffusion_of(call, call.scratch.of(number_).r_bar.data()),
                                              x_bar);
    if constexpr (Equation::mixes) {
      this->block_gradients(call, mixing_.y(), add, this->template mix_backward<Equation>(call, x_bar));
    } else {
      this->block_gradients(call, mixing_.y(), add);
    }
  }

 private:
  [[nodiscard]] Equation equation(const ParameterView<S>& parameters) const {
    return {{}, parameters.value + weights_, parameters.stride, shape_.coordinates, parameters.value + bias_,
            parameters.stride, activation_};
  }

  bool activation_ = true;
};

}  // namespace sheafnn::batch::detail
