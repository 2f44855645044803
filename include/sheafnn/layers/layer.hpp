/// \file
/// Layer: one of the layers of a network, X_l ↦ X_{l+1}, and the calls that its two passes get. The library's are
/// DiffusionLayer, PolynomialDiffusionLayer and InitialResidualLayer, and the layers of every_layer.hpp; a layer of your own is a
/// class template
///
///     template <class Family, class S>
///     class MyLayer : public sheafnn::layers::WeightedLayer<Family, S, MyWeights> { … };
///
/// whose constructor takes a graph, the shape of the features and a LayerSetting (docs/extending.md, "Use a layer in
/// a network").
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/node_selection.hpp"
#include "sheafnn/layers/diffusion.hpp"
#include "sheafnn/layers/halo_rows.hpp"
#include "sheafnn/layers/layer_setting.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/layers/polynomial_activation.hpp"
#include "sheafnn/layers/sheaf_blocks.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/parameter_list.hpp"

namespace sheafnn::layers {

/// How an evaluation gets Y = (I ⊗ A) X Bᵀ. It computes it, also keeps it for the next evaluation with the same X, or takes
/// what the last evaluation kept.
enum class MixedFeatures { compute, compute_and_keep, reuse };

/// W = S Y and Y, which the backward pass of a layer reads. Layers of one stack write them to the same memory; a layer whose
/// values were overwritten computes them again.
template <class S>
struct SharedRows {
  /// Unchecked: the same size in all calls.
  void take(Index size) {
    for (Buffer<S>* rows : {&scaled, &mixed}) {
      if (rows->empty()) rows->resize(size, to_be_written);
    }
  }
  Buffer<S> scaled, mixed;      ///< W and Y, n × d' × f
  /// The layer whose values they hold: its forward() sets it. Networks set null before forward() and after backward() of every
  /// layer, since others write to them.
  const void* owner = nullptr;
};

/// A forward pass of a layer. Features are n × d' × f, channels innermost.
template <RestrictionMapFamily Family, class S>
struct LayerCall {
  Execution execution;
  const SheafBlocks<Family, S>& sheaf;
  FeatureView<const S> x;           ///< X_l; stays in place until backward()
  FeatureView<const S> first = {};  ///< X_1, the first layer's input; stays in place as well
  NodeSelection nodes;              ///< at which the output is wanted; their list stays in place until backward()
  Dropout dropout = {};             ///< of X_l in training; see active_dropout()
  bool training = true;             ///< will backward() follow?
  MixedFeatures mixing = MixedFeatures::compute;  ///< of evaluations
  FeatureView<S> scratch = {};  ///< of evaluations: of the shape of x, overwritten; may be `scaled` of `rows`
  FilterWeights<const S> filter = {};             ///< what all layers share
  FeatureView<const S> before = {};  ///< X_{l−1}, of the first layer X_1; stays in place until backward()
  Noise<S> noise = {};               ///< of layers that draw something
  SharedRows<S>* rows = nullptr;     ///< stay in place until backward(); null: the layer has its own

  /// The dropout of X_l; evaluations have no dropout.
  [[nodiscard]] Dropout active_dropout() const { return training ? dropout : Dropout{}; }
};

/// The backward pass of the forward pass before it.
template <RestrictionMapFamily Family, class S>
struct LayerBackwardCall {
  Execution execution;
  const SheafBlocks<Family, S>& sheaf;             ///< of the forward pass
  SheafBlocksGradient<Family, S>& sheaf_gradient;  ///< derivatives of the sheaf's blocks
  bool accumulate = false;                         ///< add to sheaf_gradient instead of overwriting it
  FeatureView<const S>
      output_bar;                 ///< derivative of output(), of its shape; where that has all nodes, may be x_bar
  FeatureView<S> x_bar;           ///< derivative of x, overwritten
  FeatureView<S> first_bar = {};  ///< derivative of X_1; only layers that read X_1 add to it
  /// Working memory of the shape of x, overwritten. The first may be output_bar, and `mixed` of the forward pass's rows. The
  /// second may be empty if reads().work is false; then a forward pass has one backward pass.
  FeatureView<S> scratch[2] = {};
  FilterWeights<const S> filter = {};
  FilterWeights<S> filter_bar = {};  ///< added to
  FeatureView<S> before_bar = {};    ///< derivative of X_{l−1}; only layers that read X_{l−1} add to it
  double kl_weight = 0;              ///< factor of kl() in the loss
};

/// What a layer reads besides X_l at its nodes and their neighbours.
struct LayerReads {
  bool first = false;     ///< X_1
  bool scales = false;    ///< scalings of the neighbours' blocks, which parts of a graph exchange
  bool before = false;    ///< X_{l−1}
  bool maps = false;      ///< the map of every arc, SheafBlocks::arc_map()
  bool blocks = true;     ///< blocks of the Laplacian
  Index scores = 0;       ///< values of noise per arc and per node, of layers that draw something
  bool own_arcs = false;  ///< on a part of a graph, cut edges have derivatives through the part's own arcs alone
  bool work = true;       ///< scratch[1] of backward passes; layers without it take W and Y to LayerCall::rows

