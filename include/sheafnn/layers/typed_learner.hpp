/// \file
/// TypedLearner: a sheaf learner with weights of its own for each type of edges,
///
///     raw_a = W^{t(e)} [Z_u ‖ Z_v] for both arcs a of edge e of type t(e); edge weights likewise.
///
/// Edges of one type form a graph with all nodes, on which a SheafLearner with the weights of this type works. Its
/// outputs go to the lanes of their edges. With one type it is that SheafLearner on the graph itself.
/// Source: Modeling Relational Data with Graph Convolutional Networks (Schlichtkrull et al.), weights per relation;
/// math: "Types of nodes and edges" (3.72).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/graph_of_edges.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"

namespace sheafnn::layers {

/// Buffers and passes on one graph, as SheafLearner has them. Unchecked: what SheafLearner does not check.
template <class S>
class TypedLearner {
 public:
  static constexpr int W = lanes<S>;

  /// `graph` and `blocks` must outlive the learner.
  ///
  /// \throws std::invalid_argument  as SheafLearner, or a graph with another number of edge types
  TypedLearner(const Graph& graph, const EdgeBlocks<S>& blocks, const SheafLearnerOptions& shape)
      : blocks_(&blocks), shape_((validate(shape), shape)) {
    if (shape.types == 1) {
      plain_ = SheafLearner<S>(graph, blocks, shape);
      return;
    }
    require(graph.edge_type_count() == shape.types, "edge types of the graph", graph.edge_type_count(),
            detail::concat("the sheaf learner has weights for ", shape.types));
    raw_.resize(blocks.block_count() * 2 * shape.outputs() * W);
    raw_bar_.resize(raw_.size());
    edge_weight_.resize(shape.edge_weights ? blocks.block_count() * W : 0);
    for (Index type = 0; type < shape.types; ++type)
      types_.push_back(std::make_unique<OfType>(graph, type, shape));
  }
  TypedLearner(const Graph&&, const EdgeBlocks<S>&, const SheafLearnerOptions&) = delete;  // they would dangle
  TypedLearner(const Graph&, const EdgeBlocks<S>&&, const SheafLearnerOptions&) = delete;

  /// As in SheafLearner, for each type.
  void share_work(const TypedLearner& other) {
    if (is_plain()) plain_.share_work(other.plain_);
    for (std::size_t t = 0; t < types_.size(); ++t) types_[t]->learner.share_work(other.types_[t]->learner);
  }
  /// As in SheafLearner.
  void list_memory(std::vector<Buffer<S>*>& list) {
    plain_.list_memory(list);
    for (const std::unique_ptr<OfType>& of : types_) of->learner.list_memory(list);
    for (Buffer<S>* array : {&raw_, &edge_weight_}) list.push_back(array);
  }
  /// As in SheafLearner. With several types each learner keeps memory of its own.
  void work_in(S* memory) noexcept {
    if (is_plain()) plain_.work_in(memory);
  }
  [[nodiscard]] Index raw_bar_numbers() const noexcept { return is_plain() ? plain_.raw_bar_numbers() : 0; }
  void set_raw_bar(const EdgeMemory<S>& memory, bool overwrites_factors) {
    if (is_plain()) plain_.set_raw_bar(memory, overwrites_factors);
  }

  [[nodiscard]] bool has_edge_weights() const noexcept { return shape_.edge_weights; }
  [[nodiscard]] Index outputs() const noexcept { return shape_.outputs(); }
  /// As in SheafLearner.
  [[nodiscard]] const S* raw(Index block, int side) const noexcept {
    return is_plain() ? plain_.raw(block, side) : raw_.data() + lane_offset(block, side);
  }
  [[nodiscard]] S* raw_bar(Index block, int side) noexcept {
    return is_plain() ? plain_.raw_bar(block, side) : raw_bar_.data() + lane_offset(block, side);
  }
  [[nodiscard]] const S* edge_weights() const noexcept {
    return is_plain() ? plain_.edge_weights() : has_edge_weights() ? edge_weight_.data() : nullptr;
  }
  void set_edge_weights_bar(const Buffer<S>& bar) {
    if (is_plain()) return plain_.set_edge_weights_bar(bar);
    edge_weight_bar_ = bar.data();
  }

  /// Computes raw outputs and edge weights from embeddings z (n × h).
  ///
  /// \throws std::invalid_argument  embeddings or weights of another shape
  void forward(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z) {
    if (is_plain()) return plain_.forward(execution, weights, z);
    for (std::size_t t = 0; t < types_.size(); ++t) {
      OfType& of = *types_[t];
      of.learner.forward(execution, weights.of_type(t), z);
      for_lanes(execution, of, [&](Index to, int side, Index lane, Index at, Index own) {
        copy_lanes(of.learner.raw(at, side) + own, raw_.data() + lane_offset(to, side) + lane);
        if (side == 0 && has_edge_weights()) {
          edge_weight_[to * W + lane] = of.learner.edge_weights()[at * W + own];
        }
      });
    }
    repeat_last_edge();
  }

