/// \file
/// SheafDiffusionLayer: one differentiable diffusion layer for computations of your own,
///
///     X' = (1 + tanh ε) ∘ X − ELU(Δ_F (I ⊗ A) dropout(X) Bᵀ),
///
/// Δ_F being the normalised Laplacian of the sheaf with restriction maps F. Features, maps and weights go in as views,
/// and their derivatives come out as views. Source: paper, sheaf diffusion layer; math: "The model" (3.6), "Coboundary
/// and Laplacian" (1.3). Networks are made of DiffusionLayer, which shares sheaves and buffers between layers.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/limits.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"

namespace sheafnn::layers {

/// The options of a SheafDiffusionLayer. d' = D + add_lp + add_hp stalk coordinates.
struct SheafDiffusionOptions {
  Index channels = 1;      ///< f, 1 … 1024
  bool left = true;        ///< A, mixing stalk coordinates
  bool right = true;       ///< B, mixing channels
  bool activation = true;  ///< ELU
  Normalisation normalisation = Normalisation::augmented;
  bool add_lp = false;  ///< one more stalk coordinate with a fixed low-pass filter
  bool add_hp = false;  ///< one more, the last, with a high-pass filter
};

/// One layer on one graph, with what its backward pass needs; for one caller at a time. It can be moved.
/// math: "The model" (3.6).
///
/// \tparam Family  of the restriction maps
template <RestrictionMapFamily Family, std::floating_point S = float>
class SheafDiffusionLayer {
 public:
  static constexpr int stalk_dimension = Family::stalk_dimension;

  /// \param execution  number of threads; results do not depend on it
  /// \throws std::invalid_argument  channels out of range
  explicit SheafDiffusionLayer(Graph graph, const SheafDiffusionOptions& options = {}, Execution execution = {})
      : SheafDiffusionLayer(std::make_shared<const Graph>(std::move(graph)), options, execution) {}
  /// The same, with a graph that several layers share. \throws std::invalid_argument  as above, or a null pointer
  explicit SheafDiffusionLayer(std::shared_ptr<const Graph> graph, const SheafDiffusionOptions& options = {},
                               Execution execution = {})
      : options_(checked(graph, options)),
        execution_(execution),
        graph_(std::move(graph)),
        blocks_(std::make_unique<EdgeBlocks<S>>(*graph_)),
        shape_(std::make_unique<DiffusionShape<S>>(*graph_, stalk_dimension, options.add_lp, options.add_hp,
                                                   options.channels,
                                                   options.normalisation != Normalisation::block)),
        sheaf_(*graph_, *blocks_, options.normalisation),
        gradient_(*graph_, *blocks_),
        layer_(*graph_, *shape_, {.diffusion = {options.left, options.right, options.activation}}),
        y_bar_(graph_->node_count() * shape_->row()),
        r_bar_(y_bar_.size()),
        edge_weights_(blocks_->block_count() * EdgeBlocks<S>::width) {}

  [[nodiscard]] const Graph& graph() const noexcept { return *graph_; }
  [[nodiscard]] const SheafDiffusionOptions& options() const noexcept { return options_; }
  void set_execution(Execution execution) noexcept { execution_ = execution; }
  /// d'.
  [[nodiscard]] Index coordinates() const noexcept { return shape_->coordinates; }
  /// A = I, B = I, ε = 0.
  [[nodiscard]] DiffusionParameters<S> default_weights() const {
    DiffusionParameters<S> r = zero_weights();
    r.left.setIdentity();
    r.right.setIdentity();
    return r;
  }
  /// Zeros of the same shapes, for derivatives.
  [[nodiscard]] DiffusionParameters<S> zero_weights() const {
    const Index d = coordinates(), left = options_.left ? d : 0, right = options_.right ? options_.channels : 0;
    DiffusionParameters<S> r;
    r.left.setZero(left, left);
    r.right.setZero(right, right);
    r.epsilon.setZero(d);
    return r;
  }

