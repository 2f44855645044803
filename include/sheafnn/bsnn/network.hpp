/// \file
/// Network: a model at work on one graph. Holds every buffer of the forward and backward pass, allocated once: most by
/// the constructor, some by the first pass that needs them.
///
/// Source: math.md "The model", "Backward pass of one diffusion step". The parts with their formulas are
/// node_embedding.hpp, sheaf_learner.hpp, variational_sheaf.hpp, network_sheaf.hpp and diffusion_layer.hpp; this header
/// puts them together.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/diffusion_layer.hpp"
#include "sheafnn/bsnn/encoder.hpp"
#include "sheafnn/bsnn/learner_input.hpp"
#include "sheafnn/bsnn/mean_maps.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network_sheaf.hpp"
#include "sheafnn/bsnn/node_embedding.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/output_layer.hpp"
#include "sheafnn/bsnn/sheaf_learner.hpp"
#include "sheafnn/bsnn/training_pass.hpp"
#include "sheafnn/bsnn/variational_sheaf.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/sparse_input.hpp"

namespace sheafnn {

/// Forward and backward passes of a SheafModel on one graph. Neither copied nor moved: parts refer to each other.
template <class Model>
class Network {
 public:
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  /// Allocates the buffers.
  ///
  /// \param graph, features  n nodes and n × p; the graph must outlive the network
  /// \param threads          threads to use, ≥ 1; results do not depend on it
  /// \throws std::invalid_argument  features that do not fit the model or the graph
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, int threads = 1)
      : options_(model.options()),
        layout_(model.layout()),
        threads_(threads),
        graph_(checked(model, graph, features, threads)),
        input_(options_.normalise_features ? normalised(features) : features),
        blocks_(graph),
        shape_(graph, Family::stalk_dimension, options_.add_lp, options_.add_hp, options_.channels),
        embedding_(input_, graph, layout_.encoder, layout_.second_weight, layout_.second_bias),
        output_(graph.node_count(), shape_.row(), options_.classes, layout_.output_weight, layout_.output_bias),
        sheaf_gradient_(graph, blocks_, false),
        posterior_(posterior_of(model, blocks_)) {
    const Index size = graph.node_count() * shape_.row();
    if (has_sheaf_encoder()) sheaf_encoder_ = Encoder<S>(input_, graph, layout_.sheaf_encoder);
    for (const SheafLearnerShape& learner : layout_.learners) learners_.emplace_back(graph, blocks_, learner);
    const auto arc_grams = std::make_shared<typename NetworkSheaf<Family, S>::ArcGrams>();
    for (Index s = 0; s < model.sheaf_count(); ++s) {
      sheaves_.emplace_back(graph, blocks_, options_.normalisation, arc_grams);
    }
    for (const DiffusionLayerShape& layer : layout_.layers) layers_.emplace_back(graph, shape_, layer);
    if (!Model::bayesian) learner_inputs_.assign(sheaves_.size(), LearnerInput<S>(size));
    for (Buffer<S>* buffer : {&x_bar_, &embedding_bar_, &scratch_[0], &scratch_[1]}) {
      buffer->resize(size);
    }
    gradient_.resize(model.parameters().size());
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] int threads() const noexcept { return threads_; }
  /// \param threads  of the passes to come, ≥ 1
  void set_threads(int threads) noexcept { threads_ = threads; }
  /// Derivatives of the last training pass, laid out like the model's parameters.
  [[nodiscard]] const Buffer<S>& gradient() const noexcept { return gradient_; }
  /// Log-probabilities of the last forward pass: node u, or its place among the nodes the pass was asked for, and
  /// class c at [u · class_stride() + c].
  [[nodiscard]] const S* log_probabilities() const noexcept { return output_.log_probabilities(); }
  [[nodiscard]] Index class_stride() const noexcept { return output_.stride(); }

