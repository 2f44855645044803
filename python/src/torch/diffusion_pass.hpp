/// \file
/// A diffusion layer with given maps for sheafnn.torch, by the library's SheafDiffusionLayer. Its parameters are the
/// layer's parameters, then the maps and the edge weights.
#pragma once

#include <algorithm>
#include <array>
#include <sheafnn/core/buffer.hpp>
#include <sheafnn/io/option_text.hpp>
#include <sheafnn/layers/sheaf_diffusion_layer.hpp>
#include <sheafnn/nn/parameters.hpp>

#include "pass.hpp"

namespace python {

/// \param use  use(key, field) for the options that texts can set
template <class Use>
void for_diffusion_options(sheafnn::layers::SheafDiffusionOptions& options, const Use& use) {
  use("channels", options.channels);
  use("left_weights", options.left);
  use("right_weights", options.right);
  use("activation", options.activation);
  use("normalisation", options.normalisation);
  use("add_lp", options.add_lp);
  use("add_hp", options.add_hp);
}

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
    if (buffer.empty()) return {};
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
class DiffusionArchitecture final : public Architecture {
 public:
  explicit DiffusionArchitecture(const Setting& setting) {
    std::map<std::string, std::string> texts = setting.options;
    const auto take = [&](const char* key, auto& field) {
      const auto found = texts.extract(key);
      if (!found.empty()) sheafnn::io::parse_option(key, found.mapped(), field);
    };
    for_diffusion_options(options_, take);
    take("edge_weights", weighted_);
    if (!texts.empty()) {
      sheafnn::throw_invalid_argument(sheafnn::detail::concat("options['", texts.begin()->first, "']"),
                                      texts.begin()->second, "a diffusion layer has no such option");
    }
    setting_.diffusion = {options_.left, options_.right, options_.activation};
    setting_.coordinates = Family::stalk_dimension + (options_.add_lp ? 1 : 0) + (options_.add_hp ? 1 : 0);
    setting_.channels = options_.channels;
    sheafnn::require_between("channels", options_.channels, 1, sheafnn::layers::max_channels);
    sheafnn::layers::ParameterList<sheafnn::layers::ParameterSlot> list(parameters_);
    sheafnn::layers::DiffusionWeights<sheafnn::layers::ParameterSlot>().declare(list, setting_);
  }

  [[nodiscard]] Shapes parameters() const override { return shapes_of(parameters_); }
  [[nodiscard]] std::vector<std::vector<double>> initial(std::uint64_t seed) const override {
    return initial_of(parameters_, seed);
  }
  [[nodiscard]] Index width() const override { return setting_.coordinates * setting_.channels; }
  [[nodiscard]] std::map<std::string, std::string> metadata() const override { return {}; }
  [[nodiscard]] std::unique_ptr<Pass> make_pass(const std::shared_ptr<const Relations>& relations,
                                                std::shared_ptr<const sheafnn::NodeFeatures>) const override {
    return std::make_unique<DiffusionPass<Family, S>>(options_, weighted_, columns_of<ColumnGraph>(relations));
  }

 private:
  sheafnn::layers::SheafDiffusionOptions options_;
  bool weighted_ = false;
  sheafnn::layers::LayerSetting setting_;
  sheafnn::layers::ParameterSet<double> parameters_;
};

}  // namespace python
