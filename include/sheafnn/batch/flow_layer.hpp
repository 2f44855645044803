/// \file
/// BatchFlowLayer: the flow of all instances of a batch, X(0) ↦ X(T) by equal steps, in the place of a network's layers.
/// Formulas: flow_kernels.hpp. For one network: layers/flow_layer.hpp. With it BatchNetwork takes FlowModel.
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <vector>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/flow_kernels.hpp"
#include "sheafnn/batch/layer_call.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/network.hpp"
#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/layers/runge_kutta.hpp"

namespace sheafnn::batch::detail {

/// The only layer of its network. As on the CPU, the first steps of a training pass keep the stages that the backward pass
/// reads, as many as the memory allows. The backward pass computes the stages of the other steps again, with the same bits.
template <class Executor, class Family, class S>
class BatchFlowLayer {
  using Call = BatchLayerCall<Executor, Family, S>;

 public:
  static constexpr bool reads_first = false, reads_before = false, reads_maps = false, drops = false;

  /// \throws std::invalid_argument  steps that are chosen by tolerances, or options out of range
  template <class Model>
  BatchFlowLayer(const Model& model, const BatchLayerSetting<Executor, S>& of)
      : graph_(of.graph),
        shape_(of.shape),
        function_{of.activation, model.options().negate_inside ? S(-1) : S(1)},
        mixing_(of.layout.layers[of.number], of.parameters, of.shape, of.batch, of.sums) {
    const BatchSize& batch = of.batch;
    const layers::FlowIntegration steps = sheafnn::detail::checked_for<S>(model.options().integration());
    require(steps.method != FlowMethod::dormand_prince, "method", to_string(steps.method),
            "its steps depend on the features, but a batch needs equal steps. Choose runge-kutta or euler, or "
            "train the models one by one");
    method_ = sheafnn::detail::tableau(steps.method);
    h_ = static_cast<S>(steps.equal_step());
    steps_ = steps.fixed_steps;
    for (int i = 0; i < method_.stages; ++i) slopes_.push_back(of.features(batch.instances()));
    for (Array<Executor, S>& turn : turns_) turn = of.features(batch.instances());
    if (batch.trains()) states_ = of.features(batch.training_instances() * steps_);
    const auto add_step = [&](Index instances) {
      for (int i = 0; i < method_.stages; ++i) {
        Stage& stage = stages_.emplace_back();
        if (i > 0) stage.x = of.features(instances);
        if (mixing_.has_right()) stage.product = of.features(instances);
        if (mixing_.has_left()) stage.mixed = of.features(instances);
        stage.scaled = of.features(instances);
        stage.diffused = of.features(instances);
      }
    };
    add_step(batch.instances());
    if (!batch.trains()) return;
    constexpr Index arrays = 5;  // of a stage
    const Index of_step =
        method_.stages * arrays * static_cast<Index>(sizeof(S)) * batch.training_copies * of.shape.size();
    kept_ = std::min(steps_, static_cast<Index>(layers::flow_stage_memory) / std::max<Index>(of_step, 1));
    for (Index k = 0; k < kept_; ++k) add_step(batch.training_instances());
  }

  /// X(T).
  [[nodiscard]] const S* output() const noexcept { return end_; }
  /// There is no dropout in a flow.
  [[nodiscard]] S* dropped_input() const noexcept { return nullptr; }
  /// It shares no launches.
  [[nodiscard]] BatchDiffusionLayer<Executor, Family, S>* diffusion() const noexcept { return nullptr; }
  template <class Use>
  decltype(auto) with(const Use& use) {
    return use(*this);
  }

  /// See BatchDiffusionLayer. \param x  X(0)
  bool forward(const Call& call, const S* x, const S*, bool, S*) {
    start_ = x;
    for (Index k = 0; k < steps_; ++k) step(call, k);
    end_ = state(call.pass, steps_);
    return false;
  }

  /// See BatchDiffusionLayer; \param x_bar  of X(T), becomes the derivative of X(0)
  template <class... Ready>
  void backward(const Call& call, bool add, S* x_bar, const Ready&... ready) {
    last_ = {};
    bool begun = false;
    const auto stage_bar = [&](int l) { return slopes_[static_cast<std::size_t>(l)].data(); };
    auto& side = call.scratch.of(0);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *w_bar = call.scratch.w_bar.data();
    S* const y_bar = side.y_bar.data();
    const S *left = mixing_.left(call.parameters), *right = mixing_.right(call.parameters);
    const Index instances = call.pass.instances(), items = shape_.items();
    const auto launch = [&](const auto&... parts) {  // with the products of the stage before
      call.executor.launch_together(last_.left, last_.right, parts...);
      last_.left.items = last_.right.items = 0;
    };
    for (Index k = steps_; k-- > 0;) {
      if (k >= kept_) {
        launch();
        step(call, k);
      }
      for (int i = method_.stages; i-- > 0;) {
        const Stage& here = stage(call.pass, k, i);
        const S* x = i == 0 ? state(call.pass, k) : here.x.data();
        const S* between = mixing_.has_right() ? here.product.data() : x;
        const S* y = mixing_.has_left() ? here.mixed.data() : between;
        const Items first{
            items, instances,
            StageBackward<Family, S>{{graph_, call.range, call.sheaf.view(), shape_, function_.activation,
                                      here.diffused.data(), nullptr, z_bar, r_bar},
                                     function_,
                                     sheafnn::detail::slope_bar_sum<S>(method_, static_cast<double>(h_), i, x_bar,
                                                                       stage_bar)}};
        if (begun) {
          launch(first);
        } else {
          launch(first, ready...);
        }
        launch_diffusion(call.executor, instances,
                         DiffuseBackward<Family, S>{{diffusion_of(call, r_bar)}, w_bar, y_bar});
        const Items mix{items, instances,
                        StageMixBackward<Family, S>{{shape_, call.runs, call.pass, 0, false, right, left, nullptr,
                                                     call.parameters.stride, y_bar, side.p_bar.data(), nullptr},
                                                    stage_bar(i),
                                                    sheafnn::detail::start_bar_sum<S>(method_, stage_bar),
                                                    i == 0 ? x_bar : nullptr}};
        if constexpr (sheaf::is_learned<Family>) {
          if (call.sheaf.learned()) {
            launch_block_gradients<Family>(call.executor, instances, graph_, call.range, shape_,
                                           StackedFeatures<S>{y},
                                           DiffusionArrays<S>{here.scaled.data(), here.diffused.data(), z_bar,
                                                              r_bar, w_bar},
                                           call.sheaf.gradient(), add || begun, 1, 0, mix);
          } else {
            call.executor.launch_together(mix);
          }
        } else {
          call.executor.launch_together(mix);
        }
        last_ = mixing_.products(call.pass, shape_, call.parameters, side, between, x);
        last_.left.kernel.add = last_.right.kernel.add = begun;
        begun = true;
      }
    }
  }