  /// X', n × d' × f, valid until the next forward pass.
  ///
  /// \param maps          2m × map_size: a row per arc (sorted by source, target) with its map, matrices row by row as
  ///                      CellularSheaf takes them; empty for families without parameters. Rotations are not checked
  /// \param weights       A and B are ignored where the options leave them out
  /// \param x             X, n × d' × f; has to stay in place, unchanged, until backward()
  /// \param edge_weights  m values w_e that scale the maps at both ends of an edge; empty: 1
  /// \throws std::invalid_argument  a view of another shape, a rate out of range
  FeatureView<const S> forward(const MatrixView<const S>& maps, const DiffusionWeights<const S>& weights,
                               const FeatureView<const S>& x, std::span<const S> edge_weights = {},
                               const Dropout& dropout = {}) {
    if (is_learned<Family> || !maps.empty()) require_shape(maps, graph_->arc_count(), Family::map_size, "maps");
    if (!edge_weights.empty()) require_size(edge_weights, graph_->edge_count(), "edge_weights");
    require(dropout.rate >= 0 && dropout.rate < 1, "dropout.rate", dropout.rate, "must be at least 0 and below 1");
    require_shape(x, graph_->node_count(), coordinates(), options_.channels, "x");
    keep(weights);
    weighted_ = !edge_weights.empty();
    std::fill(std::copy(edge_weights.begin(), edge_weights.end(), edge_weights_.begin()), edge_weights_.end(),
              S(1));
    sheaf_.build(execution_, sheaf_weights(), true, [&](Index block, Map(&map)[2]) {
      for (int side = 0; side < 2; ++side) map[side] = load_map(block, side, maps);
    });
    layer_.set_weights(weights_);
    layer_.forward({execution_, sheaf_, x, x, NodeSelection(graph_->node_count()), dropout});
    kept_ = true;
    return layer_.output();
  }
  /// The same with maps and edge weights of a sheaf.
  ///
  /// \throws std::invalid_argument  as above, or a sheaf over another graph
  FeatureView<const S> forward(const CellularSheaf<Family, S>& sheaf, const DiffusionWeights<const S>& weights,
                               const FeatureView<const S>& x, const Dropout& dropout = {}) {
    require(sheaf.graph().node_count() == graph_->node_count() &&
                std::ranges::equal(sheaf.graph().edges(), graph_->edges()),
            "sheaf", "a sheaf over another graph", "must have the graph of the layer");
    Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> maps(graph_->arc_count(), Family::map_size);
    for (Index arc = 0; arc < maps.rows(); ++arc) {
      for (int k = 0; k < Family::map_size; ++k) maps(arc, k) = sheaf.map(arc)(k / map_columns, k % map_columns);
    }
    std::vector<S> edge_weights;
    if constexpr (CellularSheaf<Family, S>::has_edge_weights) {
      for (Index e = 0; e < graph_->edge_count(); ++e) edge_weights.push_back(sheaf.edge_weight(e));
    }
    return forward(MatrixView(std::as_const(maps)), weights, x, edge_weights, dropout);
  }

  /// Derivatives of ⟨output_bar, X'⟩ of the last forward pass. Entries of maps are free here: the derivative is not
  /// projected on the family's tangent space.
  ///
  /// \param output_bar        n × d' × f; may be x_bar
  /// \param x_bar             n × d' × f, overwritten
  /// \param maps_bar          as maps, added to; empty: not wanted
  /// \param weights_bar       added to; empty members are skipped
  /// \param edge_weights_bar  m, added to; empty: not wanted
  /// \throws std::invalid_argument  a view of another shape; edge_weights_bar after a pass without edge weights, or
  ///                                for a family without parameters
  /// \throws std::logic_error       no forward pass came before
  void backward(const FeatureView<const S>& output_bar, const FeatureView<S>& x_bar, const MatrixView<S>& maps_bar,
                const DiffusionWeights<S>& weights_bar, std::span<S> edge_weights_bar = {}) {
    if (!kept_) throw std::logic_error("backward: a forward pass must come before it");
    if (!maps_bar.empty()) require_shape(maps_bar, graph_->arc_count(), Family::map_size, "maps_bar");
    check(weights_bar, !weights_bar.left.empty(), !weights_bar.right.empty(), !weights_bar.epsilon.empty(),
          "_bar");
    if (!edge_weights_bar.empty()) {
      require_size(edge_weights_bar, graph_->edge_count(), "edge_weights_bar");
      require(weighted_, "edge_weights_bar", "a derivative", "the forward pass had no edge weights");
      require(is_learned<Family>, "edge_weights_bar", "a derivative",
              detail::concat("none for ", Family::name, " maps"));
    }
    DiffusionParameters<S> own = zero_weights();
    layer_.set_weights(weights_);  // they may have been moved
    layer_.set_gradient(own);
    layer_.backward(
        {execution_, sheaf_, gradient_, false, output_bar, x_bar, {}, {features(y_bar_), features(r_bar_)}});
    if (!weights_bar.left.empty()) weights_bar.left.eigen() += own.left;
    if (!weights_bar.right.empty()) weights_bar.right.eigen() += own.right;
    for (Index i = 0; S & out : weights_bar.epsilon) out += own.epsilon[i++];
    if constexpr (is_learned<Family>) {
      if (maps_bar.empty() && edge_weights_bar.empty()) return;
      gradient_.weight_bar.fill(S(0));
      sheaf_.backward(execution_, sheaf_weights(), gradient_,
                      [&](Index block, int side, const Map&, const Map& bar) {
                        if (!maps_bar.empty()) add_map(block, side, bar, maps_bar);
                      });
      for (Index e = 0; S & out : edge_weights_bar) out += gradient_.weight_bar[e++];
    }
  }