  /// What the two read together. Takes any.
  [[nodiscard]] LayerReads with(const LayerReads& other) const noexcept {
    return {first || other.first,       scales || other.scales, before || other.before,
            maps || other.maps,         blocks || other.blocks, std::max(scores, other.scores),
            own_arcs || other.own_arcs, work || other.work};
  }
};

/// Buffers of one layer on one graph.
template <RestrictionMapFamily FamilyType, class S>
class Layer {
 public:
  using Family = FamilyType;

  Layer() = default;
  Layer(Layer&&) = default;
  Layer& operator=(Layer&&) = default;
  virtual ~Layer() = default;

  /// The form that ModelOptions::layer has by default, where this is the first kind of a model's LayerKinds.
  static constexpr LayerForm form = LayerForm::diffusion;

  /// Is it a layer of networks with these options? By default it is one of networks without another form of layer, filter and
  /// initial residual. Takes any setting.
  [[nodiscard]] static bool suits(const LayerSetting& of) {
    return of.form == LayerForm::diffusion && !of.filter.active() && !of.residual.initial();
  }

  /// X_{l+1} at the nodes of the last pass, one row of d' × f each.
  [[nodiscard]] virtual FeatureView<const S> output() const noexcept = 0;
  /// The memory of output(), n × d' × f, which backward() does not read; empty: it does.
  [[nodiscard]] virtual FeatureView<S> output_place() noexcept { return {}; }
  /// Adds arrays that forward() writes before anything reads them, first the memory of output(). Until the next forward() another
  /// layer of the same kind may have them, but for MixedFeatures::reuse. A layer that adds none keeps all of its arrays.
  virtual void list_memory(std::vector<Buffer<S>*>&) {}
  /// The mask of the dropout of X_l.
  [[nodiscard]] virtual DropoutMask& mask() noexcept = 0;
  [[nodiscard]] virtual LayerReads reads() const noexcept { return {}; }
  /// Points the weights, and their derivatives, at the parameters of a network.
  virtual void declare(ParameterList<const S>& list) = 0;
  virtual void declare(ParameterList<S>& list) = 0;

  /// Computes output().
  ///
  /// \throws std::invalid_argument  features of another shape, a sheaf over another graph. Unchecked: `nodes` are nodes of
  ///                                the graph
  virtual void forward(const LayerCall<Family, S>& call) = 0;
  /// Computes the derivatives of x, of the weights (added to) and of the sheaf's blocks from the derivative of
  /// output().
  ///
  /// \throws std::invalid_argument  views of another shape, a sheaf over another graph. Unchecked: sheaf_gradient is of
  ///                                the graph, a training pass came before
  virtual void backward(const LayerBackwardCall<Family, S>& call) = 0;
  /// KL(q ‖ prior) of what the last forward pass has drawn; 0 where a layer draws nothing.
  [[nodiscard]] virtual double kl() const { return 0; }
};

/// A layer with weights, its output and what it is made from.
///
/// \tparam WeightsType  Weights<T> with views of T, and declare(ParameterList<T>&, const LayerSetting&)
template <RestrictionMapFamily Family, class S, template <class> class WeightsType>
class WeightedLayer : public Layer<Family, S> {
 public:
  template <class T>
  using Weights = WeightsType<T>;