  /// What a training pass and evaluations with the same parameters can share: the embeddings of both, in one walk
  /// over the features, and the posterior, where it depends on no embeddings with dropout because the sheaf learner
  /// has an encoder of its own.
  ///
  /// It holds until the next begin(), or a pass of this network that does without.
  ///
  /// \param pass  the training pass to come: its seed, epoch and dropouts count
  void begin(const ParameterSet<S>& parameters, const TrainingPass<S>& pass) {
    for_masks(pass, [](DropoutMask& mask, const Dropout& dropout) {
      if (dropout.active()) mask.take_ahead();
    });
    embed(parameters, pass, true);
    if constexpr (sampled) {
      if (has_sheaf_encoder()) learn(parameters);
    }
  }
  /// Draws masks for the next training pass, as long as go_on() holds: after a begin() with the same dropouts, also
  /// while another thread runs the pass that was begun. The next begin() takes them over; those that are missing are
  /// drawn when they are wanted.
  ///
  /// \param pass  the next pass; of several samples, the first one has these masks
  template <class GoOn>
  void draw_masks_ahead(const TrainingPass<S>& pass, const GoOn& go_on) {
    for_masks(pass, [&](DropoutMask& mask, const Dropout& dropout) {
      if (dropout.active() && go_on()) mask.draw_ahead(dropout);
    });
  }

  /// Computes the loss and, in gradient(), its derivative with respect to every parameter.
  PassResult train_pass(const ParameterSet<S>& parameters, const TrainingPass<S>& pass) {
    const Index samples = samples_of(pass.samples);
    const double share = 1 / static_cast<double>(samples);
    const bool closed_form = has_closed_form && pass.kl_estimator == KlEstimator::closed_form;
    const double pair_share = share / static_cast<double>(sheaves_.size());
    const NodeSelection nodes = pass.only_nodes ? NodeSelection(pass.nodes) : NodeSelection(graph_.node_count());
    PassResult result;
    clear_gradient(parameters);
    assert(begun_ || !pass.begun);
    if (!pass.begun) embed(parameters, pass, false);
    start(parameters, embedding_.output(), pass.begun ? this : nullptr);
    if constexpr (sampled) {
      if (closed_form) result.kl = mean_kl();
      posterior_.begin_backward(threads_, closed_form ? pass.kl_weight : 0.0);
      sheaf_gradient_.weight_bar.fill(S(0));
    }
    for (Index k = 0; k < samples; ++k) {
      forward_sample(parameters, pass, nodes, static_cast<std::uint32_t>(k), k, true);
      result.nll += share * output_.loss(pass.labels, pass.nodes);
      if constexpr (sampled) {
        for (std::size_t s = 0; !closed_form && s < sheaves_.size(); ++s) {
          const SheafNoise<S> noise = noise_of(pass, s, static_cast<std::uint32_t>(k), k);
          result.kl += pair_share * posterior_.monte_carlo_kl(threads_, noise, sheaves_[s]);
        }
      }
      backward_sample(parameters, pass, k, share, closed_form ? 0.0 : pass.kl_weight * pair_share);
      if (k == 0) {
        std::swap(x_bar_, embedding_bar_);
      } else {
        add_array(threads_, x_bar_.size(), x_bar_.data(), embedding_bar_.data());
      }
    }
    if constexpr (sampled) backward_posterior(parameters);
    embedding_.backward(threads_, parameters, embedding_bar_.data(), scratch_[0].data(), gradient_);
    result.loss = result.nll + pass.kl_weight * result.kl;
    return result;
  }

  /// Forward passes without dropout, one per posterior sample; the encoder and the sheaf learner run once.
  ///
  /// \param use  called as use(k) after sample k = 0 … samples − 1, with log_probabilities() valid
  /// \param noise  explicit noise as in TrainingPass, or empty
  /// \param begun    a network of the same model and graph whose begin() had these parameters, and still holds
  ///                 throughout, or null
  /// \param nodes    whose log_probabilities() are wanted, in increasing order; empty: all nodes
  /// \returns the number of samples drawn: 1 when nothing is random
  template <class Use>
  Index evaluate(const ParameterSet<S>& parameters, std::uint64_t seed, std::uint32_t epoch, Index samples,
                 const Use& use, const std::vector<const S*>& noise = {}, const Network* begun = nullptr,
                 std::span<const std::int32_t> nodes = {}) {
    TrainingPass<S> pass;
    pass.seed = seed;
    pass.epoch = epoch;
    pass.noise = noise;
    assert(begun == nullptr || begun->begun_);
    if (begun == nullptr) embed(parameters, pass, false);
    start(parameters, begun != nullptr ? begun->embedding_.clean() : embedding_.output(), begun);
    const Index count = samples_of(samples);
    const NodeSelection wanted = nodes.empty() ? NodeSelection(graph_.node_count()) : NodeSelection(nodes);
    for (Index k = 0; k < count; ++k) {
      // Evaluation draws from the upper half of the sample numbers, so that it shares no noise with training.
      const std::uint32_t sample = static_cast<std::uint32_t>(0x8000 + k % 0x8000);
      forward_sample(parameters, pass, wanted, sample, k, false, count > 1);
      use(k);
    }
    return count;
  }

