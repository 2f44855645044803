/// \file
/// BatchCopresheafLayer: a copresheaf layer of all instances of a batch (formulas: copresheaf_kernels.hpp; for one network
/// layers/copresheaf_layer.hpp).
#pragma once

#include <cstdint>

#include "sheafnn/batch/copresheaf_kernels.hpp"
#include "sheafnn/batch/diffusion_layer.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchDiffusionLayer; no other layer shares its launches.
template <class Executor, class Family, class S>
class BatchCopresheafLayer {
 public:
  static constexpr bool reads_first = false, reads_before = false, reads_maps = true;

  /// \throws std::invalid_argument  fixed filters
  explicit BatchCopresheafLayer(const BatchLayerSetting<Executor, S>& of)
      : graph_(of.graph),
        shape_(of.shape),
        end_{of.activation},
        number_(static_cast<std::uint32_t>(of.number)),
        mixing_(of.layout.layers[of.number], of.parameters, of.shape, of.batch, of.sums) {
    layers::require_no_filters(of.shape.coordinates - Family::stalk_dimension, layers::LayerForm::copresheaf);
    if (of.dropout) dropped_ = of.features(of.batch.training_instances());
    mean_ = of.features(of.batch.instances());
    if (mixing_.has_right()) product_ = of.features(of.batch.instances());
    change_ = of.features(of.batch.instances());
    output_ = of.features(of.batch.instances());
    const Index f = of.shape.channels;
    const RowChunks rows{of.shape.nodes * of.batch.training_copies * of.shape.coordinates};
    bias_ = of.parameters.info(of.parameters.find(sheafnn::detail::concat("bias.", of.number))).offset;
    bias_sums_ = of.sums.reserve(rows.count(), f);
    of.sums.assign(bias_, f, bias_sums_, rows.count(), f);
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const BatchLayerCall<Executor, Family, S>& call, const S* x, const S*, bool drop, S* next) {
    const Pass& pass = call.pass;
    drop_ = drop;
    kept_ = drop ? dropped_.data() : x;
    between_ = mixing_.has_right() ? product_.data() : mean_.data();
    launch_diffusion(call.executor, pass.instances(),
                     MeanForward<Family, S>{{walk<false>(call, kept_)}, mean_.data()});
    call.executor.launch(shape_.items(), pass.instances(),
                         MixForward<Family, S, CopresheafEnding<Family, S>>{
                             {end_,
                              shape_,
                              x,
                              call.parameters.value + bias_,
                              call.parameters.stride,
                              {nullptr, 0, false, nullptr, output_.data(), call.runs, pass, number_ + 1, next}},
                             shape_,
                             pass.copies,
                             mixing_.has_right() ? call.right.layer(static_cast<Index>(number_)) : nullptr,
                             call.right.run_stride(),
                             mixing_.left(call.parameters),
                             call.parameters.stride,
                             mean_.data(),
                             product_.data(),
                             change_.data(),
                             change_.data()});
    return false;
  }

  /// See BatchDiffusionLayer; adds to the derivatives of the sheaf's maps.
  template <class... Ready>
  void backward(const BatchLayerCall<Executor, Family, S>& call, bool, S* x_bar, const Ready&... ready) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances(), items = shape_.items(), run_size = pass.copies * shape_.size();
    const Index f = shape_.channels;
    auto& side = call.scratch.of(number_);
    S *y_bar = side.y_bar.data(), *share_bar = side.r_bar.data();
    call.executor.launch_together(ready..., Items{items, instances,
                                                  CopresheafEndBackward<Family, S>{shape_, end_, change_.data(),
                                                                                   x_bar, y_bar}});
    const RowProducts<S> bias{nullptr,
                              0,
                              0,
                              0,
                              y_bar,
                              f,
                              f,
                              run_size,
                              {shape_.nodes * pass.copies * shape_.coordinates},
                              true,
                              call.parameters.arena + bias_sums_,
                              call.parameters.arena_stride};
    call.executor.launch_together(
        Items{bias.items(), pass.runs, bias},
        Items{items, instances,
              MeanMixBackward<Family, S>{{shape_, call.runs, pass, number_, drop_, mixing_.right(call.parameters),
                                          mixing_.left(call.parameters), nullptr, call.parameters.stride, y_bar,
                                          side.p_bar.data(), x_bar},
                                         graph_.degree,
                                         share_bar}});
    const MeanBackward<Family, S> walked{{walk<true>(call, share_bar)}, call.runs, pass, number_, drop_, x_bar};
    if constexpr (sheaf::is_learned<Family>) {
      if (!call.sheaf.learned()) return launch_diffusion(call.executor, instances, walked);
      const int lanes = tile_lanes(shape_);
      launch_diffusion(call.executor, instances, walked,
                       Teams{graph_.pairs(), instances, lanes,
                             ArcMapGradient<Family, S>{graph_, call.range, shape_, share_bar, kept_,
                                                       call.sheaf.gradient().map, lanes}});
    } else {
      launch_diffusion(call.executor, instances, walked);
    }
  }

  /// See BatchDiffusionLayer.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return mixing_.products(pass, shape_, parameters, scratch.of(number_), between_, mean_.data());
  }

 private:
  /// The walk over arcs, from features.
  template <bool Transposed>
  [[nodiscard]] NeighbourSums<ArcMaps<Family, S, Transposed>, S> walk(
      const BatchLayerCall<Executor, Family, S>& call, const S* features) const {
    return begin_sums(call.executor, call.pass.instances(), graph_,
                      ArcMaps<Family, S, Transposed>{call.range, call.sheaf.view()}, shape_, features,
                      call.scratch.segments.data());
  }

  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  kernels::CopresheafEnd end_;
  std::uint32_t number_ = 0;
  bool drop_ = false;
  Index bias_ = 0, bias_sums_ = 0;
  MixingWeights<S> mixing_;
  Array<Executor, S> dropped_;  ///< X after dropout
  Array<Executor, S> mean_;     ///< m
  Array<Executor, S> product_;  ///< m Bᵀ
  Array<Executor, S> change_;   ///< X' − X
  Array<Executor, S> output_;
  const S *kept_ = nullptr, *between_ = nullptr;  ///< X̃, and m Bᵀ or m
};

}  // namespace sheafnn::batch::detail