  /// After backward(): the sums of the first stage, which are left. See BatchDiffusionLayer.
  [[nodiscard]] LayerProducts<S> products(const Pass&, const ParameterView<S>&,
                                          const LayerScratch<Executor, S>&) const {
    return last_;
  }

 private:
  /// X_i, but for the first stage, X_i Bᵀ, Y = (I ⊗ A) X_i Bᵀ, W = S Y and R = L W.
  struct Stage {
    Array<Executor, S> x, product, mixed, scaled, diffused;
  };

  /// Stage i of step k: a separate array, or one array for all steps that keep no stages.
  [[nodiscard]] Stage& stage(const Pass& pass, Index k, int i) {
    const Index before = pass.training && k < kept_ ? k + 1 : 0;
    return stages_[static_cast<std::size_t>(before * method_.stages + i)];
  }
  /// X at the beginning of step k: in evaluations one of two arrays in turn.
  [[nodiscard]] const S* state(const Pass& pass, Index k) { return k == 0 ? start_ : state_after(pass, k - 1); }
  [[nodiscard]] S* state_after(const Pass& pass, Index k) {
    return pass.training ? states_.data() + k * pass.instances() * shape_.size() : turns_[k % 2].data();
  }
  [[nodiscard]] Diffusion<Family, S> diffusion_of(const Call& call, const S* features) const {
    return begin_diffusion(call.executor, call.pass.instances(), graph_, call.range, call.sheaf.view(), shape_,
                           features, call.scratch.segments.data());
  }

  /// The stages of step k, and X at its end.
  void step(const Call& call, Index k) {
    const auto slope = [&](int j) { return slopes_[static_cast<std::size_t>(j)].data(); };
    const S* const start = state(call.pass, k);
    for (int i = 0; i < method_.stages; ++i) {
      Stage& here = stage(call.pass, k, i);
      call.executor.launch(shape_.items(), call.pass.instances(),
                           MixForward<Family, S>{{graph_, call.range, call.sheaf.view()}, shape_, call.pass.copies,
                                                 call.right.layer(0), call.right.run_stride(),
                                                 mixing_.left(call.parameters), call.parameters.stride,
                                                 i == 0 ? start : here.x.data(), here.product.data(),
                                                 here.mixed.data(), here.scaled.data()});
      const bool last = i + 1 == method_.stages;
      launch_diffusion(call.executor, call.pass.instances(),
                       DiffuseForward<Family, S, StageOutput<S>>{
                           {diffusion_of(call, here.scaled.data())},
                           here.diffused.data(),
                           {function_, slope(i),
                            sheafnn::detail::stage_sum<S>(method_, static_cast<double>(h_), i + 1, slope), start,
                            last ? state_after(call.pass, k) : stage(call.pass, k, i + 1).x.data()}});
    }
  }

  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  kernels::FlowSlope<S> function_;
  MixingWeights<S> mixing_;
  sheafnn::detail::RungeKuttaTableau method_;
  S h_ = 0;
  Index steps_ = 0, kept_ = 0;              ///< all steps, and the steps that keep their stages
  std::vector<Stage> stages_;               ///< shared ones, then one set for each step that keeps them
  std::vector<Array<Executor, S>> slopes_;  ///< K_i, or X̄_i
  Array<Executor, S> states_;               ///< X after each step of a training pass
  Array<Executor, S> turns_[2];             ///< the same for an evaluation, alternating
  const S *start_ = nullptr, *end_ = nullptr;
  LayerProducts<S> last_{};  ///< of the last stage that the backward pass reached
};

/// See network_parts.hpp.
template <class Executor, class Model>
  requires std::same_as<typename Model::Options, FlowOptions>
struct ModelLayers<Executor, Model> {
  using Layer = BatchFlowLayer<Executor, typename Model::Family, typename Model::Scalar>;
  [[nodiscard]] static ModelOptions options(const Model& model) {
    return sheafnn::detail::one_layer(model.options());
  }
};

}  // namespace sheafnn::batch::detail
