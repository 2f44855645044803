/// \file
/// NetworkParts: what a BatchNetwork consists of, in the memory of an executor. It has the layers of all runs, their
/// parameters and gradients, and their arrays. For one network: bsnn/network_parts.hpp.
#pragma once

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/encoder.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/feature_kernels.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/hidden_readout.hpp"
#include "sheafnn/batch/layer_stack.hpp"
#include "sheafnn/batch/parts_of_network.hpp"
#include "sheafnn/batch/posterior.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/batch/second_linear.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// (1 + i) H or H; item: element of H, group: run.
template <class S>
struct StartComplex {
  const S* in;
  Index size;  ///< of H
  Divisor channels;
  bool imaginary;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    S* const to = out + 2 * run * size + item + item / channels * channels;
    const S value = in[run * size + item];
    to[0] = value;
    to[channels] = imaginary ? value : S(0);
  }
};
/// H̄, the sum over copies; item: element of H, group: run.
template <class S>
struct StartComplexBackward {
  const S* bar;
  Index size, copies;
  Divisor channels;
  bool imaginary;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const S* from = bar + 2 * run * copies * size + item + item / channels * channels;
    S sum = S(0);
    for (Index copy = 0; copy < copies; ++copy, from += 2 * size) {
      sum += imaginary ? from[0] + from[channels] : from[0];
    }
    out[run * size + item] = sum;
  }
};

/// The complex features X_1 = (1 + i) H or H of all runs, with which directed layers start, and H̄ = Re X̄_1 [+ Im X̄_1]. Source:
/// math: "Directed sheaves" (3.53). For one network: layers/complex_start.hpp. Features as in directed_kernels.hpp.
template <class Executor, class S>
class BatchComplexStart {
 public:
  /// \param shape      of X_1
  /// \param imaginary  does the imaginary part start as the real part does?
  BatchComplexStart(Executor& executor, const FeatureShape<S>& shape, bool imaginary, const BatchSize& batch)
      : size_(shape.size() / 2),
        channels_(shape.channels / 2),
        runs_(batch.runs),
        imaginary_(imaginary),
        output_(executor, "embeddings", 2 * runs_ * size_),
        bar_(executor, "layers", batch.trains() ? runs_ * size_ : 0) {}

  /// \param embedding  H of all runs \returns X_1 of all runs
  const S* forward(Executor& executor, const S* embedding) {
    executor.launch(size_, runs_, StartComplex<S>{embedding, size_, channels_, imaginary_, output_.data()});
    return output_.data();
  }
  /// \param bar  X̄_1 of all instances \returns H̄ of all runs
  S* backward(Executor& executor, const Pass& pass, const S* bar) {
    executor.launch(size_, runs_,
                    StartComplexBackward<S>{bar, size_, pass.copies, channels_, imaginary_, bar_.data()});
    return bar_.data();
  }

 private:
  Index size_, channels_, runs_;
  bool imaginary_;
  Array<Executor, S> output_, bar_;
};

}  // namespace sheafnn::batch::detail

namespace sheafnn::batch {

namespace detail {

/// The layers between the encoder and the readout of a kind of model. It has Layer, the type of its layers, and
/// options(model), the options of a SheafModel with such layers. It has layout(model) if model.layout() is not a
/// ModelLayout. Here of SheafModel, and with it Bsnn, Nsd and Snn; other kinds have headers of their own.
template <class Executor, class Model>
struct ModelLayers {};
template <class Executor, class Model>
  requires std::same_as<typename Model::Options, ModelOptions>
struct ModelLayers<Executor, Model> {
  using Layer = BatchLayer<Executor, Model>;
  [[nodiscard]] static const ModelOptions& options(const Model& model) { return model.options(); }
};
/// Models that consist of an encoder, sheaves, layers and a readout.
template <class Model, class Executor>
concept LayeredModel = requires {
  typename ModelLayers<Executor, Model>::Layer;
};

/// The parts of a batch of networks of a LayeredModel; see the file comment.
template <class Executor, LayeredModel<Executor> Model>
struct NetworkParts : PartsOfNetwork<Executor, typename Model::Scalar, NetworkArrays<Executor, Model>> {
  using Base = PartsOfNetwork<Executor, typename Model::Scalar, NetworkArrays<Executor, Model>>;
  using Base::common, Base::batch, Base::sums, Base::output, Base::x_bar, Base::runs, Base::view;
  using typename Base::Common;
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  using Layer = typename ModelLayers<Executor, Model>::Layer;
  using BatchGraphType = typename Common::BatchGraphType;
  using View = decltype(std::declval<const BatchGraphType&>().view());
  using Learner = BatchSheafLearner<Executor, S, View>;
  static constexpr bool of_edges = std::is_same_v<View, GraphView<S>>;  ///< are maps of a graph's arcs?

