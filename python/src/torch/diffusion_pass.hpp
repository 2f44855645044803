/// \file
/// A diffusion layer with given maps for sheafnn.torch, by the library's SheafDiffusionLayer. Its parameters are the
/// layer's parameters, then the maps and the edge weights.
#pragma once

#include <algorithm>
#include <array>
#include <sheafnn/core/buffer.hpp>
#include <sheafnn/layers/sheaf_diffusion_layer.hpp>

#include "layer_architectures.hpp"

namespace python {

template <class Family, class S>
class DiffusionPass final : public HostPass {
 public:
  enum Part : std::size_t { left, right, epsilon, maps, edge_weights, parts };

  DiffusionPass(const sheafnn::layers::SheafDiffusionOptions& options, bool weighted,
                std::shared_ptr<const ColumnGraph> graph)
      : graph_(std::move(graph)), layer_(std::shared_ptr<const sheafnn::Graph>(graph_, &graph_->graph), options) {
    graph_->require_one_column_each();
    const Index d = layer_.coordinates(), f = options.channels;
    value_[left].resize(options.left ? d * d : 0);
    value_[right].resize(options.right ? f * f : 0);
    value_[epsilon].resize(d);
    value_[maps].resize(graph_->graph.arc_count() * Family::map_size);
    value_[edge_weights].resize(weighted ? graph_->graph.edge_count() : 0);
    for (std::size_t i = 0; i < parts; ++i) bar_[i].resize(value_[i].size());
    x_.resize(graph_->graph.node_count() * d * f);
    x_bar_.resize(x_.size());
    output_bar_.resize(x_.size());
  }

  void set_parameter(std::size_t number, const void* values) override {
    const S* from = static_cast<const S*>(values);
    if (number != maps) {
      std::copy_n(from, value_[number].size(), value_[number].data());
      return;
    }
    constexpr Index size = Family::map_size;
    for (Index arc = 0; arc < graph_->graph.arc_count(); ++arc) {
      std::copy_n(from + column(arc) * size, size, value_[maps].data() + arc * size);
    }
  }
  double forward(const PassOptions& options, const void* features, void* output) override {
    layer_.set_execution(options.threads);
    std::copy_n(static_cast<const S*>(features), x_.size(), x_.data());
    const sheafnn::layers::Dropout dropout{options.training ? options.dropout : 0.0,
                                   {options.seed, sheafnn::Purpose::layer_dropout, options.epoch}};
    const auto out = layer_.forward(map_view(value_[maps]), weights<const S>(value_), view(x_),
                                    span(value_[edge_weights]), dropout);
    std::copy_n(out.data(), x_.size(), static_cast<S*>(output));
    return 0;
  }
  void backward(const void* output_bar, double, void* features_bar) override {
    std::copy_n(static_cast<const S*>(output_bar), x_.size(), output_bar_.data());
    for (sheafnn::Buffer<S>& bar : bar_) bar.fill(S(0));
    layer_.backward(view(output_bar_), view(x_bar_), map_view(bar_[maps]), weights<S>(bar_),
                    sheafnn::sheaf::is_learned<Family> ? span(bar_[edge_weights]) : std::span<S>());
    if (features_bar != nullptr) std::copy_n(x_bar_.data(), x_.size(), static_cast<S*>(features_bar));
  }
  void gradient(std::size_t number, void* values) const override {
    S* to = static_cast<S*>(values);
    if (number != maps) {
      std::copy_n(bar_[number].data(), bar_[number].size(), to);
      return;
    }
    constexpr Index size = Family::map_size;
    for (Index arc = 0; arc < graph_->graph.arc_count(); ++arc) {
      std::copy_n(bar_[maps].data() + arc * size, size, to + column(arc) * size);
    }
  }

 private:
  using Values = std::array<sheafnn::Buffer<S>, parts>;

  [[nodiscard]] Index column(Index arc) const { return graph_->column_of_arc[static_cast<std::size_t>(arc)]; }
  [[nodiscard]] sheafnn::FeatureView<S> view(sheafnn::Buffer<S>& buffer) const {
    return {buffer.data(), graph_->graph.node_count(), layer_.coordinates(), layer_.options().channels};
  }
  [[nodiscard]] sheafnn::MatrixView<S> map_view(sheafnn::Buffer<S>& buffer) const {
    if (Family::map_size == 0) return {};
    return {buffer.data(), graph_->graph.arc_count(), Family::map_size};
  }
  [[nodiscard]] static std::span<S> span(sheafnn::Buffer<S>& buffer) {
    return {buffer.data(), static_cast<std::size_t>(buffer.size())};
  }
  template <class T>
  [[nodiscard]] sheafnn::layers::DiffusionWeights<T> weights(Values& of) const {
    const Index d = layer_.coordinates(), f = layer_.options().channels;
    sheafnn::layers::DiffusionWeights<T> r;
    if (layer_.options().left) r.left = {of[left].data(), d, d};
    if (layer_.options().right) r.right = {of[right].data(), f, f};
    r.epsilon = span(of[epsilon]);
    return r;
  }

  std::shared_ptr<const ColumnGraph> graph_;
  sheafnn::layers::SheafDiffusionLayer<Family, S> layer_;
  Values value_, bar_;
  sheafnn::Buffer<S> x_, x_bar_, output_bar_;
};

template <class Family, class S>
class HostDiffusionArchitecture final : public DiffusionArchitecture<Family, S> {
 public:
  using DiffusionArchitecture<Family, S>::DiffusionArchitecture;

  [[nodiscard]] std::unique_ptr<Pass> make_pass(const std::shared_ptr<const Relations>& relations,
                                                std::shared_ptr<const sheafnn::NodeFeatures>) const override {
    return std::make_unique<DiffusionPass<Family, S>>(this->options_, this->weighted_,
                                                      columns_of<ColumnGraph>(relations));
  }
};

}  // namespace python
