/// \file
/// BatchDiffusionLayer: a diffusion layer of all instances of a batch, with a filter or an initial residual if the model
/// has one (formulas: diffusion_kernels.hpp, polynomial_kernels.hpp, initial_residual_kernels.hpp).
#pragma once

#include <utility>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/diffusion_kernels.hpp"
#include "sheafnn/batch/diffusion_mixing_kernel.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/initial_residual_layer.hpp"
#include "sheafnn/batch/layer_call.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/polynomial_layer.hpp"
#include "sheafnn/batch/right_transposes.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/bsnn/model_layout.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"

namespace sheafnn::batch::detail {

/// One layer; what its backward pass needs stays in its own arrays.
template <class Executor, class Family, class S>
class BatchDiffusionLayer {
 public:
  static constexpr bool reads_first = false;  ///< a layer with an initial residual adds to X̄₁ by itself
  static constexpr bool reads_before = false, reads_maps = false;

  explicit BatchDiffusionLayer(const BatchLayerSetting<Executor, S>& of)
      : graph_(of.graph),
        shape_(of.shape),
        filter_(&of.filter),
        number_(static_cast<std::uint32_t>(of.number)),
        activation_(of.activation),
        mixing_(of, of.residual.initial() ? of.residual.beta(static_cast<Index>(of.number)) : 1,
                of.residual.initial()) {
    const auto& [number, executor, graph, shape, layout, activation, left_weights, right_weights, filter, residual,
                 attention, directed, parameters, batch, dropout, sums, kl_rows] = of;
    const layers::DiffusionWeights<layers::ParameterSlot>& layer = layout.layers[number];
    const auto array = [&of] { return of.features(of.batch.instances()); };
    epsilon_ = layer.epsilon >= 0 ? parameters.info(layer.epsilon).offset : Index{-1};
    initial_ = BatchInitialResidual<Executor, Family, S>(executor, residual, static_cast<Index>(number),
                                                         static_cast<Index>(layout.layers.size()), graph, shape,
                                                         layer.right >= 0, batch);
    if (filter.active()) {
      filtered_ = BatchFilterLayer<Executor, Family, S>(executor, filter, graph, shape, batch);
    } else {
      scaled_ = array();
      if (sheaf::is_learned<Family> || !initial_.active()) diffused_ = array();
    }
    output_ = array();
    const Index d = shape.coordinates, f = shape.channels;
    const RowChunks nodes{shape.nodes * batch.training_copies};
    // Sums run over the copies of a run, which lie one after another.
    if (epsilon_ >= 0) {
      epsilon_sums_ = sums.reserve(nodes.count(), d * f);
      sums.assign(epsilon_, d, epsilon_sums_, nodes.count(), d * f, f, true);
    }
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return mixing_.dropped_input(); }

  /// Begun: its mixing is done.
  ///
  /// \param x      n × d' × f per instance; stays in place until backward()
  /// \param first  the same for the first layer; only an initial residual reads it
  /// \param drop   dropped_input() holds dropout(x)
  /// \param next   the next layer's dropped_input(), to be filled; null at the last layer and without dropout
  /// \returns has it gone on with the next layer?
  bool forward(const BatchLayerCall<Executor, Family, S>& call, const S* x, const S* first, bool drop, S* next) {
    const auto& [executor, runs, pass, parameters, right, sheaf, range, scratch, mixed, above, above_range, before,
                 kl, kl_stride] = call;
    if (!mixed) {
      executor.launch(shape_.items(), pass.instances(), mixing(call, range, x, drop));
    }
    const LayerOutput<S> output{weights(parameters, epsilon_),
                                parameters.stride,
                                activation_,
                                x,
                                output_.data(),
                                runs,
                                pass,
                                number_ + 1,
                                next};
    if (filter_->active()) {
      filtered_.forward(executor, pass, range, sheaf.view(), output, mixing_.y(), scratch);
      return false;
    }
    const Diffusion<Family, S> diffusion = diffusion_of(executor, pass, sheaf, range, scaled_.data(), scratch);
    if (initial_.active()) {
      MixForward<Family, S> next_mixing{};
      if (above != nullptr) {
        next_mixing = above->mixing(call, above_range, output_.data(), drop);
      }
      initial_.forward(call, diffusion, mixing_, first, diffused_.data(), output,
                       above != nullptr ? &next_mixing : nullptr);
      mixing_.come_after(initial_.product(), initial_.averaged());
      return above != nullptr;
    }
    const DiffuseForward<Family, S> diffuse{{diffusion}, diffused_.data(), output};
    const int teams = above != nullptr ? above->mixing_teams(executor, pass.instances()) : 0;
    if (teams == 0) {
      launch_diffusion(executor, pass.instances(), diffuse);
      return false;
    }
    launch_diffusion(executor, pass.instances(),
                     DiffuseMixForward<Family, S>{diffuse,
                                                  above->mixing(call, above_range, output_.data(), drop), teams});
    return true;
  }

