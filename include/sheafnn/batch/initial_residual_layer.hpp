/// \file
/// BatchInitialResidual: an initial residual with an identity mapping in one layer, for all instances of a batch. It computes
/// X' from W = S X̃, and x̄ from x̄'. Formulas: initial_residual_kernels.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/initial_residual_kernels.hpp"
#include "sheafnn/batch/layer_call.hpp"
#include "sheafnn/batch/layer_scratch.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/sheaf.hpp"
#include "sheafnn/layers/residual_options.hpp"

namespace sheafnn::batch::detail {

/// The initial residual of one layer; see the file comment.
template <class Executor, class Family, class S>
class BatchInitialResidual {
  using Call = BatchLayerCall<Executor, Family, S>;

 public:
  /// No initial residual.
  BatchInitialResidual() = default;
  /// \param layer  its index, of `layers`
  /// \param right  has the layer B?
  BatchInitialResidual(Executor& executor, const ResidualOptions& options, Index layer, Index layers,
                       const GraphView<S>& graph, const FeatureShape<S>& shape, bool right, const BatchSize& batch)
      : graph_(graph),
        shape_(shape),
        active_(options.initial()),
        last_(layer + 1 == layers),
        layer_(static_cast<std::uint32_t>(layer)),
        residual_{static_cast<S>(options.alpha), static_cast<S>(active_ ? options.beta(layer) : 1)} {
    if (!active_) return;
    const auto array = [&] { return Array<Executor, S>(executor, "layers", batch.instances() * shape.size()); };
    averaged_ = array();
    if (right) product_ = array();
  }

  [[nodiscard]] bool active() const noexcept { return active_; }
  /// After forward(): G, and P = G B_βᵀ.
  [[nodiscard]] const S* averaged() const noexcept { return averaged_.data(); }
  [[nodiscard]] const S* product() const noexcept { return product_.size() > 0 ? product_.data() : averaged(); }

  /// \param diffusion  of W
  /// \param mixing     has X̃
  /// \param first      X₁
  /// \param diffused   where R goes
  /// \param next       the next layer's first step, to continue with; null: do not
  void forward(const Call& call, const Diffusion<Family, S>& diffusion, const BatchMixing<Executor, S>& mixing,
               const S* first, S* diffused, const LayerOutput<S>& output, const MixForward<Family, S>* next) {
    const Index instances = call.pass.instances();
    launch_diffusion(call.executor, instances,
                     InitialDiffuseForward<Family, S>{{diffusion},
                                                      {{}, residual_.alpha},
                                                      call.pass,
                                                      {mixing.y(), first},
                                                      diffused,
                                                      nullptr,
                                                      {averaged_.data()}});
    InitialEnding<Family, S> end{residual_.beta, shape_, output};
    if (next != nullptr) {
      end.go_on = true;
      end.next = *next;
    }
    call.executor.launch(shape_.items(), instances,
                         mixing.template later<Family>(call, end, averaged(), product_.data()));
  }

  /// The first step of the backward pass, v̄ from x̄'. \param activation, output  of the layer: X'
  [[nodiscard]] InitialActivationBackward<Family, S> first_step(bool activation, const S* output, const S* x_bar,
                                                                LayerScratch<Executor, S>& scratch) const {
    return {shape_, activation, output, x_bar, scratch.of(layer_).y_bar.data()};
  }
  /// Replaces the derivative of X' by the derivative of the layer's input. Stores v̄ in the scratch's y_bar, and P̄ (v̄
  /// without A), z̄, r̄ and W̄ in arrays of their names. Adds X̄₁ to first_bar, which the last layer sets and the first
  /// one uses.
  ///
  /// \param start    the layer's first step; null: it is done
  /// \param below    the first step of the layer below, to continue with; null: stop here
  /// \param ready    parts that share the first launch
  template <class... Ready>
  void backward(const Call& call, const BatchMixing<Executor, S>& mixing,
                const InitialActivationBackward<Family, S>* start,
                const InitialActivationBackward<Family, S>* below, S* x_bar, const Ready&... ready) const {
    auto& [executor, runs, pass, parameters, transposes, sheaf, range, scratch, begun, adjoins, adjoining_range,
           before, kl, kl_stride] = call;
    const Index instances = pass.instances();
    auto& side = scratch.of(layer_);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *first_bar = scratch.first_bar.data();
    const Items mix{shape_.items(), instances,
                    InitialMixBackward<Family, S>{mixing.template backward<Family>(call, x_bar), graph_, range,
                                                  sheaf.view(), residual_, !last_, first_bar, z_bar, r_bar}};
    if (start != nullptr) {
      executor.launch_together(ready..., Items{shape_.items(), instances, *start});
      executor.launch_together(mix);
    } else {
      executor.launch_together(ready..., mix);
    }
    InitialDiffuseBackward<Family, S> diffuse{{begin_diffusion(executor, instances, graph_, range, sheaf.view(),
                                                               shape_, static_cast<const S*>(r_bar),
                                                               scratch.segments.data())},
                                              runs,
                                              pass,
                                              layer_,
                                              mixing.drops(),
                                              z_bar,
                                              layer_ == 0 ? first_bar : nullptr,
                                              scratch.w_bar.data(),
                                              x_bar};
    if (below != nullptr) diffuse.below = {true, *below};
    launch_diffusion(executor, instances, diffuse);
  }

 private:
  GraphView<S> graph_{};
  FeatureShape<S> shape_;
  bool active_ = false, last_ = false;
  std::uint32_t layer_ = 0;
  InitialResidual<S> residual_;
  Array<Executor, S> averaged_;  ///< G
  Array<Executor, S> product_;   ///< P = G B_βᵀ
};

}  // namespace sheafnn::batch::detail
