/// \file
/// BatchHypergraphLayer: a layer over a hypergraph of all instances of a batch (formulas: hypergraph_kernels.hpp; for one
/// network layers/hypergraph_layer.hpp). With it BatchNetwork takes HypergraphModel.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "sheafnn/batch/hypergraph_kernels.hpp"
#include "sheafnn/batch/hypergraph_selection.hpp"
#include "sheafnn/batch/layer_call.hpp"
#include "sheafnn/batch/layer_setting.hpp"
#include "sheafnn/batch/mixing_weights.hpp"
#include "sheafnn/batch/network.hpp"
#include "sheafnn/bsnn/hypergraph_model.hpp"

namespace sheafnn::batch::detail {

/// One layer, with the interface of BatchLayer; it shares no launches with other layers.
template <class Executor, class Family, class S>
class BatchHypergraphLayer {
  using View = IncidenceView<S>;
  using Call = BatchLayerCall<Executor, Family, S, View>;
  using Walk = IncidenceWalk<Family, S>;

 public:
  static constexpr bool reads_first = false, reads_before = false, reads_maps = false, drops = true;

  template <class Model>
  BatchHypergraphLayer(const Model& model, const BatchLayerSetting<Executor, S, View>& of)
      : graph_(of.graph),
        shape_(of.shape),
        slots_shape_{of.graph.slots, of.shape.coordinates, of.shape.channels, {}},
        number_(static_cast<std::uint32_t>(of.number)),
        mixing_(of.layout.layers[of.number], of.parameters, of.shape, of.batch, of.sums) {
    const HypergraphOptions& options = model.options();
    const layers::HypergraphLayerWeights<layers::ParameterSlot>& at = model.layout().layers[of.number];
    const BatchSize& batch = of.batch;
    residual_ = at.epsilon >= 0;
    activation_ = residual_ || of.number + 1 < of.layout.layers.size();
    if (of.dropout) dropped_ = of.features(batch.training_instances());
    if (mixing_.has_right()) product_ = of.features(batch.instances());
    if (mixing_.has_left()) mixed_ = of.features(batch.instances());
    for (Array<Executor, S>* one : {&scaled_, &diffused_, &output_}) *one = of.features(batch.instances());
    for (Array<Executor, S>* one : {&z_, &direct_}) *one = of.features(batch.training_instances());
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
      epsilon_ = of.parameters.info(at.epsilon).offset;
      of.sums.assign(epsilon_, shape_.coordinates, sums_, chunks, stride, shape_.channels, true);
    }
    if (at.bias >= 0) {
      bias_ = of.parameters.info(at.bias).offset;
      of.sums.assign(bias_, shape_.channels, sums_ + stride - row, chunks, stride, shape_.coordinates);
    } else {
      no_bias_ = Array<Executor, S>(of.executor, "layers", shape_.channels);
    }
  }

  [[nodiscard]] const S* output() const noexcept { return output_.data(); }
  /// Where the input after dropout goes, to be filled before forward().
  [[nodiscard]] S* dropped_input() noexcept { return dropped_.data(); }
  [[nodiscard]] BatchDiffusionLayer<Executor, Family, S>* diffusion() const noexcept { return nullptr; }
  template <class Use>
  decltype(auto) with(const Use& use) {
    return use(*this);
  }

  /// See BatchDiffusionLayer. \returns false: it does not continue with the next layer
  bool forward(const Call& call, const S* x, const S*, bool drop, S* next) {
    const Pass& pass = call.pass;
    drop_ = drop;
    kept_ = drop ? dropped_.data() : x;
    between_ = mixing_.has_right() ? product_.data() : kept_;
    y_ = mixing_.has_left() ? mixed_.data() : between_;
    inputs_ = {x, nullptr, nullptr, y_};
    terms_.select(call.executor, pass.instances(), call.range, call.sheaf.view(), x);
    call.executor.launch(shape_.items(), pass.instances(),
                         MixForward<Family, S>{{graph_, call.range, call.sheaf.view()},
                                               shape_,
                                               pass.copies,
                                               mixing_.has_right() ? call.right.layer(static_cast<Index>(number_))
                                                                   : nullptr,
                                               call.right.run_stride(),
                                               mixing_.left(call.parameters),
                                               call.parameters.stride,
                                               kept_,
                                               product_.data(),
                                               mixed_.data(),
                                               scaled_.data()});
    const Walk walk = begin_walk(call, scaled_.data(), m_.data(), y_);
    with_end(call, [&](const auto& end) {
      using End = std::remove_cvref_t<decltype(end)>;
      launch_diffusion(call.executor, pass.instances(),
                       EquationForward<End, LayerOutput<S>, Family, S, Walk>{
                           {walk},
                           end,
                           pass,
                           inputs_,
                           diffused_.data(),
                           pass.training ? z_.data() : nullptr,
                           {nullptr, 0, false, nullptr, output_.data(), call.runs, pass, number_ + 1, next}});
    });
    return false;
  }