  /// KL(posterior ‖ prior), averaged over incident pairs, of the posterior this network computed last; 0 for
  /// deterministic models.
  [[nodiscard]] double mean_kl() {
    if constexpr (has_closed_form) {
      return posterior_.mean_kl(threads_);
    } else {
      return 0;
    }
  }

 private:
  using Posterior = typename Model::Posterior;
  static constexpr bool sampled = Model::bayesian && is_learned<Family>;
  static constexpr bool has_closed_form = sampled && detail::closed_form_kl<Posterior>;
  struct Nothing {};
  template <class Q>
  struct SourceOf {
    using type = VariationalSheaf<Q, S>;
  };
  using Source = typename std::conditional_t<sampled, SourceOf<Posterior>, std::type_identity<Nothing>>::type;
  static Source posterior_of([[maybe_unused]] const Model& model, [[maybe_unused]] const EdgeBlocks<S>& blocks) {
    if constexpr (sampled) {
      return Source(blocks, model.posterior());
    } else {
      return {};
    }
  }

  static const Graph& checked(const Model& model, const Graph& graph, const NodeFeatures& features, int threads) {
    require(threads >= 1, "threads", threads, "must be at least 1");
    require(features.rows() == graph.node_count(), "features.rows", features.rows(),
            concat("must equal the number of nodes, ", graph.node_count()));
    require(features.columns() == model.options().features, "features.columns", features.columns(),
            concat("the model was built for ", model.options().features));
    return graph;
  }
  static NodeFeatures normalised(NodeFeatures features) {
    features.normalise_rows();
    return features;
  }
  [[nodiscard]] static Index samples_of(Index asked) {
    return sampled ? asked : 1;
  }
  /// Zeros what backward passes add to: all but the encoders' weights.
  void clear_gradient(const ParameterSet<S>& parameters) {
    for (std::size_t id = 0; id < parameters.info().size(); ++id) {
      const ParameterInfo& info = parameters.info()[id];
      const bool overwritten = static_cast<ParameterId>(id) == layout_.encoder.weight ||
                               static_cast<ParameterId>(id) == layout_.sheaf_encoder.weight;
      if (!overwritten) std::fill_n(gradient_.data() + info.offset, info.size, S(0));
    }
  }

