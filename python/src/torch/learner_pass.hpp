/// \file
/// A sheaf learner with its maps for sheafnn.torch. It leads from embeddings of nodes to a map for every arc and a weight
/// for every edge, by the library's SheafLearner and PointMap.
#pragma once

#include <algorithm>
#include <sheafnn/core/buffer.hpp>
#include <sheafnn/layers/sheaf_learner.hpp>
#include <sheafnn/nn/parameters.hpp>
#include <utility>

#include "layer_architectures.hpp"

namespace python {

/// Output: 2m maps, one for each column of edge_index, matrices row by row. Then m edge weights where there are some, in the
/// order of the graph's edges.
template <class Model>
class LearnerPass final : public HostPass {
  using Family = typename Model::Family;
  using S = typename Model::Scalar;
  using P = sheafnn::math::Pack<S, sheafnn::lanes<S>>;
  using Map = typename Family::template Map<P>;
  static constexpr int W = sheafnn::lanes<S>, size = sheafnn::PointMap<Family>::size, entries = Family::map_size;
  static constexpr int map_columns = Map::ColsAtCompileTime;

 public:
  LearnerPass(const LearnerSetting<Model>& setting, const sheafnn::layers::ParameterTable& table,
              std::shared_ptr<const ColumnGraph> graph)
      : graph_(std::move(graph)),
        setting_(setting),
        table_(table),
        blocks_(graph_->graph),
        learner_(graph_->graph, blocks_, setting.sizes) {
    graph_->require_one_column_each();
    value_.resize(table.size());
    bar_.resize(table.size());
    x_.resize(graph_->graph.node_count() * setting.sizes.inputs);
    x_bar_.resize(x_.size());
    sheafnn::layers::ParameterList<const S> list(table_, value_.data());
    weights_.declare(list, setting.sizes, 0);
    sheafnn::layers::ParameterList<S> bars(table_, bar_.data());
    weights_bar_.declare(bars, setting.sizes, 0);
    weight_bar_.resize(blocks_.block_count() * W);
  }

  void set_parameter(std::size_t number, const void* values) override {
    const sheafnn::layers::ParameterInfo& info = table_.info(static_cast<int>(number));
    std::copy_n(static_cast<const S*>(values), info.size, value_.data() + info.offset);
  }
  double forward(const PassOptions& options, const void* features, void* output) override {
    execution_ = options.threads;
    std::copy_n(static_cast<const S*>(features), x_.size(), x_.data());
    learner_.forward(execution_, weights_, view(std::as_const(x_)));
    S* out = static_cast<S*>(output);
    for_arcs([&](Index block, int side, int lane, Index column) {
      if (lane == 0) map_of(block, side);
      for (int k = 0; k < entries; ++k) out[column * entries + k] = lanes_[k][lane];
    });
    if (learner_.has_edge_weights()) {
      std::copy_n(learner_.edge_weights(), graph_->graph.edge_count(), out + graph_->columns * entries);
    }
    return 0;
  }
  void backward(const void* output_bar, double, void* features_bar) override {
    const S* from = static_cast<const S*>(output_bar);
    bar_.fill(S(0));
    if (learner_.has_edge_weights()) {
      std::copy_n(from + graph_->columns * entries, graph_->graph.edge_count(), weight_bar_.data());
    }
    for_arcs([&](Index block, int side, int lane, Index column) {
      for (int k = 0; k < entries; ++k) lanes_[k][lane] = from[column * entries + k];
      if (lane + 1 < blocks_.lane_count(block)) return;
      for (int k = 0; k < entries; ++k) std::fill(lanes_[k] + lane + 1, lanes_[k] + W, S(0));
      Map bar;
      for (int k = 0; k < entries; ++k) bar(k / map_columns, k % map_columns) = P::load(lanes_[k]);
      P raw[size], raw_bar[size];
      sheafnn::detail::load_lanes<size>(learner_.raw(block, side), raw);
      setting_.point.backward(raw, bar, raw_bar);
      sheafnn::detail::store_lanes<size>(raw_bar, learner_.raw_bar(block, side));
    });
    learner_.set_edge_weights_bar(weight_bar_);
    learner_.backward(execution_, weights_, view(std::as_const(x_)), weights_bar_, view(x_bar_), false);
    if (features_bar != nullptr) std::copy_n(x_bar_.data(), x_bar_.size(), static_cast<S*>(features_bar));
  }
  void gradient(std::size_t number, void* values) const override {
    const sheafnn::layers::ParameterInfo& info = table_.info(static_cast<int>(number));
    std::copy_n(bar_.data() + info.offset, info.size, static_cast<S*>(values));
  }

 private:
  template <class Buffer>
  [[nodiscard]] auto view(Buffer& buffer) const {
    return sheafnn::MatrixView(buffer.data(), graph_->graph.node_count(), setting_.sizes.inputs);
  }
  /// Calls use(block, side, lane, column) for all arcs.
  template <class Use>
  void for_arcs(const Use& use) {
    for (Index block = 0; block < blocks_.block_count(); ++block) {
      for (int side = 0; side < 2; ++side) {
        for (int lane = 0; lane < blocks_.lane_count(block); ++lane) {
          use(block, side, lane, graph_->column_of_arc[static_cast<std::size_t>(blocks_.arcs(block, side)[lane])]);
        }
      }
    }
  }
  /// The maps of a block and side, into lanes_.
  void map_of(Index block, int side) {
    P raw[size];
    Map map;
    sheafnn::detail::load_lanes<size>(learner_.raw(block, side), raw);
    setting_.point.map(raw, map);
    for (int k = 0; k < entries; ++k) map(k / map_columns, k % map_columns).store(lanes_[k]);
  }

  std::shared_ptr<const ColumnGraph> graph_;
  LearnerSetting<Model> setting_;
  const sheafnn::layers::ParameterTable table_;
  sheafnn::layers::EdgeBlocks<S> blocks_;
  sheafnn::layers::SheafLearner<S> learner_;
  sheafnn::layers::SheafLearnerWeights<const S> weights_;
  sheafnn::layers::SheafLearnerWeights<S> weights_bar_;
  sheafnn::Buffer<S> value_, bar_, x_, x_bar_, weight_bar_;
  sheafnn::Execution execution_;
  S lanes_[entries][W] = {};
};

template <class Model>
class HostLearnerArchitecture final : public LearnerArchitecture<Model> {
 public:
  using LearnerArchitecture<Model>::LearnerArchitecture;

  [[nodiscard]] std::unique_ptr<Pass> make_pass(const std::shared_ptr<const Relations>& relations,
                                                std::shared_ptr<const sheafnn::NodeFeatures>) const override {
    return std::make_unique<LearnerPass<Model>>(this->setting_, this->parameters_,
                                                columns_of<ColumnGraph>(relations));
  }
};

}  // namespace python
