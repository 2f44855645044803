/// \file
/// BatchDirectedLayer: a directed layer of all instances of a batch (formulas: directed_kernels.hpp, directed_phases.hpp; for one
/// network layers/directed_layer.hpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "sheafnn/batch/block_gradient_kernels.hpp"
#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/directed_kernels.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchDiffusionLayer; no other layer shares its launches.
template <class Executor, class Family, class S>
class BatchDirectedLayer {
  using Call = BatchLayerCall<Executor, Family, S>;
  using Numbers = Array<Executor, S>;
  using Weights = layers::DiffusionWeights<layers::ParameterSlot>;

 public:
  static constexpr bool reads_first = false, reads_before = false, reads_maps = false;

  /// \throws std::invalid_argument  fixed filters, 2³¹ phases or more
  explicit BatchDirectedLayer(const BatchLayerSetting<Executor, S>& of)
      : graph_(of.graph),
        shape_{{of.shape.nodes, 2 * of.shape.coordinates, of.shape.channels / 2, {}}, of.shape},
        end_{of.activation, of.directed.activation},
        own_weights_(of.directed.imaginary_weights),
        random_(of.directed.random),
        number_(static_cast<std::uint32_t>(of.number)) {
    layers::require_no_filters(of.shape.coordinates - Family::stalk_dimension, layers::LayerForm::directed);
    const BatchSize& batch = of.batch;
    const Index all = batch.instances(), training = batch.training_instances();
    const double angle = 2 * std::numbers::pi * of.directed.charge;
    cosine_ = static_cast<S>(std::cos(angle));
    sine_ = static_cast<S>(std::sin(angle));
    find_weights(of);
    if (of.dropout) dropped_ = of.features(training);
    if (right_[0].present()) product_ = of.features(all);
    if (left_[0].present()) mixed_ = of.features(all);
    scaled_ = of.features(all);
    diffused_ = of.features(all);
    output_ = of.features(all);
    if (random_) {
      require_countable("phases of the copies of a run", batch.copies * graph_.edges);
      drawn_ = Numbers(of.executor, "layers", all * 2 * graph_.edges);
      angle_bar_ = Numbers(of.executor, "layers", training * graph_.edges);
      kl_ = of.kl_rows.reserve(1);
    }
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const Call& call, const S* x, const S*, bool drop, S* next) {
    const Pass& pass = call.pass;
    const ParameterView<S>& parameters = call.parameters;
    const Index instances = pass.instances();
    drop_ = drop;
    input_ = x;
    kept_ = drop ? dropped_.data() : x;
    between_ = right_[0].present() ? product_.data() : kept_;
    y_ = left_[0].present() ? mixed_.data() : between_;
    const PhaseConcentration<S> concentration = this->concentration(parameters);
    call.executor.launch_together(transposes_.transpose(parameters),
                                  Items{random_ ? graph_.edges : 0, instances,
                                        DrawPhases<S>{graph_, phases(), concentration, call.runs, pass, number_,
                                                      drawn_.data()}},
                                  Items{random_ && pass.keeps() ? Index{1} : Index{0}, pass.runs,
                                        PhaseKl<S>{concentration, call.kl_row(kl_), call.kl_stride}});
    const PartMatrices<S> transposed{transposes_.layer(0), transposes_.layer(own_weights_ ? 1 : 0),
                                     transposes_.run_stride()};
    call.executor.launch(shape_.parts.items(), instances,
                         DirectedMixForward<Family, S>{call.range, call.sheaf.view(), shape_, pass, transposed,
                                                       matrices(parameters, left_), kept_, product_.data(),
                                                       mixed_.data(), scaled_.data()});
    launch_diffusion(call.executor, instances,
                     DirectedForward<Family, S>{{diffusion(call, scaled_.data())},
                                                end_,
                                                parameters.value + epsilon_,
                                                parameters.stride,
                                                x,
                                                diffused_.data(),
                                                {nullptr, 0, false, nullptr, output_.data(), call.runs, pass,
                                                 number_ + 1, next}});
    return false;
  }