  /// Are maps drawn from a posterior?
  static constexpr bool sampled = Model::bayesian && sheaf::is_learned<Family>;
  /// Are maps given that nothing changes? They are then built once, for all runs.
  static constexpr bool given = has_given_maps<typename Model::Posterior>;
  /// Does every layer compute its sheaf from its own input?
  static constexpr bool sheaf_per_layer = !Model::bayesian && sheaf::is_learned<Family> && !given;

  /// Is anything of a model random, apart from dropout?
  [[nodiscard]] static bool draws_of(const Model& model) {
    if constexpr (requires { Layer::draws(model); }) {
      return sampled || Layer::draws(model);
    } else {
      return sampled;
    }
  }

  /// See BatchNetwork. Unchecked: the size of the batch.
  NetworkParts(Executor& executor, const Model& model, std::shared_ptr<Common> shared,
               const NodeTargetLists& targets, const BatchSize& size, bool dropout)
      : Base(model, std::move(shared), size),
        options(ModelLayers<Executor, Model>::options(model)),
        layout(layout_of(model)),
        draws(draws_of(model)),
        graph(common->graph),
        sheaf_count(sheaves(model, *common)) {
    const Index nodes = graph.view().nodes;
    detail::check(targets, nodes, options.classes);
    const Index parts = layers::parts_of(options.layer);
    shape = {nodes, model.coordinates(), parts * options.channels, {}};
    require_countable("features of a network", shape.size());
    require_countable("tiles of the sums of segments", graph.view().walk_rows() * shape.tiles);
    if (parts == 2) start.emplace(executor, shape, options.directed.imaginary_start, batch);
    int fixed = 0;
    // See the other NetworkParts.
    const S low = sheafnn::detail::averages(options) ? S(-1) : S(1);
    if (options.add_lp) shape.filter_sign[fixed++] = low;
    if (options.add_hp) shape.filter_sign[fixed++] = -low;
    make_layers(executor, model, targets, dropout);
    make_arrays(executor, dropout);
    this->end(executor);
    kl_of_layers = Array<Executor, double>(executor, "sums", batch.trains() ? batch.runs * kl_rows.count() : 0);
    kl_of_layers_tree = ColumnTree<Executor, double>(executor, batch.runs, kl_rows.count(), 1);
    if constexpr (given) common->given.build(executor, sheaf);
  }

  ModelOptions options;
  ModelLayout layout;
  bool draws;             ///< is anything random, apart from dropout?
  BatchGraphType& graph;  ///< common->graph
  FeatureShape<S> shape;
  Index sheaf_count;
  layers::LayerReads reads;  ///< `maps` and `blocks`: what at least one of the layers reads
  KlRows kl_rows;
  std::optional<BatchEncoder<Executor, S>> encoder, sheaf_encoder;
  std::optional<BatchSecondLinear<Executor, S>> second;
  std::optional<BatchComplexStart<Executor, S>> start;  ///< of complex features
  BatchFilter<Executor, S> filter;                      ///< of all layers, or none
  BatchHiddenReadout<Executor, S> hidden_readout;
  std::vector<Learner> learners;
  BatchSheaf<Executor, Family, S, View> sheaf;
  std::vector<Layer> layers;
  std::vector<BatchFeatureNorm<Executor, S>> norms;  ///< of all layers, or none
  RightTransposes<Executor, S> right;
  Array<Executor, double> kl_of_layers;  ///< KL terms of layers that draw something, in parts
  ColumnTree<Executor, double> kl_of_layers_tree;
  Array<Executor, S> noise;                       ///< explicit noise, or empty
  Array<Executor, S> spread;                      ///< embeddings, copied for each instance
  std::vector<Array<Executor, S>> learner_input;  ///< of layers 1, 2, … after dropout
  Array<Executor, S> embedding_bar;
  LayerScratch<Executor, S> scratch;