 private:
  using Map = typename SheafBlocks<Family, S>::Map;
  using P = typename SheafBlocks<Family, S>::P;
  static constexpr int map_columns = Map::ColsAtCompileTime;

  static const SheafDiffusionOptions& checked(const std::shared_ptr<const Graph>& graph,
                                              const SheafDiffusionOptions& options) {
    require(graph != nullptr, "graph", "a null pointer", "a layer needs a graph");
    require(options.channels >= 1 && options.channels <= max_channels, "channels", options.channels,
            detail::concat("must be between 1 and ", max_channels));
    return options;
  }
  template <class T>
  void check(const DiffusionWeights<T>& weights, bool left, bool right, bool epsilon, const char* suffix) const {
    const Index d = coordinates(), a = options_.left ? d : 0, b = options_.right ? options_.channels : 0;
    if (left) require_shape(weights.left, a, a, std::string("left weights") + suffix);
    if (right) require_shape(weights.right, b, b, std::string("right weights") + suffix);
    if (epsilon) require_size(weights.epsilon, d, std::string("epsilon") + suffix);
  }
  /// Copies the weights, which backward() reads.
  void keep(const DiffusionWeights<const S>& weights) {
    check(weights, options_.left, options_.right, true, "");
    if (options_.left) weights_.left = weights.left.eigen();
    if (options_.right) weights_.right = weights.right.eigen();
    weights_.epsilon =
        Eigen::Map<const Eigen::Matrix<S, Eigen::Dynamic, 1>>(weights.epsilon.data(), coordinates());
  }
  [[nodiscard]] const S* sheaf_weights() const noexcept { return weighted_ ? edge_weights_.data() : nullptr; }
  [[nodiscard]] FeatureView<S> features(Buffer<S>& buffer) const noexcept {
    return {buffer.data(), graph_->node_count(), coordinates(), options_.channels};
  }

  /// The maps of one block and side, from the rows of its arcs.
  [[nodiscard]] Map load_map(Index block, int side, const MatrixView<const S>& maps) const {
    Map map = Map::Constant(P(S(1)));
    if constexpr (is_learned<Family>) {
      const std::int32_t* arcs = blocks_->arcs(block, side);
      P row[Family::map_size];
      detail::rows_to_lanes<Family::map_size>(
          P::width, [&](int lane) { return maps.row(arcs[lane]).data(); }, row);
      for (int k = 0; k < Family::map_size; ++k) map(k / map_columns, k % map_columns) = row[k];
    }
    return map;
  }
  /// Adds the derivatives of one block and side to the rows of its arcs.
  void add_map(Index block, int side, const Map& map_bar, const MatrixView<S>& maps_bar) const {
    const std::int32_t* arcs = blocks_->arcs(block, side);
    const auto row_of = [&](int lane) { return maps_bar.row(arcs[lane]).data(); };
    P row[Family::map_size];
    detail::rows_to_lanes<Family::map_size>(blocks_->lane_count(block), row_of, row);
    for (int k = 0; k < Family::map_size; ++k) row[k] += map_bar(k / map_columns, k % map_columns);
    detail::lanes_to_rows<Family::map_size>(row, blocks_->lane_count(block), row_of);
  }

  SheafDiffusionOptions options_;
  Execution execution_;
  std::shared_ptr<const Graph> graph_;
  std::unique_ptr<EdgeBlocks<S>> blocks_;  // like the graph at one address, to which the following refer
  std::unique_ptr<DiffusionShape<S>> shape_;
  SheafBlocks<Family, S> sheaf_;
  SheafBlocksGradient<Family, S> gradient_;
  DiffusionLayer<Family, S> layer_;
  Buffer<S> y_bar_, r_bar_, edge_weights_;
  DiffusionParameters<S> weights_;  ///< of the last forward pass
  bool weighted_ = false, kept_ = false;
};

}  // namespace sheafnn::layers