  /// See BatchDiffusionLayer.
  template <class... Ready>
  void backward(const Call& call, bool add, S* x_bar, const Ready&... ready) {
    const Pass& pass = call.pass;
    const ParameterView<S>& parameters = call.parameters;
    const Index instances = pass.instances(), items = shape_.parts.items();
    auto& side = call.scratch.of(number_);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *w_bar = call.scratch.w_bar.data();
    S *y_bar = side.y_bar.data(), *p_bar = side.p_bar.data();
    const FeatureShape<S>& whole = shape_.whole;
    const CoordinateProducts<S> gains{input_,
                                      x_bar,
                                      pass.copies * whole.size(),
                                      whole.coordinates,
                                      whole.channels,
                                      {whole.nodes * pass.copies},
                                      true,
                                      parameters.arena + epsilon_sums_,
                                      parameters.arena_stride};
    call.executor.launch_together(ready..., Items{gains.items(), pass.runs, gains},
                                  Items{items, instances,
                                        DirectedEndBackward<Family, S>{call.range, call.sheaf.view(), shape_.parts,
                                                                       end_, diffused_.data(), x_bar, z_bar,
                                                                       r_bar}});
    launch_diffusion(call.executor, instances,
                     DirectedDiffuseBackward<Family, S>{{diffusion(call, r_bar)}, w_bar, y_bar});
    const Items mix{items, instances,
                    DirectedMixBackward<Family, S>{shape_, call.runs, pass, number_, drop_,
                                                   matrices(parameters, right_), matrices(parameters, left_),
                                                   parameters.value + epsilon_, parameters.stride, y_bar, p_bar,
                                                   x_bar}};
    const int lanes = tile_lanes(shape_.parts);
    const Teams edges{call.sheaf.learned() || random_ ? graph_.edges : 0, instances, lanes,
                      DirectedEdgeGradient<Family, S>{graph_, transports(call), shape_.parts, scaled_.data(),
                                                      r_bar,
                                                      call.sheaf.learned() ? call.sheaf.gradient().off_diagonal
                                                                           : nullptr,
                                                      random_ ? angle_bar_.data() : nullptr, add, lanes}};
    if constexpr (sheaf::is_learned<Family>) {
      const int node_lanes = tile_lanes(whole);
      call.executor.launch_together(mix, edges,
                                    Teams{call.sheaf.learned() ? whole.nodes : 0, instances, node_lanes,
                                          NodeGradient<Family, S>{call.range, whole, StackedFeatures<S>{y_},
                                                                  scaled_.data(), diffused_.data(), z_bar, r_bar,
                                                                  w_bar, call.sheaf.gradient(), add, node_lanes}});
    } else {
      call.executor.launch_together(mix, edges);
    }
    launch_sums(call, y_bar, left_[0].present() ? p_bar : y_bar);
  }

  /// See BatchDiffusionLayer; nothing, since backward() has launched them.
  [[nodiscard]] LayerProducts<S> products(const Pass&, const ParameterView<S>&,
                                          const LayerScratch<Executor, S>&) const {
    return {};
  }

 private:
  /// Number of sets of weights: one that both parts share, or one for each part.
  [[nodiscard]] int sets() const noexcept { return own_weights_ ? 2 : 1; }
  [[nodiscard]] RowChunks node_chunks(Index copies) const { return {shape_.whole.nodes * copies}; }
  [[nodiscard]] RowChunks row_chunks(Index copies) const {
    return {node_chunks(copies).rows * shape_.parts.coordinates / sets()};
  }
  [[nodiscard]] RowChunks edge_chunks(Index copies) const { return {graph_.edges * copies}; }
  /// Features of a set of weights.
  [[nodiscard]] FeatureShape<S> set_shape() const {
    return {shape_.whole.nodes, shape_.whole.coordinates, shape_.whole.channels / sets(), {}};
  }