  [[nodiscard]] FeatureView<const S> output() const noexcept final {
    return {output_.data(), nodes_.count(), diffusion_->coordinates, diffusion_->channels};
  }
  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override { list.push_back(&output_); }
  void declare(ParameterList<const S>& list) final { weights_.declare(list, setting_); }
  void declare(ParameterList<S>& list) final { weights_bar_.declare(list, setting_); }
  /// Points the weights at these views, in place of declare(). Unchecked: their shapes.
  void set_weights(const Weights<const S>& weights) { weights_ = weights; }
  /// Unchecked: the shapes of the derivatives.
  void set_gradient(const Weights<S>& weights_bar) { weights_bar_ = weights_bar; }

 protected:
  /// `graph` and `diffusion` must outlive the layer.
  ///
  /// \throws std::invalid_argument  a shape of another graph or family
  WeightedLayer(const Graph& graph, const DiffusionShape<S>& diffusion, const LayerSetting& setting)
      : graph_((detail::require_fits(diffusion, graph, Family::stalk_dimension), &graph)),
        diffusion_(&diffusion),
        setting_(setting),
        output_(graph.node_count() * diffusion.row(), to_be_written) {
    setting_.coordinates = diffusion.coordinates;
    setting_.channels = diffusion.channels;
    detail::clear_halo(graph, output_.data(), diffusion.row());
  }

  /// \throws std::invalid_argument  fixed filters, naming a form of layers that does not support them
  void require_no_filters(LayerForm form) const { layers::require_no_filters(diffusion_->filters, form); }
  template <class T>
  SHEAFNN_NOINLINE void check_features(const FeatureView<T>& x, std::string_view name) const {
    require_shape(x, graph_->node_count(), diffusion_->coordinates, diffusion_->channels, name);
  }
  /// The nodes of the last pass whose rows are this process's own.
  [[nodiscard]] NodeSelection own_nodes() const {
    return nodes_.first(nodes_.lower_bound(graph_->own_node_count()));
  }
  /// The rows of the own nodes.
  template <class T>
  [[nodiscard]] FeatureView<T> own(const FeatureView<T>& x) const {
    return x.first(graph_->own_node_count());
  }
  /// A buffer of at least as many rows as the last pass has nodes.
  [[nodiscard]] FeatureView<S> at_nodes(Buffer<S>& buffer) const {
    return {buffer.data(), nodes_.count(), diffusion_->coordinates, diffusion_->channels};
  }
  /// Checks a call, and keeps its nodes.
  SHEAFNN_NOINLINE void begin(const LayerCall<Family, S>& call) {
    check_features(call.x, "x");
    if (this->reads().first) check_features(call.first, "first");
    if (this->reads().before) check_features(call.before, "before");
    detail::require_over(*graph_, call.sheaf);
    nodes_ = call.nodes;
  }
  void check(const LayerBackwardCall<Family, S>& call) const {
    require_shape(call.output_bar, nodes_.count(), diffusion_->coordinates, diffusion_->channels, "output_bar");
    check_features(call.x_bar, "x_bar");
    if (this->reads().first) check_features(call.first_bar, "first_bar");
    if (this->reads().before) check_features(call.before_bar, "before_bar");
    detail::require_over(*graph_, call.sheaf);
  }
  void check_scratch(const LayerCall<Family, S>& call) const {
    if (!call.training) check_features(call.scratch, "scratch");
  }
  void check_scratch(const LayerBackwardCall<Family, S>& call) const {
    check_features(call.scratch[0], "scratch[0]");
    if (this->reads().work || call.scratch[1].data() != nullptr) check_features(call.scratch[1], "scratch[1]");
  }

  const Graph* graph_;
  const DiffusionShape<S>* diffusion_;  ///< the shape of features
  LayerSetting setting_;
  Weights<const S> weights_;
  Weights<S> weights_bar_;
  NodeSelection nodes_;  ///< of the last pass
  Buffer<S> output_;
};

}  // namespace sheafnn::layers
