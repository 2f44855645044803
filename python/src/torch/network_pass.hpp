/// \file
/// Networks and their layers for sheafnn.torch: one class for both, by the library's Network. A layer takes embeddings from
/// outside and hands on what its diffusion gives; a network takes features and gives outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <sheafnn/bsnn/network.hpp>
#include <sheafnn/core/buffer.hpp>
#include <span>
#include <utility>

#include "network_architecture.hpp"
#include "pass.hpp"

namespace python {

template <class Model>
class NetworkPass final : public HostPass {
  using S = typename Model::Scalar;

 public:
  /// \param model  its parameters are to be set
  NetworkPass(Model model, std::shared_ptr<const ColumnsOf<Model>> graph,
              std::shared_ptr<const sheafnn::NodeFeatures> features)
      : graph_(std::move(graph)),
        features_(std::move(features)),
        model_(std::move(model)),
        network_(model_, graph_->graph,
                 features_ ? *features_ : no_features(model_.options().features, graph_->graph.node_count())) {}

  void set_parameter(std::size_t number, const void* values) override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    model_.parameters().set(id, {static_cast<const S*>(values), count_of(id)});
  }
  double forward(const PassOptions& options, const void* features, void* output) override {
    options_ = options;
    from_outside_ = features != nullptr;
    if (from_outside_) {
      embedding_at_ = static_cast<const S*>(features);
      if (!options.features_stay) {
        embedding_.resize(rows() * model_.hidden_width());
        std::copy_n(embedding_at_, embedding_.size(), embedding_.data());
        embedding_at_ = embedding_.data();
      }
    }
    compute(static_cast<S*>(output));
    ready_ = options.keep;
    return network_.kl() + network_.kl_of_layers();
  }
  void backward(const void* output_bar, double kl_bar, void* features_bar) override {
    if (!ready_) compute(nullptr);  // the pass is a function of what is kept here: it can be computed again
    ready_ = false;
    // Weights of the KL term are positive: of a negative one, all derivatives are the negatives.
    sign_ = kl_bar < 0 ? S(-1) : S(1);
    const Index size = rows() * outputs();
    const S* bar = static_cast<const S*>(output_bar);
    const auto before_activation = [&](S* to) {
      activate_numbers_backward(options_.threads, options_.activation, size, result_.data(), bar, sign_, to);
    };
    const sheafnn::BackwardOptions options{.kl_weight = std::abs(kl_bar)};
    if constexpr (takes_embeddings) {
      if (from_outside_) {
        auto backward = from_embedding_->begin_backward(options);
        const sheafnn::FeatureView<S> own = network_.features_bar();
        before_activation(own.data());
        backward.add(*drawn_, own);
        const Index count = rows() * model_.hidden_width();
        S* to = static_cast<S*>(features_bar);
        if (to == nullptr) {
          embedding_bar_.resize(count);
          to = embedding_bar_.data();
        }
        backward.finish(sheafnn::MatrixView<S>(to, rows(), model_.hidden_width()));
        for (Index i = 0; kl_bar < 0 && i < count; ++i) to[i] = -to[i];
        return;
      }
    }
    if (kl_bar < 0) {
      bar_.resize(size);
      before_activation(bar_.data());
      bar = bar_.data();
    }
    network_.backward(sheafnn::MatrixView<const S>(bar, rows(), outputs()), options);
  }
  void gradient(std::size_t number, void* values) const override {
    const auto id = static_cast<sheafnn::layers::ParameterId>(number);
    const std::span to(static_cast<S*>(values), count_of(id));
    model_.parameters().get(id, network_.gradient(), to);
    if (sign_ < 0) std::transform(to.begin(), to.end(), to.begin(), std::negate<S>());
  }

 private:
  using Network = sheafnn::Network<Model>;
  static constexpr bool takes_embeddings =
      requires(Network & network, sheafnn::MatrixView<const S> rows) { network.begin({}, rows); };

  [[nodiscard]] std::size_t count_of(sheafnn::layers::ParameterId id) const {
    return static_cast<std::size_t>(model_.parameters().info(id).size);
  }
  [[nodiscard]] Index rows() const { return graph_->graph.node_count(); }
  /// Values per node.
  [[nodiscard]] Index outputs() const { return from_outside_ ? row_of(model_) : model_.options().classes; }

  /// \param output  null: not wanted
  void compute(S* output) {
    network_.set_execution(options_.threads);
    const sheafnn::ForwardPass<S> pass = forward_pass<S>(options_);
    result_ = {};
    if constexpr (takes_embeddings) {
      if (from_outside_) {
        from_embedding_ =
            network_.begin(pass, sheafnn::MatrixView<const S>(embedding_at_, rows(), model_.hidden_width()));
        drawn_ = from_embedding_->diffuse();
        result_ = drawn_->view().rows();
      }
    }
    if (result_.empty()) result_ = network_.forward(pass);
    if (output == nullptr) return;
    if (from_outside_) {
      activate_numbers(options_.threads, options_.activation, rows() * outputs(), result_.data(), output);
    } else {
      sheafnn::MatrixView<S>(output, rows(), outputs()).eigen() = result_.eigen();
    }
  }

  std::shared_ptr<const ColumnsOf<Model>> graph_;
  std::shared_ptr<const sheafnn::NodeFeatures> features_;
  Model model_;
  Network network_;
  PassOptions options_;
  bool from_outside_ = false;
  bool ready_ = false;  ///< does the network hold what a backward pass reads?
  S sign_ = 1;
  std::optional<sheafnn::BegunPass<Network, true>> from_embedding_;           ///< of a layer
  std::optional<sheafnn::DrawnSample<sheafnn::FeatureView<const S>>> drawn_;  ///< of a layer
  sheafnn::MatrixView<const S> result_;  ///< of the network, before the activation
  const S* embedding_at_ = nullptr;
  sheafnn::Buffer<S> embedding_, embedding_bar_, bar_;
};

template <class Model>
class NetworkArchitecture final : public ModelArchitecture<Model> {
 public:
  using ModelArchitecture<Model>::ModelArchitecture;

  [[nodiscard]] std::unique_ptr<Pass> make_pass(
      const std::shared_ptr<const Relations>& relations,
      std::shared_ptr<const sheafnn::NodeFeatures> features) const override {
    auto graph = columns_of<ColumnsOf<Model>>(relations);
    Model model = this->model_of_pass(*graph, features != nullptr);
    return std::make_unique<NetworkPass<Model>>(std::move(model), std::move(graph), std::move(features));
  }
};

}  // namespace python