  void find_weights(const BatchLayerSetting<Executor, S>& of) {
    const auto id = [&](const char* name) {
      return of.parameters.find(sheafnn::detail::concat(name, ".", of.number));
    };
    const auto offset = [&](layers::ParameterId of_id) { return of.parameters.info(of_id).offset; };
    epsilon_ = offset(id("eps"));
    if (random_) concentration_ = offset(id("phase.concentration"));
    const BatchSize& batch = of.batch;
    const Index d = shape_.whole.coordinates, f = shape_.parts.channels,
                nodes = node_chunks(batch.training_copies).count();
    epsilon_sums_ = of.sums.reserve(nodes, 2 * d * f);
    of.sums.assign(epsilon_, d, epsilon_sums_, nodes, 2 * d * f, 2 * f, true);
    std::vector<Weights> weights(static_cast<std::size_t>(sets()));
    const char *const left[] = {"left", "imag_left"}, *const right[] = {"right", "imag_right"};
    for (int set = 0; set < sets(); ++set) {
      if (of.left_weights) left_[set] = LeftWeights<S>(id(left[set]), of.parameters, set_shape(), batch, of.sums);
      if (!of.right_weights) continue;
      weights[static_cast<std::size_t>(set)].right = layers::ParameterSlot{id(right[set])};
      right_[set] = RightWeights<S>(id(right[set]), of.parameters, f, row_chunks(batch.training_copies), of.sums);
    }
    transposes_ =
        RightTransposes<Executor, S>(of.executor, weights, of.parameters, shape_.parts.channels, of.batch.runs);
    if (!random_) return;
    const Index chunks = PhaseGradient<S>::count(edge_chunks(batch.training_copies));
    concentration_sums_ = of.sums.reserve(chunks, 1);
    of.sums.assign(concentration_, 1, concentration_sums_, chunks, 1);
  }
  /// Partial sums of the gradients of A, B and κ.
  void launch_sums(const Call& call, const S* y_bar, const S* p_bar) {
    const Pass& pass = call.pass;
    const ParameterView<S>& parameters = call.parameters;
    const Index f = shape_.parts.channels;
    const auto left = [&](int set) {
      return left_[set].products(pass, set_shape(), parameters, y_bar + set * f, between_ + set * f,
                                 &shape_.whole);
    };
    const auto right = [&](int set) {
      return right_[set].products(pass, row_chunks(pass.copies), f * sets(), pass.copies * shape_.whole.size(),
                                  parameters, p_bar + set * f, kept_ + set * f);
    };
    const RowChunks edges = edge_chunks(pass.copies);
    call.executor.launch_together(left(0), left(1), right(0), right(1),
                                  Items{random_ ? PhaseGradient<S>::count(edges) : 0, pass.runs,
                                        PhaseGradient<S>{phases(), concentration(parameters), call.runs,
                                                         pass.copies, graph_.edges, edges, angle_bar_.data(),
                                                         parameters.arena + concentration_sums_,
                                                         parameters.arena_stride}});
  }

  [[nodiscard]] PhaseView<S> phases() const noexcept {
    return {graph_.direction, graph_.edges, cosine_, sine_, random_ ? drawn_.data() : nullptr};
  }
  [[nodiscard]] PhaseConcentration<S> concentration(const ParameterView<S>& parameters) const noexcept {
    return {parameters.value + concentration_, parameters.stride};
  }
  /// Matrices of the two parts, of one or two sets.
  template <class Of>
  [[nodiscard]] PartMatrices<S> matrices(const ParameterView<S>& parameters, const Of (&of)[2]) const noexcept {
    return {of[0].of(parameters), of[own_weights_ ? 1 : 0].of(parameters), parameters.stride};
  }
  [[nodiscard]] TurnedTransports<Family, S> transports(const Call& call) const {
    return {{call.range, call.sheaf.view()}, phases()};
  }
  [[nodiscard]] DirectedDiffusion<Family, S> diffusion(const Call& call, const S* features) const {
    return {begin_sums(call.executor, call.pass.instances(), graph_, transports(call), shape_.parts, features,
                       call.scratch.segments.data())};
  }

  GraphView<S> graph_{};
  PartShapes<S> shape_;
  kernels::DirectedEnd end_;
  bool own_weights_, random_, drop_ = false;
  std::uint32_t number_ = 0;
  S cosine_, sine_;  ///< of the phase along the direction of an arc
  LeftWeights<S> left_[2];                 ///< A and, of an imaginary part with weights of its own, A'
  RightWeights<S> right_[2];               ///< B and B'
  Index epsilon_ = 0, concentration_ = 0;  ///< offsets among the parameters
  Index epsilon_sums_ = 0, concentration_sums_ = 0, kl_ = 0;
  RightTransposes<Executor, S> transposes_;
  Numbers dropped_;   ///< X after dropout
  Numbers product_;   ///< X̃ Bᵀ
  Numbers mixed_;     ///< Y
  Numbers scaled_;    ///< W = S Y
  Numbers diffused_;  ///< R = L W
  Numbers output_;
  Numbers drawn_, angle_bar_;  ///< random phases of all edges, and the derivatives of their angles
  const S *input_ = nullptr, *kept_ = nullptr, *between_ = nullptr, *y_ = nullptr;  ///< X, X̃, X̃ Bᵀ and Y
};

}  // namespace sheafnn::batch::detail
