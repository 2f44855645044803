/// \file
/// NormedLayer: another layer followed by a LayerNorm.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/layer_norm.hpp"

namespace sheafnn::layers {

/// A layer whose output is normed.
template <RestrictionMapFamily Family, class S>
class NormedLayer final : public Layer<Family, S> {
 public:
  /// \param other        not null
  /// \param rows, width  of the other layer's output, all nodes counted
  /// \throws std::invalid_argument  see LayerNorm
  NormedLayer(std::unique_ptr<Layer<Family, S>> other, Index rows, Index width)
      : other_(std::move(other)), norm_(rows, width), width_(width) {
    norm_.reserve();  // with the other buffers of the network
  }

  [[nodiscard]] FeatureView<const S> output() const noexcept override {
    const FeatureView<const S> of = other_->output();
    return {norm_.output().data(), of.nodes(), of.coordinates(), of.channels()};
  }
  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    list.push_back(&norm_.output_memory());
    other_->list_memory(list);
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return other_->mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return other_->reads(); }
  void declare(ParameterList<const S>& list) override {
    other_->declare(list);
    weights_.declare_after_layer(list, width_);
  }
  void declare(ParameterList<S>& list) override {
    other_->declare(list);
    weights_bar_.declare_after_layer(list, width_);
  }
  /// \throws std::invalid_argument  as the other layer
  void forward(const LayerCall<Family, S>& call) override {
    other_->forward(call);
    norm_.forward(call.execution, weights_, other_->output().rows());
  }
  [[nodiscard]] double kl() const override { return other_->kl(); }
  /// The derivative of the other layer's output goes to scratch[0].
  ///
  /// \throws std::invalid_argument  as the other layer
  void backward(const LayerBackwardCall<Family, S>& call) override {
    const FeatureView<S> bar = call.scratch[0].first(call.output_bar.nodes());
    norm_.backward(call.execution, weights_, other_->output().rows(), call.output_bar.rows(), bar.rows(),
                   weights_bar_);
    LayerBackwardCall<Family, S> before = call;
    before.output_bar = bar;
    other_->backward(before);
  }

 private:
  std::unique_ptr<Layer<Family, S>> other_;
  LayerNorm<S> norm_;
  Index width_;
  NormWeights<const S> weights_;
  NormWeights<S> weights_bar_;
};

}  // namespace sheafnn::layers