  /// See BatchDiffusionLayer.
  template <class... Ready>
  void backward(const Call& call, bool add, S* x_bar, const Ready&... ready) {
    with_end(call, [&](const auto& end) { backward_from(call, end, add, x_bar, ready...); });
  }

  /// See BatchDiffusionLayer; nothing without A and B.
  [[nodiscard]] LayerProducts<S> products(const Pass& pass, const ParameterView<S>& parameters,
                                          const LayerScratch<Executor, S>& scratch) const {
    return mixing_.products(pass, shape_, parameters, scratch.of(number_), between_, kept_);
  }

 private:
  template <class End, class... Ready>
  void backward_from(const Call& call, const End& end, bool add, S* x_bar, const Ready&... ready) {
    const Pass& pass = call.pass;
    const Index instances = pass.instances();
    auto& side = call.scratch.of(number_);
    S *z_bar = side.z_bar.data(), *r_bar = side.r_bar.data(), *y_bar = side.y_bar.data(),
      *w_bar = call.scratch.w_bar.data(), *m_bar = call.scratch.segments.data();
    const EquationSums<End, S> sums{end,
                                    inputs_,
                                    z_.data(),
                                    x_bar,
                                    pass.copies * shape_.size(),
                                    shape_.channels,
                                    {shape_.nodes * pass.copies},
                                    call.parameters.arena + sums_,
                                    call.parameters.arena_stride,
                                    shape_.row()};
    const EquationBackward<End, Family, S> start{graph_, call.range,     call.sheaf.view(), shape_, pass,
                                                 end,    inputs_,        z_.data(),         x_bar,  z_bar,
                                                 r_bar,  direct_.data(), nullptr,           nullptr};
    call.executor.launch_together(ready..., Items{sums.items(), pass.runs, sums},
                                  Items{shape_.items(), instances, start});
    const Walk walk = begin_walk(call, r_bar, m_bar, z_bar);
    if constexpr (End::with_mixed) {
      launch_diffusion(call.executor, instances,
                       EquationDiffuseBackward<NoLayerBelow, Family, S, Walk>{
                           {walk}, call.runs, pass, number_, false, direct_.data(), nullptr, w_bar, y_bar});
    } else {
      launch_diffusion(call.executor, instances, DiffuseBackward<Family, S, Walk>{{walk}, w_bar, y_bar});
    }
    const int lanes = tile_lanes(shape_);
    const BlockGradient<S> out = call.sheaf.gradient();
    const Teams maps{graph_.pairs(), instances, lanes,
                     IncidenceGradient<Family, S>{graph_, call.range, call.sheaf.view(), terms_.view(), shape_,
                                                  scaled_.data(), r_bar, m_.data(), m_bar, terms_.degree_bar(),
                                                  out.map, add, lanes}};
    const Teams nodes{sheaf::is_orthogonal<Family> ? Index{0} : shape_.nodes, instances, lanes,
                      NodeGradient<Family, S>{call.range, shape_, StackedFeatures<S>{y_}, scaled_.data(),
                                              diffused_.data(), z_bar, r_bar, w_bar, out, add, lanes}};
    const Items mix{shape_.items(), instances,
                    EquationMixBackward<End, Family, S>{{shape_, call.runs, pass, number_, drop_,
                                                         mixing_.right(call.parameters),
                                                         mixing_.left(call.parameters), nullptr,
                                                         call.parameters.stride, y_bar, side.p_bar.data(), x_bar},
                                                        direct_.data()}};
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
      use(RunEquation<kernels::HypergraphEnd, S>{{}, p.value + epsilon_, p.stride, d, bias, bias_run, true});
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

  View graph_{};
  FeatureShape<S> shape_, slots_shape_;
  std::uint32_t number_ = 0;
  bool residual_ = false, activation_ = true, drop_ = false;
  MixingWeights<S> mixing_;
  BatchIncidenceTerms<Executor, Family, S> terms_;
  Index epsilon_ = -1, bias_ = -1, sums_ = 0;
  Array<Executor, S> no_bias_;                ///< zeros in the place of b
  Array<Executor, S> dropped_;                ///< X after dropout
  Array<Executor, S> product_, mixed_;        ///< X̃ Bᵀ and Y
  Array<Executor, S> scaled_, diffused_, m_;  ///< W = S Y, R = L W, m of W
  Array<Executor, S> z_;                      ///< Z = Δ Y of training passes
  Array<Executor, S> direct_;                 ///< minus the derivative of X or Y that does not go through Δ
  Array<Executor, S> output_;
  EquationInputs<S> inputs_;
  const S *kept_ = nullptr, *between_ = nullptr, *y_ = nullptr;  ///< X̃, X̃ Bᵀ and Y
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
