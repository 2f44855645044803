/// \file
/// BatchHypergraphLayer: a layer over a hypergraph of all instances of a batch (formulas: hypergraph_kernels.hpp; for one
/// network layers/hypergraph_layer.hpp). With it BatchNetwork takes HypergraphModel.
#pragma once

#include <concepts>

#include "sheafnn/batch/hypergraph_kernels.hpp"
#include "sheafnn/batch/hypergraph_selection.hpp"
#include "sheafnn/batch/laplacian_layer.hpp"
#include "sheafnn/batch/layer_call.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/network.hpp"
#include "sheafnn/bsnn/hypergraph_model.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchLayer.
template <class Executor, class Family, class S>
class BatchHypergraphLayer : public BatchEquationLayer<Executor, Family, S, IncidenceView<S>> {
  using View = IncidenceView<S>;
  using Base = BatchEquationLayer<Executor, Family, S, View>;
  using Base::graph_, Base::shape_, Base::number_, Base::weights_, Base::bias_, Base::sums_, Base::mixing_,
      Base::scaled_;
  using Walk = IncidenceWalk<Family, S>;

 public:
  using typename Base::Call;
  static constexpr bool reads_first = false, reads_before = false, reads_maps = false, drops = true;

  template <class Model>
  BatchHypergraphLayer(const Model& model, const BatchLayerSetting<Executor, S, View>& of)
      : Base(of, true), slots_shape_{of.graph.slots, of.shape.coordinates, of.shape.channels, {}} {
    const HypergraphOptions& options = model.options();
    const layers::HypergraphLayerWeights<layers::ParameterSlot>& at = model.layout().layers[of.number];
    const BatchSize& batch = of.batch;
    residual_ = at.epsilon >= 0;
    activation_ = residual_ || of.number + 1 < of.layout.layers.size();
    require_countable("sums over the hyperedges of a layer", slots_shape_.size());
    m_ = Array<Executor, S>(of.executor, "layers", batch.instances() * slots_shape_.size());
    if (options.laplacian == HypergraphLaplacian::nonlinear) {
      terms_ = BatchIncidenceTerms<Executor, Family, S>(of.executor, graph_, shape_, options.projection,
                                                        options.mediators, batch);
    }
    // Of SumGradients: rows of ε, if there is one, then of b.
    const Index chunks = RowChunks{shape_.nodes * batch.training_copies}.count(), row = shape_.row(),
                stride = (residual_ ? 2 : 1) * row;
    sums_ = of.sums.reserve(chunks, stride);
    if (residual_) {
      weights_ = of.parameters.info(at.epsilon).offset;
      of.sums.assign(weights_, shape_.coordinates, sums_, chunks, stride, shape_.channels, true);
    }
    if (at.bias >= 0) {
      bias_ = of.parameters.info(at.bias).offset;
      of.sums.assign(bias_, shape_.channels, sums_ + stride - row, chunks, stride, shape_.coordinates);
    } else {
      no_bias_ = Array<Executor, S>(of.executor, "layers", shape_.channels);
    }
  }

