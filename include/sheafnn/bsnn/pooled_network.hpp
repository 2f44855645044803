/// \file
/// Network of a PooledModel: one row of outputs per graph of a union. It has the passes of every Network, so elbo(),
/// train(), predict() and your own loops work with it. Indices of nodes become indices of graphs.
///
///     X_{L+1} of the node network,   r_g = pool(X_{L+1} at the nodes of graph g),   Y = r W_outᵀ + b_out
///
/// A pass over some of the graphs (ForwardPass::nodes) computes on these graphs alone. Other graphs contribute neither
/// to its outputs and derivatives nor to its KL term, a mean over the incident pairs of these graphs. Random numbers
/// have the addresses of the whole union. Source: math: "Pooling".
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/pooled_model.hpp"
#include "sheafnn/core/kept_memory.hpp"
#include "sheafnn/graph/selected_graphs.hpp"
#include "sheafnn/layers/graph_pooling.hpp"
#include "sheafnn/layers/harmonic_pooling.hpp"
#include "sheafnn/layers/readout_head.hpp"

namespace sheafnn {

namespace detail {

/// The network and the buffers for some graphs of a union, or all.
template <class NodeModel>
class PooledPart {
 public:
  using S = typename NodeModel::Scalar;
  using Family = typename NodeModel::Family;
  using Model = PooledModel<NodeModel>;

  /// \param graphs  empty: all. Unchecked: indices of graphs are in range
  /// \throws std::invalid_argument  some of the graphs, with layers that draw something
  PooledPart(const Model& model, const Graph& whole, const SeenFeatures& seen,
             std::span<const std::int32_t> graphs)
      : graphs_(graphs.begin(), graphs.end()) {
    const bool all = graphs.empty();
    SeenFeatures own;
    if (!all) {
      const LayerSetting setting = model.node_model().layer_setting();
      require(!layers::draws(setting.form, setting.attention, setting.directed), "layer", to_string(setting.form),
              "layers that draw something need all graphs in one step");
      selected_.emplace(whole, seen.features, graphs, sees_edges(model.options()));
      own = {selected_->features(), selected_->numbers().first_entry};
    }
    const Graph& graph = all ? whole : selected_->graph();
    network_.emplace(model.node_model(), graph, all ? seen : own);
    const Index width = model.hidden_width();
    pooled_bar_.resize(graph.graph_count() * width);
    if (model.options().pooling == Pooling::harmonic) {
      for (Buffer<S>& scratch : scratch_) scratch.resize(graph.node_count() * width, to_be_written);
      harmonic_.emplace(graph, network_->shape(), model.options().pooling_steps);
    } else {
      pooling_.emplace(graph, width, model.options().pooling);
    }
    readout.emplace(graph.graph_count(), width, model.options().classes, model.options().readout_layers - 1);
  }
  PooledPart(const PooledPart&) = delete;
  PooledPart& operator=(const PooledPart&) = delete;

  [[nodiscard]] bool is_of(std::span<const std::int32_t> graphs) const {
    return std::equal(graphs.begin(), graphs.end(), graphs_.begin(), graphs_.end());
  }
  [[nodiscard]] Network<NodeModel>& network() noexcept { return *network_; }
  void begin(const ForwardPass<S>& pass) {
    sample_.reset();
    backward_.reset();
    pass_ = network_->begin(pass);
  }
  void begin_backward(const BackwardOptions& options) { backward_ = pass_->begin_backward(options); }
  double finish_backward() { return backward_->finish(); }
  [[nodiscard]] bool drawn() const noexcept { return sample_.has_value(); }

