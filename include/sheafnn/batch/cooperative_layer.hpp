/// \file
/// BatchCooperativeLayer: a cooperative layer of all instances of a batch with its node maps,
///
///     X' = (1 + tanh ε) ∘ X − act(dropout(Δ_inᵀ Δ_out (I ⊗ A) X Bᵀ)),   n × D × f per instance,
///
/// with its backward pass (kernels: cooperative_kernels.hpp; for one network layers/cooperative_layer.hpp).
#pragma once

#include <cstdint>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/cooperative_kernels.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/right_transposes.hpp"
#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/sheaf/families/conformal.hpp"

namespace sheafnn::batch::detail {

/// Arrays that the layers share, since only one of them works at a time.
template <class Executor, class S>
struct CooperativeScratch {
  Array<Executor, S> sent, sent_on;  ///< by the two operators; backwards what they return
  Array<Executor, S> z_bar, first_bar, y_bar, p_bar, w[2];
  Array<Executor, S> segments;  ///< partial sums of high-degree nodes, segments × D × f per instance

  CooperativeScratch() = default;
  CooperativeScratch(Executor& executor, Index size, Index segment_size, const BatchSize& batch) {
    const auto array = [&](Index numbers) { return Array<Executor, S>(executor, "layers", numbers); };
    for (Array<Executor, S>* one : {&sent, &sent_on}) *one = array(batch.instances() * size);
    for (Array<Executor, S>* one : {&z_bar, &first_bar, &y_bar, &p_bar, &w[0], &w[1]})
      *one = array(batch.training_instances() * size);
    segments = array(batch.instances() * segment_size);
  }
};

/// What a layer gets in a pass.
template <class Executor, class S>
struct CooperativeCall {
  Executor& executor;
  const Run* runs;
  Pass pass;
  ParameterView<S> parameters;
  const RightTransposes<Executor, S>& right;
  CooperativeScratch<Executor, S>& scratch;
};

/// One layer; what its backward pass needs stays in its own arrays.
template <class Executor, int D, class S>
class BatchCooperativeLayer {
 public:
  using Call = CooperativeCall<Executor, S>;