  /// KL over all incident pairs, or empty.
  [[nodiscard]] const ColumnTree<Executor, S>& kl_sums() const noexcept {
    if constexpr (sampled) return posterior->kl();
    return Base::kl_sums();
  }
  [[nodiscard]] Index pairs() const noexcept { return graph.view().pairs(); }
  /// May layer l > 0 and the one below share a launch, in the forward and in the backward pass? Two of the library's layers
  /// may, without a norm and a filter, unless a learner, or the layer above, reads what is between them.
  [[nodiscard]] bool adjoins_below(std::size_t l) {
    return norms.empty() && !filter.active() && !(sheaf_per_layer && static_cast<Index>(l) < sheaf_count) &&
           !reads_before(l + 1) && layers[l].diffusion() != nullptr && layers[l - 1].diffusion() != nullptr;
  }

  /// May the derivative of the logits continue with the last layer in one launch?
  [[nodiscard]] bool enters_last_layer() {
    return norms.empty() && !filter.active() && !options.residual.initial() && layout.at.readout.empty() &&
           output->few_classes() && !layers.empty() && layers.back().diffusion() != nullptr;
  }

  /// Sheaves [first, first + count) of every instance.
  [[nodiscard]] SheafRange sheaves_at(Index first, Index count = 1) const {
    return {given ? 0 : sheaf_count, first, count};
  }
  /// Edge weights of models that sample, m per run; null: 1.
  [[nodiscard]] const S* edge_weight() const { return posterior->edge_weight(learners.front()); }

  /// What layer l gets in a pass.
  ///
  /// \param begun    see BatchLayerCall
  /// \param adjoins  the layer that it continues with; l: it does not
  /// \param before   of a forward pass: X_{l−1}
  [[nodiscard]] BatchLayerCall<Executor, Family, S, View> layer_call(Executor& executor, const Pass& pass,
                                                                     std::size_t l, bool begun,
                                                                     std::size_t adjoins,
                                                                     const S* before = nullptr) {
    const auto range = [&](std::size_t layer) {
      return sheaves_at(std::min(static_cast<Index>(layer), sheaf_count - 1));
    };
    return {executor,
            runs(),
            pass,
            view,
            right,
            sheaf,
            range(l),
            scratch,
            begun,
            adjoins == l ? nullptr : layers[adjoins].diffusion(),
            range(adjoins),
            before,
            kl_of_layers.data(),
            kl_rows.count()};
  }
  /// Does layer l read X_{l−1}? False after the last layer.
  [[nodiscard]] bool reads_before(std::size_t l) {
    if constexpr (Layer::reads_before) {
      return l < layers.size() && layers[l].with([]<class Own>(const Own&) { return Own::reads_before; });
    } else {
      return false;
    }
  }
  /// After the backward pass of layer l: adds to x̄ what the layer after it has found for the same features. At the first
  /// layer it also adds what that layer itself has found.
  void add_before_bar(Executor& executor, const Pass& pass, std::size_t l) {
    const auto add = [&](std::size_t from) {
      if (!reads_before(from)) return;
      executor.launch(shape.size(), pass.instances(),
                      AddFeatures<S>{scratch.before_bar_of(from), shape.size(), x_bar.data()});
    };
    add(l + 1);
    if (l == 0) add(0);
  }
  /// Before the backward pass: X̄_1 of layers that add to it apart from x̄. Where layers read maps, all layers add to the
  /// derivatives of the sheaf.
  void clear_bars(Executor& executor, const Pass& pass) {
    if constexpr (Layer::reads_first) executor.zero(scratch.first_bar.data(), pass.instances() * shape.size());
    if constexpr (Layer::reads_maps) {
      if (reads.maps) sheaf.clear_gradient(executor);
    }
  }
  /// Computes the derivative of the embeddings of each run from x̄ of the first layer in all copies.
  [[nodiscard]] S* embedding_bar_of(Executor& executor, const Pass& pass) {
    if (start) return start->backward(executor, pass, x_bar.data());
    return pass.copies > 1 ? embedding_bar.data() : x_bar.data();
  }
  /// After the last layer's backward pass.
  void add_first_bar(Executor& executor, const Pass& pass) {
    if constexpr (Layer::reads_first) {
      executor.launch(shape.size(), pass.instances(),
                      AddFeatures<S>{scratch.first_bar.data(), shape.size(), x_bar.data()});
    }
  }

  /// Models that sample have one.
  std::optional<typename PosteriorOf<Executor, Model, sampled, View>::type> posterior;

