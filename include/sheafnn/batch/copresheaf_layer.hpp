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
        mixing_(of, 1, true) {
    layers::require_no_filters(of.shape.coordinates - Family::stalk_dimension, layers::LayerForm::copresheaf);
    mean_ = of.features(of.batch.instances());
    if (mixing_.weights().has_right()) product_ = of.features(of.batch.instances());
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
  [[nodiscard]] S* dropped_input() noexcept { return mixing_.dropped_input(); }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const BatchLayerCall<Executor, Family, S>& call, const S* x, const S*, bool drop, S* next) {
    const Pass& pass = call.pass;
    mixing_.begin(x, drop);
    launch_diffusion(call.executor, pass.instances(),
                     MeanForward<Family, S>{{walk<false>(call, mixing_.y())}, mean_.data()});
    auto mix =
        mixing_.template later<Family>(call,
                                       CopresheafEnding<Family, S>{end_,
                                                                   shape_,
                                                                   x,
                                                                   call.parameters.value + bias_,
                                                                   call.parameters.stride,
                                                                   {nullptr, 0, false, nullptr, output_.data(),
                                                                    call.runs, pass, number_ + 1, next}},
                                       mean_.data(), product_.data());
    mix.y = mix.w = change_.data();
    call.executor.launch(shape_.items(), pass.instances(), mix);
    kept_ = mixing_.kept();
    mixing_.come_after(product_.size() > 0 ? product_.data() : mean_.data(), mean_.data());
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
    call.executor.launch_together(Items{bias.items(), pass.runs, bias},
                                  Items{items, instances,
                                        MeanMixBackward<Family, S>{mixing_.template backward<Family>(call, x_bar),
                                                                   graph_.degree, share_bar}});
    const MeanBackward<Family, S> walked{
        {walk<true>(call, share_bar)}, call.runs, pass, number_, mixing_.drops(), x_bar};
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
    return mixing_.products(pass, parameters, scratch);
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
  Index bias_ = 0, bias_sums_ = 0;
  BatchMixing<Executor, S> mixing_;
  Array<Executor, S> mean_;     ///< m
  Array<Executor, S> product_;  ///< m Bᵀ
  Array<Executor, S> change_;   ///< X' − X
  Array<Executor, S> output_;
  const S* kept_ = nullptr;  ///< X̃
};

}  // namespace sheafnn::batch::detail
