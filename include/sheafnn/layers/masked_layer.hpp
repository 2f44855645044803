/// \file
/// MaskedLayer: another layer whose output is 0 in the coordinates that a node's stalk does not have.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/layer.hpp"
#include "sheafnn/layers/stalk_masks.hpp"

namespace sheafnn::layers {

/// A layer of stalks with dimensions of their own, X' = E layer(X). math: "Types of nodes and edges" (3.73).
template <RestrictionMapFamily Family, class S>
class MaskedLayer final : public Layer<Family, S> {
 public:
  /// Unchecked: all of it.
  ///
  /// \param other        not null
  /// \param masks        must outlive the layer
  /// \param rows, width  of the other layer's output, all nodes counted
  MaskedLayer(std::unique_ptr<Layer<Family, S>> other, const StalkMasks<S>& masks, Index rows, Index width)
      : other_(std::move(other)), masks_(&masks), output_(rows * width) {}

  [[nodiscard]] FeatureView<const S> output() const noexcept override {
    const FeatureView<const S> of = other_->output();
    return {output_.data(), of.nodes(), of.coordinates(), of.channels()};
  }
  /// Takes any list.
  void list_memory(std::vector<Buffer<S>*>& list) override {
    list.push_back(&output_);
    other_->list_memory(list);
  }
  [[nodiscard]] DropoutMask& mask() noexcept override { return other_->mask(); }
  [[nodiscard]] LayerReads reads() const noexcept override { return other_->reads(); }
  void declare(ParameterList<const S>& list) override { other_->declare(list); }
  void declare(ParameterList<S>& list) override { other_->declare(list); }
  /// \throws std::invalid_argument  as the other layer
  void forward(const LayerCall<Family, S>& call) override {
    other_->forward(call);
    nodes_ = call.nodes;
    masked(call.execution, other_->output(), output_.data());
  }
  [[nodiscard]] double kl() const override { return other_->kl(); }
  /// The derivative of the other layer's output goes to scratch[0].
  ///
  /// \throws std::invalid_argument  as the other layer
  void backward(const LayerBackwardCall<Family, S>& call) override {
    LayerBackwardCall<Family, S> before = call;
    before.output_bar = masked(call.execution, call.output_bar, call.scratch[0].data());
    other_->backward(before);
  }

 private:
  /// Copies features to `to`, without what is absent. They may be there already.
  FeatureView<const S> masked(Execution execution, const FeatureView<const S>& x, S* to) const {
    const FeatureView<S> r(to, x.nodes(), x.coordinates(), x.channels());
    masks_->mask(execution, nodes_, x.rows(), r.rows(), x.channels());
    return r;
  }

  std::unique_ptr<Layer<Family, S>> other_;
  const StalkMasks<S>* masks_;
  NodeSelection nodes_;  ///< of the last pass
  Buffer<S> output_;
};

}  // namespace sheafnn::layers