  /// Begins the backward pass of the last layer from the derivative of a few logits, in place of the derivative of output().
  void enter(const BatchLayerCall<Executor, Family, S>& call, const LogitsBar<S>& logits, S* x_bar) const {
    call.executor.launch(shape_.items(), call.pass.instances(),
                         EnterLayers<Family, S>{logits, call.pass,
                                                first_step(call.sheaf, call.range, x_bar, call.scratch), x_bar});
  }
  /// Replaces the derivative of output() by the derivative of the input. Partial sums of ε's gradient, if there is an ε, go
  /// to the arena (for A and B: products()). Derivatives of the sheaf's blocks go to the sheaf. Begun: its first step is
  /// done.
  ///
  /// \param add    add to the sheaf's derivatives instead of setting them
  /// \param ready  parts that share the first launch: they must not write what the layer reads or writes
  template <class... Ready>
  void backward(const BatchLayerCall<Executor, Family, S>& call, bool add, S* x_bar, const Ready&... ready) {
    const auto& [executor, runs, pass, parameters, transposes, sheaf, range, scratch, entered, below, below_range,
                 before, kl, kl_stride] = call;
    const Index f = shape_.channels, d = shape_.coordinates, items = shape_.items();
    const Index instances = pass.instances(), run_size = pass.copies * shape_.size();
    const RowChunks nodes{shape_.nodes * pass.copies};
    auto& side = scratch.of(number_);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *y_bar = side.y_bar.data();
    const CoordinateProducts<S> sums{
        input_, x_bar, run_size, d, f, nodes, true, parameters.arena + epsilon_sums_, parameters.arena_stride};
    const Items gains{sums.items(), pass.runs, sums};  // not launched with an initial residual
    const bool filtered = filter_->active();
    if (initial_.active()) {
      InitialActivationBackward<Family, S> start = initial_step(x_bar, scratch), next{};
      if (below != nullptr) next = below->initial_step(x_bar, scratch);
      initial_.backward(call, mixing_, entered ? nullptr : &start, below != nullptr ? &next : nullptr, x_bar,
                        ready...);
    } else if (filtered) {
      filtered_.backward(executor, pass, range, sheaf.view(), activation_, x_bar, scratch, ready..., gains);
    } else {
      if (!entered) {
        executor.launch_together(ready..., gains,
                                 Items{items, instances, first_step(sheaf, range, x_bar, scratch)});
      }
      const Diffusion<Family, S> diffusion = diffusion_of(executor, pass, sheaf, range, r_bar, scratch);
      const DiffuseBackward<Family, S> diffuse{{diffusion}, scratch.w_bar.data(), y_bar};
      if (entered) {
        launch_diffusion(executor, instances, diffuse, ready..., gains);
      } else {
        launch_diffusion(executor, instances, diffuse);
      }
    }
    Items mix{initial_.active() ? 0 : items, instances, mixing_.template backward<Family>(call, x_bar)};
    mix.kernel.epsilon = weights(parameters, epsilon_);
    mix.kernel.skip = filter_->input_skip();
    mix.kernel.skip_stride = filter_->weight_stride();
    mix.kernel.g = scratch.g.data();
    if (below != nullptr && !initial_.active()) {
      mix.kernel.go_on = true;
      mix.kernel.below = below->first_step(sheaf, below_range, x_bar, scratch);
    }
    const StackedFeatures<S> y = filtered ? filtered_.terms() : StackedFeatures<S>{mixing_.y()};
    const auto coefficients =
        filter_->products(pass, parameters, shape_, number_, scratch.g.data(), y, filtered_.high_pass());
    if constexpr (sheaf::is_learned<Family>) {
      if (!sheaf.learned()) return executor.launch_together(mix, coefficients);
      const DiffusionArrays<S> arrays{filtered ? std::as_const(filtered_).scaled() : scaled_.data(),
                                      filtered ? filtered_.diffused() : diffused_.data(), z_bar, r_bar,
                                      scratch.w_bar.data()};
      launch_block_gradients<Family>(executor, instances, graph_, range, shape_, y, arrays, sheaf.gradient(), add,
                                     filter_->steps(), filtered_.stride(), mix, coefficients);
    } else {
      executor.launch_together(mix, coefficients);
    }
  }