  /// Backward pass from raw_bar() and edge_weights_bar(); lanes without an edge are ignored.
  ///
  /// \param weights_bar  added to
  /// \param z_bar     n × h without gaps; overwritten, or added to when `accumulate`
  /// \throws std::invalid_argument  embeddings, weights or derivatives of another shape
  void backward(Execution execution, const SheafLearnerWeights<const S>& weights, const MatrixView<const S>& z,
                const SheafLearnerWeights<S>& weights_bar, const MatrixView<S>& z_bar, bool accumulate) {
    if (is_plain()) return plain_.backward(execution, weights, z, weights_bar, z_bar, accumulate);
    for (std::size_t t = 0; t < types_.size(); ++t) {
      OfType& of = *types_[t];
      for_lanes(execution, of, [&](Index from, int side, Index lane, Index at, Index own) {
        copy_lanes(raw_bar_.data() + lane_offset(from, side) + lane, of.learner.raw_bar(at, side) + own);
        if (side == 0 && has_edge_weights()) of.weight_bar[at * W + own] = edge_weight_bar_[from * W + lane];
      });
      of.learner.set_edge_weights_bar(of.weight_bar);
      of.learner.backward(execution, weights.of_type(t), z, weights_bar.of_type(t), z_bar, accumulate || t > 0);
    }
  }

 private:
  /// The edges of a type. Neither copied nor moved: parts refer to each other.
  struct OfType {
    OfType(const Graph& whole, Index type, const SheafLearnerOptions& shape)
        : edge(edges_of(whole, type)),
          graph(graph_of(whole, edge)),
          blocks(graph),
          learner((graph.set_part(whole.part()), graph), blocks,
                  shape),  // its nodes are the part's, its arcs are not
          weight_bar(shape.edge_weights ? blocks.block_count() * W : 0) {}
    OfType(const OfType&) = delete;
    OfType& operator=(const OfType&) = delete;

    std::vector<std::int32_t> edge;  ///< their indices in the whole graph, increasing
    Graph graph;
    EdgeBlocks<S> blocks;
    SheafLearner<S> learner;
    Buffer<S> weight_bar;
  };
  [[nodiscard]] static std::vector<std::int32_t> edges_of(const Graph& graph, Index type) {
    std::vector<std::int32_t> r;
    for (Index e = 0; e < graph.edge_count(); ++e) {
      if (graph.edge_types()[static_cast<std::size_t>(e)] == type) r.push_back(static_cast<std::int32_t>(e));
    }
    return r;
  }
  [[nodiscard]] static Graph graph_of(const Graph& whole, const std::vector<std::int32_t>& edges) {
    std::vector<std::int8_t> kept(static_cast<std::size_t>(whole.edge_count()));
    for (const std::int32_t e : edges) kept[static_cast<std::size_t>(e)] = 1;
    return detail::graph_of_edges(whole, kept);
  }

  [[nodiscard]] bool is_plain() const noexcept { return shape_.types == 1; }
  [[nodiscard]] Index lane_offset(Index block, int side) const noexcept {
    return (block * 2 + side) * shape_.outputs() * W;
  }
  /// The outputs of one arc.
  void copy_lanes(const S* from, S* to) const noexcept {
    for (Index k = 0; k < shape_.outputs(); ++k) to[k * W] = from[k * W];
  }
  /// Calls body(block, side, lane, block of the type, lane there) for the arcs of a type.
  template <class Body>
  static void for_lanes(Execution execution, const OfType& of, const Body& body) {
    parallel_for(execution, static_cast<Index>(of.edge.size()), 64, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index e = of.edge[static_cast<std::size_t>(i)];
        for (int side = 0; side < 2; ++side) body(e / W, side, e % W, i / W, i % W);
      }
    });
  }
  /// Fills the lanes after the last edge with copies, as in EdgeBlocks.
  void repeat_last_edge() noexcept {
    if (blocks_->block_count() == 0) return;
    const Index last = blocks_->block_count() - 1, count = blocks_->lane_count(last);
    for (Index lane = count; lane < W; ++lane) {
      for (int side = 0; side < 2; ++side) {
        S* block = raw_.data() + lane_offset(last, side);
        copy_lanes(block + count - 1, block + lane);
      }
      if (has_edge_weights()) edge_weight_[last * W + lane] = edge_weight_[last * W + count - 1];
    }
  }

  const EdgeBlocks<S>* blocks_ = nullptr;
  SheafLearnerOptions shape_;
  SheafLearner<S> plain_;  ///< with one type
  std::vector<std::unique_ptr<OfType>> types_;
  Buffer<S> raw_, raw_bar_, edge_weight_;
  const S* edge_weight_bar_ = nullptr;
};

}  // namespace sheafnn::layers