  [[nodiscard]] BatchDiffusionLayer<Executor, Family, S>* diffusion() const noexcept { return nullptr; }
  template <class Use>
  decltype(auto) with(const Use& use) {
    return use(*this);
  }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const Call& call, const S* x, const S*, bool drop, S* next) {
    terms_.select(call.executor, call.pass.instances(), call.range, call.sheaf.view(), x);
    this->begin(call, x, nullptr, drop, true);
    const Walk walk = begin_walk(call, scaled_.data(), m_.data(), mixing_.y());
    with_end(call, [&](const auto& end) { this->end(call, end, walk, next); });
    return false;
  }

  /// See BatchDiffusionLayer.
  template <class... Ready>
  void backward(const Call& call, bool add, S* x_bar, const Ready&... ready) {
    with_end(call, [&](const auto& end) { backward_from(call, end, add, x_bar, ready...); });
  }

 private:
  template <class End, class... Ready>
  void backward_from(const Call& call, const End& end, bool add, S* x_bar, const Ready&... ready) {
    const Index instances = call.pass.instances();
    S* const m_bar = call.scratch.segments.data();
    const DiffusionArrays<S> arrays = this->arrays(call);
    this->begin_backward(call, end, x_bar, ready...);
    this->template diffuse_backward<End>(call, begin_walk(call, arrays.r_bar, m_bar, arrays.z_bar), x_bar);
    const int lanes = tile_lanes(shape_);
    const BlockGradient<S> out = call.sheaf.gradient();
    const Teams maps{graph_.pairs(), instances, lanes,
                     IncidenceGradient<Family, S>{graph_, call.range, call.sheaf.view(), terms_.view(), shape_,
                                                  arrays.w, arrays.r_bar, m_.data(), m_bar, terms_.degree_bar(),
                                                  out.map, add, lanes}};
    const Teams nodes{sheaf::is_orthogonal<Family> ? Index{0} : shape_.nodes, instances, lanes,
                      NodeGradient<Family, S>{call.range, shape_, StackedFeatures<S>{mixing_.y()}, arrays.w,
                                              arrays.r, arrays.z_bar, arrays.r_bar, arrays.w_bar, out, add,
                                              lanes}};
    const auto mix = this->template mix_backward<End>(call, x_bar);
    if (!terms_.view().selected()) {
      call.executor.launch_together(maps, nodes, mix);
      return;
    }
    call.executor.launch_together(nodes, mix);
    call.executor.launch(nodes.items, instances,
                         TakeDegreeBars<Family, S>{call.range, shape_.nodes, out.degree, terms_.degree_bar()});
    call.executor.launch_together(maps);
  }

  /// use(end) for what the layer ends with.
  template <class Use>
  void with_end(const Call& call, const Use& use) const {
    const ParameterView<S>& p = call.parameters;
    const S* bias = bias_ >= 0 ? p.value + bias_ : no_bias_.data();
    const Index bias_run = bias_ >= 0 ? p.stride : 0;
    const Index d = shape_.coordinates;
    if (residual_) {
      use(RunEquation<kernels::HypergraphEnd, S>{{}, p.value + weights_, p.stride, d, bias, bias_run, true});
    } else {
      use(RunEquation<kernels::ConvolutionEnd, S>{{}, p.value, 0, d, bias, bias_run, activation_});
    }
  }
  /// The walk over hyperedges, and what the walk over nodes is made of. \param m  to be filled
  [[nodiscard]] Walk begin_walk(const Call& call, const S* features, S* m, const S* unscaled) {
    const Index instances = call.pass.instances(), items = slots_shape_.items();
    const int lanes = graph_.arc_lanes(items * instances);
    call.executor.launch_teams(items, instances, lanes,
                               SlotSums<Family, S>{graph_, call.range, call.sheaf.view(), terms_.view(),
                                                   slots_shape_, features, m, lanes});
    return {graph_, call.range, call.sheaf.view(), terms_.view(), shape_, features, m, unscaled};
  }

  FeatureShape<S> slots_shape_;
  bool residual_ = false, activation_ = true;
  BatchIncidenceTerms<Executor, Family, S> terms_;
  Array<Executor, S> no_bias_;  ///< zeros in place of b
  Array<Executor, S> m_;        ///< m of W
};

/// See network_parts.hpp.
template <class Executor, class Model>
  requires std::same_as<typename Model::Options, HypergraphOptions>
struct ModelLayers<Executor, Model> {
  using Layer = BatchHypergraphLayer<Executor, typename Model::Family, typename Model::Scalar>;
  [[nodiscard]] static ModelOptions options(const Model& model) {
    ModelOptions r = sheafnn::detail::shared_parts(model.options());
    const bool published = model.options().laplacian == HypergraphLaplacian::published;
    r.normalisation = published ? Normalisation::none : Normalisation::augmented;
    return r;
  }
  [[nodiscard]] static ModelLayout layout(const Model& model) {
    ModelLayout r;
    static_cast<NetworkSizes&>(r) = model.layout();
    r.at = model.layout().at;
    for (const auto& layer : model.layout().layers) r.layers.push_back(layer);
    return r;
  }
};

}  // namespace sheafnn::batch::detail
