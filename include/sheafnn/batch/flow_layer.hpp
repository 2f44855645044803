/// \file
/// BatchFlowLayer: the flow of all instances of a batch, X(0) ↦ X(T), in place of a network's layers. Formulas:
/// flow_kernels.hpp; steps that tolerances choose: flow_control.hpp; for one network: layers/flow_layer.hpp. With it BatchNetwork
/// takes FlowModel.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/flow_control.hpp"
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
/// If tolerances choose the steps, it computes all stages again: an instance whose step was rejected has other stages then, of
/// length 0.
template <class Executor, class Family, class S>
class BatchFlowLayer {
  using Call = BatchLayerCall<Executor, Family, S>;

 public:
  static constexpr bool reads_first = false, reads_before = false, reads_maps = false, drops = false;

  /// \throws std::invalid_argument  options out of range
  template <class Model>
  BatchFlowLayer(const Model& model, const BatchLayerSetting<Executor, S>& of)
      : graph_(of.graph),
        shape_(of.shape),
        function_{of.activation, model.options().negate_inside ? S(-1) : S(1)},
        mixing_(of.layout.layers[of.number], of.parameters, of.shape, of.batch, of.sums) {
    const BatchSize& batch = of.batch;
    const layers::FlowIntegration steps = sheafnn::detail::checked_for<S>(model.options().integration());
    const bool chosen = steps.method == FlowMethod::dormand_prince;
    method_ = sheafnn::detail::tableau(steps.method);
    if (chosen) {
      control_.emplace(of.executor, steps, of.shape.size(), batch.instances());
      state_ = [&executor = of.executor, size = batch.training_instances() * of.shape.size()] {
        return Array<Executor, S>(executor, "layers", size);
      };
    } else {
      h_ = static_cast<S>(steps.equal_step());
      steps_ = steps.fixed_steps;
    }
    for (int i = 0; i < method_.stages + (chosen ? 1 : 0); ++i) slopes_.push_back(of.features(batch.instances()));
    for (Array<Executor, S>& turn : turns_) turn = of.features(batch.instances());
    for (Index k = 0; batch.trains() && k < steps_; ++k)
      states_.push_back(of.features(batch.training_instances()));
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
    if (!batch.trains() || chosen) return;
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
  /// \throws FlowError  tolerances that ask for more than max_steps steps
  bool forward(const Call& call, const S* x, const S*, bool, S*) {
    start_ = x;
    if (control_) {
      choose_steps(call);
    } else {
      for (Index k = 0; k < steps_; ++k) step(call, k, nullptr);
    }
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
        step(call, k, sizes_of(k));
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
                                     sheafnn::detail::slope_bar_sum<S>(method_, unit(), i, x_bar, stage_bar),
                                     sizes_of(k)}};
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
  /// X_i, except for the first stage, X_i Bᵀ, Y = (I ⊗ A) X_i Bᵀ, W = S Y and R = L W.
  struct Stage {
    Array<Executor, S> x, product, mixed, scaled, diffused;
  };

  /// Stage i of step k: a separate array, or one array for all steps that keep no stages.
  [[nodiscard]] Stage& stage(const Pass& pass, Index k, int i) {
    const Index before = pass.keeps() && k < kept_ ? k + 1 : 0;
    return stages_[static_cast<std::size_t>(before * method_.stages + i)];
  }
  /// X at the beginning of step k: in evaluations one of two arrays in turn.
  [[nodiscard]] const S* state(const Pass& pass, Index k) { return k == 0 ? start_ : state_after(pass, k - 1); }
  [[nodiscard]] S* state_after(const Pass& pass, Index k) {
    return pass.keeps() ? states_[static_cast<std::size_t>(k)].data() : turns_[k % 2].data();
  }
  [[nodiscard]] Diffusion<Family, S> diffusion_of(const Call& call, const S* features) const {
    return begin_diffusion(call.executor, call.pass.instances(), graph_, call.range, call.sheaf.view(), shape_,
                           features, call.scratch.segments.data());
  }

  /// What the factors of a step are multiples of: its length, or 1 where every instance has a length of its own.
  [[nodiscard]] double unit() const noexcept { return control_ ? 1.0 : static_cast<double>(h_); }
  /// The lengths of step k of every instance; null: all are equal.
  [[nodiscard]] const S* sizes_of(Index k) const noexcept {
    return control_ ? chosen_[static_cast<std::size_t>(k)].data() : nullptr;
  }
  [[nodiscard]] S* slope(int i) noexcept { return slopes_[static_cast<std::size_t>(i)].data(); }