  /// After backward(): partial sums for A and B. To be launched before the layer's side of the scratch is written again. The
  /// first launch of the next layer's backward() may run at the same time.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return mixing_.products(pass, parameters, scratch);
  }

 private:
  /// Weights of run 0 at an offset of the parameters; null: there are no weights.
  [[nodiscard]] static const S* weights(const ParameterView<S>& parameters, Index offset) noexcept {
    return offset >= 0 ? parameters.value + offset : nullptr;
  }
  /// The layer's first kernel, from its input: with an initial residual W only. \param x, drop  see forward()
  [[nodiscard]] MixForward<Family, S> mixing(const BatchLayerCall<Executor, Family, S>& call,
                                             const SheafRange& range, const S* x, bool drop) {
    input_ = x;
    mixing_.begin(x, drop);
    return mixing_.template forward<Family>(call, SheafScaling<Family, S>{graph_, range, call.sheaf.view()},
                                            filter_->active() ? filtered_.scaled() : scaled_.data());
  }
  /// Teams of a bundle, if the layer below may continue with this one's mixing; else 0. It may on small graphs, if a warp is
  /// enough for the tiles of a node with as many lanes as its arcs want. Nodes of high degree want eight lanes, others four.
  [[nodiscard]] int mixing_teams(const Executor& executor, Index instances) const {
    const Index tiles = mixing_.weights().has_right() ? Index{shape_.tiles} : 1,
                most = max_lanes / (graph_.crowded > 0 ? 8 : 4);
    const bool small = graph_.segments == 0 && shape_.items() * instances <= GraphView<S>::enough_threads;
    const bool fits = shape_.channels % 4 == 0 && tiles <= most && (tiles & (tiles - 1)) == 0;
    return executor.exchanges && small && fits ? static_cast<int>(tiles) : 0;
  }
  /// The first step of the backward pass with an initial residual.
  [[nodiscard]] InitialActivationBackward<Family, S> initial_step(const S* x_bar,
                                                                  LayerScratch<Executor, S>& scratch) const {
    return initial_.first_step(activation_, output(), x_bar, scratch);
  }
  /// That without one and without a filter.
  [[nodiscard]] ActivationBackward<Family, S> first_step(BatchSheaf<Executor, Family, S>& sheaf,
                                                         const SheafRange& range, const S* x_bar,
                                                         LayerScratch<Executor, S>& scratch) const {
    auto& side = scratch.of(number_);
    return {graph_,           range, sheaf.view(),      shape_,           activation_,
            diffused_.data(), x_bar, side.z_bar.data(), side.r_bar.data()};
  }
  [[nodiscard]] Diffusion<Family, S> diffusion_of(Executor& executor, const Pass& pass,
                                                  BatchSheaf<Executor, Family, S>& sheaf, const SheafRange& range,
                                                  const S* features, LayerScratch<Executor, S>& scratch) const {
    return begin_diffusion(executor, pass.instances(), graph_, range, sheaf.view(), shape_, features,
                           scratch.segments.data());
  }

  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  const BatchFilter<Executor, S>* filter_ = nullptr;
  BatchFilterLayer<Executor, Family, S> filtered_;  ///< with a filter, in place of scaled_ and diffused_
  BatchInitialResidual<Executor, Family, S> initial_;
  std::uint32_t number_ = 0;
  bool activation_ = true;
  Index epsilon_ = -1, epsilon_sums_ = 0;
  BatchMixing<Executor, S> mixing_;
  Array<Executor, S> scaled_;    ///< W = S Y; with an initial residual S X̃
  Array<Executor, S> diffused_;  ///< R = L W
  Array<Executor, S> output_;
  const S* input_ = nullptr;
};

}  // namespace sheafnn::batch::detail