 private:
  [[nodiscard]] static ModelLayout layout_of(const Model& model) {
    if constexpr (requires { ModelLayers<Executor, Model>::layout(model); }) {
      return ModelLayers<Executor, Model>::layout(model);
    } else {
      return model.layout();
    }
  }
  [[nodiscard]] static Index sheaves(const Model& model, [[maybe_unused]] const Common& arrays) {
    if constexpr (given) {
      return arrays.given.count();
    } else {
      return model.sheaf_count();
    }
  }
  void make_layers(Executor& executor, const Model& model, const NodeTargetLists& targets, bool dropout) {
    const layers::ParameterSet<S>& p = model.parameters();
    const View g = graph.view();
    const Index n = shape.nodes, h = shape.row();
    encoder.emplace(executor, common->input, g.degree, layout.encoder, layout.at.encoder, p, batch, dropout, sums);
    if (*options.separate_encoder) {
      sheaf_encoder.emplace(executor, common->input, g.degree, layout.sheaf_encoder, layout.at.sheaf_encoder, p,
                            batch, false, sums);
    }
    if (options.second_linear)
      second.emplace(executor, layout.at.second, p, n, layout.hidden_width, batch.runs, sums);
    if constexpr (sheaf::is_learned<Family> && !given) {
      const InputFeatures<Executor, S>* labels = nullptr;
      if constexpr (is_around_given<typename Model::Posterior>) labels = common->given.labels();
      // Where every layer computes its sheaf, copies differ by what the layers before it have drawn.
      const BatchSize of_learner = sheaf_per_layer && draws ? batch : batch.without_copies();
      for (const layers::SheafLearnerWeights<layers::ParameterSlot>& learner : layout.at.learners) {
        learners.emplace_back(executor, g, layout.learner, learner, p, of_learner, sums, labels);
      }
    }
    filter = BatchFilter<Executor, S>(executor, options.filter, layout, p, shape, batch, sums);
    for (std::size_t l = 0; l < layout.layers.size(); ++l) {
      layers.emplace_back(model, BatchLayerSetting<Executor, S, View>{
                                     l, executor, g, shape, layout, options.activation, options.left_weights,
                                     options.right_weights, filter, options.residual, options.attention,
                                     options.directed, p, batch, dropout, sums, kl_rows});
      if (options.layer_norm) norms.emplace_back(executor, layout.norms[l], p, n, h, batch, sums);
    }
    if constexpr (Layer::reads_maps) {
      reads.blocks = false;
      for (Layer& layer : layers) {
        (layer.with([]<class Own>(const Own&) { return Own::reads_maps; }) ? reads.maps : reads.blocks) = true;
      }
    }
    sheaf = BatchSheaf<Executor, Family, S, View>(executor, g, (given ? 1 : batch.instances()) * sheaf_count,
                                                  given ? 0 : batch.training_instances() * sheaf_count,
                                                  options.normalisation, reads);
    hidden_readout = BatchHiddenReadout<Executor, S>(executor, layout.at.readout, p, n, h, batch, sums);
    right = RightTransposes<Executor, S>(executor, layout.layers, p, options.channels, batch.runs);
    output.emplace(executor, layout.at.output, p, targets, n, h, options.classes, batch, sums);
    if constexpr (sampled && is_around_given<typename Model::Posterior>) {
      posterior.emplace(executor, g, batch.runs, common->given.draws(), common->given.centre(),
                        common->given.edge_weight());
    } else if constexpr (sampled) {
      posterior.emplace(executor, g, batch.runs, model.posterior());
    }
  }

  void make_arrays(Executor& executor, bool dropout) {
    const Index size = shape.size(), training = batch.training_instances() * size;
    const auto array = [&](const char* what, Index count) { return Array<Executor, S>(executor, what, count); };
    if (batch.copies > 1) spread = array("embeddings", batch.instances() * size);
    if (sheaf_per_layer && dropout) {
      for (Index s = 1; s < sheaf_count; ++s) learner_input.push_back(array("embeddings", training));
    }
    x_bar = array("layers", training);
    if (batch.training_copies > 1 && !start) embedding_bar = array("layers", batch.runs * size);
    const bool initial = options.residual.initial();
    // With an initial residual, and in copresheaf layers, v̄ or ȳ of a layer may be written while the sums for the weights
    // of the layer above read its v̄ or ȳ.
    bool two_sides = (initial || reads.maps) && layers.size() > 1;
    for (std::size_t l = 1; l < layers.size(); ++l) two_sides = two_sides || adjoins_below(l);
    bool before = false;
    for (std::size_t l = 0; l < layers.size(); ++l) before = before || reads_before(l);
    scratch = LayerScratch<Executor, S>(executor, training, filter.steps(), filter.active(),
                                        initial || Layer::reads_first, before, two_sides,
                                        batch.instances() * graph.view().walk_rows() * shape.row());
  }
};

}  // namespace detail

}  // namespace sheafnn::batch