  /// r of a sample.
  MatrixView<const S> pool(Index sample, std::span<const S> attention, bool keeps) {
    sample_ = pass_->diffuse(sample);
    x_ = sample_->view();
    if (!harmonic_) {
      pooling_->forward(network_->execution(), x_.rows(), attention);
      return pooling_->output();
    }
    harmonic_->forward({.execution = network_->execution(),
                        .sheaf = last_sheaf(),
                        .x = x_,
                        .first = x_,
                        .nodes = NodeSelection(x_.nodes()),
                        .training = keeps,
                        .scratch = view(scratch_[0])});
    return harmonic_->output();
  }
  /// Adds the derivatives of the layers' weights, of Q's parameters and of H, from the derivative of r in pooled_bar().
  void accumulate(std::span<const S> attention, std::span<S> attention_bar) {
    const FeatureView<S> bar = network_->features_bar();
    if (!harmonic_) {
      pooling_->backward(network_->execution(), x_.rows(), attention, pooled_bar(), bar.rows(), attention_bar);
      backward_->add(*sample_, bar);
      return;
    }
    network_->sheaf_source().gradient().map_bar.fill(S(0));  // layers add to it, and the pooling reads no maps
    harmonic_->backward({.execution = network_->execution(),
                         .sheaf = last_sheaf(),
                         .sheaf_gradient = network_->sheaf_source().gradient(),
                         .output_bar = {},
                         .x_bar = bar,
                         .first_bar = {},
                         .scratch = {view(scratch_[0]), view(scratch_[1])}},
                        pooled_bar());
    backward_->add(*sample_, bar, true);
  }
  [[nodiscard]] MatrixView<S> pooled_bar() noexcept {
    return {pooled_bar_.data(), network_->graph().graph_count(), network_->shape().row()};
  }
  [[nodiscard]] MatrixView<const S> pooled() const noexcept {
    return harmonic_ ? harmonic_->output() : pooling_->output();
  }

  std::optional<ReadoutHead<S>> readout;

 private:
  /// The sheaf of the last layer in the last draw.
  [[nodiscard]] const SheafBlocks<Family, S>& last_sheaf() const {
    const auto& stack = network_->sheaf_source().stack();
    return stack[stack.count() - 1];
  }
  [[nodiscard]] FeatureView<S> view(Buffer<S>& buffer) const {
    return {buffer.data(), x_.nodes(), x_.coordinates(), x_.channels()};
  }

  std::vector<std::int32_t> graphs_;
  std::optional<SelectedGraphs> selected_;
  std::optional<Network<NodeModel>> network_;
  std::optional<BegunPass<Network<NodeModel>>> pass_;
  std::optional<DrawnSample<FeatureView<const S>>> sample_;  ///< X_{L+1} of the last draw
  std::optional<BackwardPass<Network<NodeModel>>> backward_;
  std::optional<GraphPooling<S>> pooling_;
  std::optional<HarmonicPooling<Family, S>> harmonic_;
  FeatureView<const S> x_;  ///< of sample_
  Buffer<S> pooled_bar_, scratch_[2];
};

}  // namespace detail

/// Refers to the model, whose parameters may change between passes, and to the graph; both must outlive it.
template <class NodeModel>
class Network<PooledModel<NodeModel>> {
 public:
  using Model = PooledModel<NodeModel>;
  using Family = typename Model::Family;
  using S = typename Model::Scalar;

  /// \param graph     a union, or one graph
  /// \param features  n × p
  /// \throws std::invalid_argument  features that do not fit the model or the graph, a graph without nodes, or a part
  ///                                of a larger graph
  Network(const Model& model, const Graph& graph, const NodeFeatures& features, Execution execution = {})
      : model_(model), graph_(graph), execution_(execution), gradient_(model.parameters().size()) {
    require(graph.part() == nullptr, "graph", "a part of a larger one", "outputs per graph need whole graphs");
    seen_.features = detail::plan_of(model.options(), graph, features).apply(features);
    nodes_ = NodeSelection(Index{0});
  }
  Network(const Model&&, const Graph&, const NodeFeatures&, Execution = {}) = delete;  // a temporary would dangle
  Network(const Model&, const Graph&&, const NodeFeatures&, Execution = {}) = delete;