  /// \param maps  to be filled before forward()
  BatchCooperativeLayer(Executor& executor, const ArcViews<S>& arcs, const FeatureShape<S>& shape,
                        const NodeMapView<D, S>& maps, const layers::DiffusionWeights<layers::ParameterSlot>& at,
                        const CooperativeOptions& options, Index number, const layers::ParameterSet<S>& parameters,
                        const BatchSize& batch, bool dropout, PartialSums& sums)
      : arcs_(arcs),
        shape_(shape),
        number_(static_cast<std::uint32_t>(number)),
        activation_(options.activation),
        sign_(options.residual || options.negate_diffused ? S(-1) : S(1)),
        weights_(at, parameters, shape, batch, sums),
        maps_(maps) {
    if (at.epsilon >= 0) {
      const RowChunks nodes{shape.nodes * batch.training_copies};
      epsilon_ = parameters.info(at.epsilon).offset;
      epsilon_sums_ = sums.reserve(nodes.count(), shape.row());
      sums.assign(epsilon_, D, epsilon_sums_, nodes.count(), shape.row(), shape.channels, true);
    }
    const Index all = batch.instances() * shape.size(), training = batch.training_instances() * shape.size();
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "layers", size); };
    if (dropout) dropped_ = array(training);
    if (weights_.has_right()) product_ = array(all);
    if (weights_.has_left()) mixed_ = array(all);
    first_ = array(all);
    output_ = array(all);
    for (Array<Executor, S>* one : {&sum_[0], &sum_[1], &slope_}) *one = array(training);
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }
  [[nodiscard]] const NodeMapView<D, S>& maps() const noexcept { return maps_; }

  /// \param x     n × D × f per instance, after dropout; stays in place until backward()
  /// \param drop  has z dropout?
  /// \param next  the next layer's dropped_input(), to be filled; null: not by this layer
  void forward(const Call& call, const S* x, bool drop, S* next) {
    const auto& [executor, runs, pass, parameters, right, scratch] = call;
    input_ = x;
    between_ = weights_.has_right() ? product_.data() : x;
    y_ = weights_.has_left() ? mixed_.data() : between_;
    executor.launch(shape_.items(), pass.instances(),
                    MixForward<Family, S, SendMixed<D, S>>{{maps_},
                                                           shape_,
                                                           pass.copies,
                                                           weights_.has_right()
                                                               ? right.layer(static_cast<Index>(number_))
                                                               : nullptr,
                                                           right.run_stride(),
                                                           weights_.left(parameters),
                                                           parameters.stride,
                                                           x,
                                                           product_.data(),
                                                           mixed_.data(),
                                                           scratch.sent.data()});
    const bool keep = pass.keeps();
    launch_diffusion(executor, pass.instances(),
                     CrossForward<D, S>{{sums_of(call, arcs_.out, scratch.sent.data())},
                                        maps_,
                                        y_,
                                        keep ? sum_[0].data() : nullptr,
                                        first_.data(),
                                        scratch.sent_on.data()});
    const LayerOutput<S> output{
        epsilon(parameters), parameters.stride, true, x, output_.data(), runs, pass, number_ + 1, next};
    launch_diffusion(executor, pass.instances(),
                     LeaveForward<D, S>{{sums_of(call, arcs_.out, scratch.sent_on.data())},
                                        maps_,
                                        first_.data(),
                                        keep ? sum_[1].data() : nullptr,
                                        {output, activation_, sign_, drop,
                                         static_cast<std::uint32_t>(sheafnn::detail::second_dropouts) + number_,
                                         keep ? slope_.data() : nullptr}});
  }

  /// Replaces the derivative of output() by the derivative of the input, without the part through the maps. Also gives
  /// partial sums of the gradients, and what follows the derivatives of the maps (NodeMapGradient).
  ///
  /// \param ready  parts that share the first launch
  template <class End, class... Ready>
  void backward(const Call& call, S* x_bar, const End& end, const Ready&... ready) {
    const auto& [executor, runs, pass, parameters, right, scratch] = call;
    const Index instances = pass.instances();
    S *z_bar = scratch.z_bar.data(), *first_bar = scratch.first_bar.data(), *y_bar = scratch.y_bar.data(),
      *p_bar = scratch.p_bar.data(), *returned = scratch.sent.data(), *returned_on = scratch.sent_on.data();
    const CoordinateProducts<S> gains{input_,
                                      x_bar,
                                      pass.copies * shape_.size(),
                                      D,
                                      shape_.channels,
                                      {shape_.nodes * pass.copies},
                                      true,
                                      parameters.arena + epsilon_sums_,
                                      parameters.arena_stride};
    executor.launch_together(ready..., Items{epsilon_ >= 0 ? gains.items() : 0, pass.runs, gains},
                             Items{shape_.items(), instances,
                                   LeaveBackward<D, S>{shape_, maps_, sign_, x_bar, slope_.data(), z_bar,
                                                       returned}});
    launch_diffusion(
        executor, instances,
        TakeBack<D, S>{
            {sums_of(call, arcs_.in, returned)}, maps_, 1, z_bar, scratch.w[1].data(), first_bar, returned_on});
    launch_diffusion(
        executor, instances,
        TakeBack<D, S>{
            {sums_of(call, arcs_.in, returned_on)}, maps_, 0, first_bar, scratch.w[0].data(), y_bar, nullptr});
    const int lanes = tile_lanes(shape_);
    const NodeMapGradient<D, S, End> gradient{shape_,
                                              maps_,
                                              {{sum_[0].data(), sum_[1].data()},
                                               {returned_on, returned},
                                               {scratch.w[0].data(), scratch.w[1].data()},
                                               {y_, first_.data()},
                                               {first_bar, z_bar}},
                                              lanes,
                                              end};
    executor.launch_together(Teams{shape_.nodes, instances, lanes, gradient},
                             Items{shape_.items(), instances,
                                   MixBackward<Family, S>{shape_, runs, pass, number_, false,
                                                          weights_.right(parameters), weights_.left(parameters),
                                                          epsilon(parameters), parameters.stride, y_bar, p_bar,
                                                          x_bar}});
  }
  /// After backward(): partial sums for A and B, to be launched before the next layer's second launch.
  [[nodiscard]] LayerProducts<S> products(const Call& call) const {
    return weights_.products(call.pass, shape_, call.parameters, call.scratch, between_, input_);
  }

 private:
  using Family = Conformal<D>;  ///< of kernels that other layers use, too

  /// ε of run 0; null: no residual.
  [[nodiscard]] const S* epsilon(const ParameterView<S>& parameters) const noexcept {
    return epsilon_ >= 0 ? parameters.value + epsilon_ : nullptr;
  }
  [[nodiscard]] NeighbourSums<NoBlocks<D, S>, S> sums_of(const Call& call, const GraphView<S>& arcs,
                                                         const S* features) const {
    return begin_sums(call.executor, call.pass.instances(), arcs, NoBlocks<D, S>{}, shape_, features,
                      call.scratch.segments.data());
  }

  ArcViews<S> arcs_;
  FeatureShape<S> shape_;
  std::uint32_t number_;
  Activation activation_;
  S sign_;  ///< of act(…) in X'
  MixingWeights<S> weights_;
  NodeMapView<D, S> maps_;
  Index epsilon_ = -1, epsilon_sums_ = 0;
  Array<Executor, S> dropped_;          ///< X after dropout
  Array<Executor, S> product_, mixed_;  ///< X Bᵀ, Y
  Array<Executor, S> first_;            ///< Δ_out Y
  Array<Executor, S> sum_[2];           ///< what the nodes received, of both operators
  Array<Executor, S> slope_, output_;
  const S *input_ = nullptr, *between_ = nullptr, *y_ = nullptr;
};

}  // namespace sheafnn::batch::detail