  /// The stages of step k, and X at its end. \param sizes  lengths of every instance; null: all are equal
  void step(const Call& call, Index k, const S* sizes) {
    const S* const start = state(call.pass, k);
    for (int i = 0; i < method_.stages; ++i) {
      const bool last = i + 1 == method_.stages;
      Stage& here = stage(call.pass, k, i);
      evaluate(call, here, i == 0 ? start : here.x.data(), slope(i),
               sheafnn::detail::stage_sum<S>(method_, unit(), i + 1, [&](int j) { return slope(j); }), sizes,
               start, last ? state_after(call.pass, k) : stage(call.pass, k, i + 1).x.data());
    }
  }
  /// K = f(at), and start + sum in `next`; null: nothing follows K.
  void evaluate(const Call& call, Stage& here, const S* at, S* k, const kernels::StageSum<S>& sum, const S* sizes,
                const S* start, S* next) {
    call.executor.launch(shape_.items(), call.pass.instances(),
                         MixForward<Family, S>{{graph_, call.range, call.sheaf.view()},
                                               shape_,
                                               call.pass.copies,
                                               call.right.layer(0),
                                               call.right.run_stride(),
                                               mixing_.left(call.parameters),
                                               call.parameters.stride,
                                               at,
                                               here.product.data(),
                                               here.mixed.data(),
                                               here.scaled.data()});
    launch_diffusion(call.executor, call.pass.instances(),
                     DiffuseForward<Family, S, StageOutput<S>>{{diffusion_of(call, here.scaled.data())},
                                                               here.diffused.data(),
                                                               {function_, k, sum, sizes, start, next}});
  }
  /// Steps of all instances until all are at T. The steps that any instance accepts are kept.
  void choose_steps(const Call& call) {
    const Index instances = call.pass.instances();
    control_->begin(call.executor, instances, start_);
    steps_ = 0;
    while (!control_->ended()) {
      const S* const tried = control_->propose();
      if (call.pass.keeps() && static_cast<Index>(states_.size()) == steps_) states_.push_back(state_());
      step(call, steps_, tried);
      const S* const x = state(call.pass, steps_);
      S* const next = state_after(call.pass, steps_);
      Stage& last = stage(call.pass, steps_, 0);  // of which nothing is read any more
      evaluate(call, last, next, slope(method_.stages), {}, tried, x, nullptr);
      if (!control_->decide(call.executor, x, slope(0),
                            sheafnn::detail::error_sum<S>(method_, [&](int j) { return slope(j); }))) {
        continue;
      }
      call.executor.launch(shape_.size(), instances, StayInPlace<S>{shape_.size(), control_->accepted(), x, next});
      if (call.pass.keeps()) keep_sizes(call.executor);
      ++steps_;
    }
  }
  /// Keeps the sizes of step steps_.
  void keep_sizes(Executor& executor) {
    const std::vector<S>& sizes = control_->accepted_sizes();
    if (static_cast<Index>(chosen_.size()) == steps_) {
      chosen_.emplace_back(executor, "layers", static_cast<Index>(sizes.size()));
    }
    chosen_[static_cast<std::size_t>(steps_)].upload(sizes);
  }

  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  kernels::FlowSlope<S> function_;
  MixingWeights<S> mixing_;
  sheafnn::detail::RungeKuttaTableau method_;
  S h_ = 0;
  Index steps_ = 0, kept_ = 0;              ///< all steps, and the steps that keep their stages
  std::vector<Stage> stages_;               ///< shared ones, then one set for each step that keeps them
  std::vector<Array<Executor, S>> slopes_;  ///< K_i, or X̄_i; of chosen steps also f(X⁺)
  std::vector<Array<Executor, S>> states_;  ///< X after each step of a training pass
  Array<Executor, S> turns_[2];             ///< the same for an evaluation, alternating
  std::optional<FlowControl<Executor, S>> control_;  ///< of steps that tolerances choose
  std::function<Array<Executor, S>()> state_;        ///< one more of states_
  std::vector<Array<Executor, S>> chosen_;           ///< lengths of every step of a training pass, by instance
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
  /// Is a pass one sequence of launches that does not depend on their results?
  [[nodiscard]] static bool recordable(const Model& model) {
    return model.options().method != FlowMethod::dormand_prince;
  }
};

}  // namespace sheafnn::batch::detail