  [[nodiscard]] const Model& model() const noexcept { return model_; }
  /// The union.
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] Execution execution() const noexcept { return execution_; }
  void set_execution(Execution execution) noexcept { execution_ = execution; }
  /// Is anything random, apart from dropout?
  [[nodiscard]] bool draws() const {
    const layers::LayerSetting setting = model_.node_model().layer_setting();
    return detail::NetworkParts<NodeModel>::is_sampled ||
           layers::draws(setting.form, setting.attention, setting.directed);
  }
  /// The number of samples to draw: `requested`, or 1 if nothing is random. Takes any number.
  [[nodiscard]] Index sample_count(Index requested) const { return draws() ? requested : 1; }
  /// Graphs of the rows of outputs.
  [[nodiscard]] const NodeSelection& nodes() const noexcept { return nodes_; }
  /// As for every Network, for the current pass. \throws std::logic_error  begin() did not come before
  [[nodiscard]] MatrixView<const S> outputs() const { return std::as_const(*begun("outputs").readout).output(); }
  [[nodiscard]] MatrixView<S> output_bar() { return begun("output_bar").readout->output_bar(); }
  /// Derivatives of the last backward pass, laid out like the model's parameters.
  [[nodiscard]] const Buffer<S>& gradient() const noexcept { return gradient_; }

  /// Begins a pass over the graphs pass.nodes; explicit noise belongs to their arcs, in order.
  ///
  /// \throws std::invalid_argument  rates, samples, graphs or noise out of range or of a wrong length
  BegunPass<Network> begin(const ForwardPass<S>& pass) {
    part_ = nullptr;
    detail::check_pass(pass, graph_.graph_count());
    std::span<const std::int32_t> graphs = pass.nodes;
    if (static_cast<Index>(graphs.size()) == graph_.graph_count()) graphs = {};
    // Training passes and evaluations have separate parts, because the graphs of each stay the same from epoch to
    // epoch.
    std::unique_ptr<detail::PooledPart<NodeModel>>& part = parts_[pass.training ? 0 : 1];
    // Mini-batches change with every step, and their networks with them.
    const bool made = part == nullptr || !part->is_of(graphs);
    const detail::KeptMemory::Use use(memory_, made);
    if (made) {
      part.reset();
      part = std::make_unique<detail::PooledPart<NodeModel>>(model_, graph_, seen_, graphs);
    }
    part->network().set_execution(execution_);
    ForwardPass<S> of_nodes = pass;
    of_nodes.nodes = {};
    part->begin(of_nodes);
    nodes_ = pass.nodes.empty() ? NodeSelection(graph_.graph_count()) : NodeSelection(pass.nodes);
    keeps_ = pass.keeps();
    part_ = part.get();
    return detail::PassSteps::begun<false>(*this);
  }
  /// Raw outputs of pass.nodes, |nodes| × C, valid until the next pass. \throws std::invalid_argument  as begin()
  MatrixView<S> forward(const ForwardPass<S>& pass = {}) {
    return begin(pass).draw(pass.sample).view();
  }
  /// Computes the derivative of ⟨outputs_bar, outputs⟩ + λ KL in every parameter, into gradient().
  ///
  /// \returns the KL term
  /// \throws std::logic_error       no forward pass with training = true came before
  /// \throws std::invalid_argument  outputs_bar of another shape, options out of range
  double backward(const MatrixView<const S>& outputs_bar, const BackwardOptions& options = {}) {
    begin_backward(options);
    accumulate(outputs_bar);
    return finish_backward();
  }
  /// Does nothing, because the graphs of a union are not parts of one distributed graph. Takes any numbers.
  void sum_over_parts(double&, double&) const noexcept {}
  /// KL(Q ‖ prior) as in Network::kl(), over the graphs of the pass. \throws std::logic_error  begin() did not come
  /// before
  [[nodiscard]] double kl() { return begun("kl").network().kl(); }
  /// The node network of the current pass, on its graphs. \throws std::logic_error  begin() did not come before
  [[nodiscard]] Network<NodeModel>& node_network() { return begun("node_network").network(); }