  /// Calls use(mask, dropout) for the dropouts of a training pass, with its first sample.
  template <class Use>
  void for_masks(const TrainingPass<S>& pass, const Use& use) {
    use(embedding_.entry_mask(), pass.of_features());
    use(embedding_.mask(), pass.of_hidden());
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      use(layers_[l].mask(), pass.of_layer(l));
      if (l < learner_inputs_.size()) use(learner_inputs_[l].mask(), pass.of_learner(l));
    }
  }
  [[nodiscard]] bool has_sheaf_encoder() const noexcept { return layout_.sheaf_encoder.weight >= 0; }

  /// Embeddings for a pass, and without dropouts if they are wanted.
  void embed(const ParameterSet<S>& parameters, const TrainingPass<S>& pass, bool clean) {
    embedding_.forward(threads_, parameters, pass.of_features(), pass.of_hidden(), clean);
    begun_ = clean;
  }
  /// Starts a pass from its embeddings; for Bayesian models with the posterior of `begun` where it has one for all
  /// passes.
  void start(const ParameterSet<S>& parameters, const S* embedding, const Network* begun) {
    start_ = embedding;
    if constexpr (sampled) {
      const bool shared = begun != nullptr && has_sheaf_encoder();
      learned_ = shared ? begun : this;
      if (!shared) learn(parameters);
    }
  }
  /// The posterior, from the sheaf encoder's embeddings or those of the pass.
  void learn(const ParameterSet<S>& parameters) {
    if (!has_sheaf_encoder()) {
      learn_from(parameters, start_);
      return;
    }
    sheaf_encoder_.forward(threads_, parameters, Dropout{}, Dropout{});
    learn_from(parameters, sheaf_encoder_.output());
  }
  void learn_from(const ParameterSet<S>& parameters, const S* embedding) {
    learner_input_ = embedding;
    learners_[0].forward(threads_, parameters, embedding);
    if constexpr (sampled) posterior_.activate(threads_, learners_[0]);
  }

  /// All layers and, for `nodes`, the output of one sample.
  ///
  /// \param training   keep what the backward pass reads
  /// \param same_input  more than one sample starts from these embeddings: mix them once
  void forward_sample(const ParameterSet<S>& parameters, const TrainingPass<S>& pass, const NodeSelection& nodes,
                      std::uint32_t sample, Index noise_index, bool training, bool same_input = false) {
    using Mixed = typename DiffusionLayer<Family, S>::Mixed;
    const S* x = start_;
    const NodeSelection all(graph_.node_count());
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if (l < sheaves_.size()) build_sheaf(parameters, pass, l, sample, noise_index, x, training);
      const NodeSelection& here = l + 1 < layers_.size() ? all : nodes;  // others are diffused further
      if (training) {
        layers_[l].forward(threads_, parameters, sheaf_of(l), x, pass.of_layer(l, sample), here);
      } else {
        const Mixed mixed = l > 0 || !same_input ? Mixed::no : noise_index > 0 ? Mixed::known : Mixed::wanted;
        layers_[l].evaluate(threads_, parameters, sheaf_of(l), x, here, mixed, scratch_[0].data());
      }
      x = layers_[l].output();
    }
    output_.forward(threads_, parameters, x, nodes);
  }

  [[nodiscard]] NetworkSheaf<Family, S>& sheaf_of(std::size_t layer) {
    return sheaves_[std::min(layer, sheaves_.size() - 1)];
  }
  [[nodiscard]] SheafLearner<S>& learner_of(std::size_t sheaf) {
    return learners_[std::min(sheaf, learners_.size() - 1)];
  }

  void build_sheaf(const ParameterSet<S>& parameters, const TrainingPass<S>& pass, std::size_t s,
                   std::uint32_t sample, Index noise_index, const S* x, bool training) {
    using Map = typename NetworkSheaf<Family, S>::Map;
    NetworkSheaf<Family, S>& sheaf = sheaves_[s];
    if constexpr (sampled) {
      const SheafNoise<S> noise = noise_of(pass, s, sample, noise_index);
      const Network& learned = *learned_;
      sheaf.build(threads_, learned.learners_[0].edge_weights(), training,
                  [&](Index block, Map (&map)[2]) { learned.posterior_.sample_block(noise, block, map); });
    } else {
      SheafLearner<S>& learner = learners_[s];
      learner.forward(threads_, parameters, learner_inputs_[s].forward(threads_, x, pass.of_learner(s, sample)));
      sheaf.build(threads_, learner.edge_weights(), training, [&](Index block, Map (&map)[2]) {
        mean_maps<Family>(learner, point_, block, map);
      });
    }
  }

  /// Where the maps of sheaf s of a sample are drawn from.
  [[nodiscard]] SheafNoise<S> noise_of(const TrainingPass<S>& pass, std::size_t s, std::uint32_t sample,
                                       Index noise_index) const {
    SheafNoise<S> noise{
        Stream{pass.seed, Purpose::sheaf_noise, pass.epoch, static_cast<std::uint32_t>(s), sample}};
    if (!pass.noise.empty()) {
      noise.values = pass.noise.at(static_cast<std::size_t>(noise_index) * sheaves_.size() + s);
    }
    return noise;
  }

  /// Output and layers backwards; leaves the derivative of the embedding in x_bar_.
  void backward_sample(const ParameterSet<S>& parameters, const TrainingPass<S>& pass, Index sample, double share,
                       double monte_carlo_weight) {
    S* output_bar = scratch_[0].data();
    output_.backward(threads_, parameters, layers_.back().output(), pass.labels, pass.nodes, share, output_bar,
                     gradient_);
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const bool same_sheaf = l + 1 < layers_.size() && l + 1 >= sheaves_.size();
      layers_[l].backward(threads_, parameters, sheaf_of(l), sheaf_gradient_, same_sheaf, output_bar,
                          x_bar_.data(), scratch_[0].data(), scratch_[1].data(), gradient_);
      output_bar = x_bar_.data();
      if (l < sheaves_.size()) backward_sheaf(parameters, pass, sample, l, monte_carlo_weight);
    }
  }

  void backward_sheaf(const ParameterSet<S>& parameters, [[maybe_unused]] const TrainingPass<S>& pass,
                      [[maybe_unused]] Index sample, std::size_t s, [[maybe_unused]] double monte_carlo_weight) {
    if constexpr (is_learned<Family>) {
      using Map = typename NetworkSheaf<Family, S>::Map;
      SheafLearner<S>& learner = learner_of(s);
      if constexpr (Model::bayesian) {
        const S share = posterior_.pair_share(monte_carlo_weight);
        const SheafNoise<S> noise = noise_of(pass, s, static_cast<std::uint32_t>(sample), sample);
        sheaves_[s].backward(threads_, learner.edge_weights(), sheaf_gradient_,
                             [&](Index block, int side, const Map& map, const Map& map_bar) {
                               posterior_.sample_backward(noise, block, side, map, map_bar, share);
                             });
      } else {
        sheaf_gradient_.weight_bar.fill(S(0));
        sheaves_[s].backward(threads_, learner.edge_weights(), sheaf_gradient_,
                             [&](Index block, int side, const Map&, const Map& map_bar) {
                               mean_map_backward<Family>(learner, point_, block, side, map_bar);
                             });
        take_weight_gradient(learner);
        const LearnerInput<S>& input = learner_inputs_[s];
        S* target = input.dropped() ? scratch_[0].data() : x_bar_.data();
        learner.backward(threads_, parameters, input.values(), gradient_, target, !input.dropped());
        if (input.dropped()) input.backward(threads_, target, x_bar_.data());
      }
    }
  }

  void take_weight_gradient(SheafLearner<S>& learner) {
    if (!learner.has_edge_weights()) return;
    std::copy_n(sheaf_gradient_.weight_bar.data(), sheaf_gradient_.weight_bar.size(), learner.edge_weights_bar());
  }

  /// From the posterior's accumulated derivatives to the sheaf learner and its embeddings.
  void backward_posterior(const ParameterSet<S>& parameters) {
    if constexpr (sampled) {
      SheafLearner<S>& learner = learners_[0];
      posterior_.end_backward(threads_, learner);
      take_weight_gradient(learner);
      const bool own_encoder = has_sheaf_encoder();
      S* target = own_encoder ? scratch_[0].data() : embedding_bar_.data();
      learner.backward(threads_, parameters, learner_input_, gradient_, target, !own_encoder);
      if (own_encoder) sheaf_encoder_.backward(threads_, parameters, scratch_[0].data(), gradient_);
    }
  }

  ModelOptions options_;
  ModelLayout layout_;
  int threads_;
  const Graph& graph_;
  SparseInput<S> input_;
  EdgeBlocks<S> blocks_;
  DiffusionShape<S> shape_;
  NodeEmbedding<S> embedding_;
  Encoder<S> sheaf_encoder_;
  OutputLayer<S> output_;
  NetworkSheafGradient<Family, S> sheaf_gradient_;
  [[no_unique_address]] Source posterior_;
  PointMap<Family> point_{options_.parametrisation};
  std::vector<SheafLearner<S>> learners_;
  std::vector<NetworkSheaf<Family, S>> sheaves_;
  std::vector<DiffusionLayer<Family, S>> layers_;
  std::vector<LearnerInput<S>> learner_inputs_;
  Buffer<S> x_bar_, embedding_bar_, scratch_[2];
  Buffer<S> gradient_;
  bool begun_ = false;        ///< does the last begin() hold?
  const S* start_ = nullptr;  ///< embeddings of the present pass
  const S* learner_input_ = nullptr;
  const Network* learned_ = nullptr;  ///< whose posterior samples are drawn from
};

}  // namespace sheafnn