 private:
  friend struct detail::PassSteps;

  /// Draws the sheaves of a sample and computes its outputs.
  MatrixView<S> draw(Index sample) {
    detail::PooledPart<NodeModel>& part = begun("draw");
    const detail::KeptMemory::Use use(memory_, false);
    const auto weights = weights_at<const S>(model_.parameters().values().data());
    const MatrixView<const S> pooled = part.pool(sample, weights.attention, keeps_);
    part.readout->forward(execution_, weights.hidden, weights.output, pooled);
    return part.readout->output();
  }
  template <class Use>
  void draw_all(Index count, const Use& use) {
    for (Index k = 0; k < count; ++k) use(draw(k));
  }
  void begin_backward(const BackwardOptions& options) {
    const detail::KeptMemory::Use use(memory_, false);
    begun("begin_backward").begin_backward(options);
    gradient_.fill(S(0));
  }
  /// Adds the derivatives from the derivative of the last draw's outputs.
  void accumulate(const MatrixView<const S>& outputs_bar) {
    detail::PooledPart<NodeModel>& part = begun("accumulate");
    if (!part.drawn()) throw std::logic_error("a backward pass needs a draw of a pass with training = true before it");
    const detail::KeptMemory::Use use(memory_, false);
    const auto weights = weights_at<const S>(model_.parameters().values().data());
    const auto bars = weights_at<S>(gradient_.data());
    part.readout->backward(execution_, weights.hidden, weights.output, part.pooled(), outputs_bar,
                           part.pooled_bar(), bars.hidden, bars.output);
    part.accumulate(weights.attention, bars.attention);
  }
  /// Completes gradient() from these sums. \returns the KL term, per incident pair of the graphs of the pass
  double finish_backward() {
    detail::PooledPart<NodeModel>& part = begun("finish_backward");
    const detail::KeptMemory::Use use(memory_, false);
    const double kl = part.finish_backward();
    const S* const of_layers = part.network().gradient().data();
    for (Index i = 0; i < gradient_.size(); ++i) gradient_[i] += of_layers[i];  // one of the two terms is 0
    return kl;
  }

  template <class T>
  struct Weights {
    std::vector<layers::LinearWeights<T>> hidden;
    layers::LinearWeights<T> output;
    std::span<T> attention;
  };
  template <class T>
  [[nodiscard]] Weights<T> weights_at(T* array) const {
    const layers::ParameterTable& table = model_.parameters();
    const auto linear = [&](const layers::LinearWeights<layers::ParameterSlot>& at) {
      return layers::LinearWeights<T>{detail::matrix_at(table, at.weight, array),
                                      detail::vector_at(table, at.bias, array)};
    };
    const auto& at = model_.node_model().layout().at;
    Weights<T> r;
    for (const auto& hidden : at.readout) r.hidden.push_back(linear(hidden));
    r.output = linear(at.output);
    if (model_.attention().id >= 0) r.attention = detail::vector_at(table, model_.attention(), array);
    return r;
  }
  [[nodiscard]] detail::PooledPart<NodeModel>& begun(std::string_view step) const {
    if (part_ == nullptr) throw std::logic_error(detail::concat(step, "() needs begin() before it"));
    return *part_;
  }

  const Model& model_;
  const Graph& graph_;
  Execution execution_;
  detail::SeenFeatures seen_;  ///< of the whole union
  detail::KeptMemory memory_;
  std::unique_ptr<detail::PooledPart<NodeModel>> parts_[2];
  detail::PooledPart<NodeModel>* part_ = nullptr;  ///< of the pass that has begun
  NodeSelection nodes_;
  bool keeps_ = false;
  detail::PassNumbers numbers_;
  Buffer<S> gradient_;
};

}  // namespace sheafnn
