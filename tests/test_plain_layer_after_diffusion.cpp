/// \file
/// A layer of one's own that works in the memory which diffusion layers share: the diffusion layer before it computes W and Y again.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/graph/synthetic.hpp"

namespace test_plain_layer_after_diffusion {
namespace {

using sheafnn::Buffer;
using sheafnn::Index;
namespace layers = sheafnn::layers;

/// X' = tanh X, which needs no sheaf. The backward pass writes to its scratch.
template <class Family, class S>
class TanhLayer : public layers::WeightedLayer<Family, S, layers::DiffusionWeights> {
  using Base = layers::WeightedLayer<Family, S, layers::DiffusionWeights>;

 public:
  [[nodiscard]] static bool suits(const layers::LayerSetting& of) { return of.number == 1; }
  TanhLayer(const sheafnn::Graph& graph, const layers::DiffusionShape<S>& shape, const layers::LayerSetting& setting)
      : Base(graph, shape, setting) {}
  [[nodiscard]] layers::DropoutMask& mask() noexcept override { return mask_; }
  [[nodiscard]] layers::LayerReads reads() const noexcept override { return {.blocks = false, .work = false}; }
  void forward(const layers::LayerCall<Family, S>& call) override {
    this->begin(call);
    x_ = call.x.data();
    for (Index i = 0; i < this->output_.size(); ++i) this->output_[i] = std::tanh(x_[i]);
  }
  void backward(const layers::LayerBackwardCall<Family, S>& call) override {
    S* const bar = call.scratch[0].data();
    for (Index i = 0; i < this->output_.size(); ++i) {
      const S value = std::tanh(x_[i]);
      bar[i] = call.output_bar.data()[i] * (1 - value * value);
    }
    std::copy_n(bar, this->output_.size(), call.x_bar.data());
    if (!call.accumulate) call.sheaf_gradient.clear();
  }

 private:
  layers::DropoutMask mask_;
  const S* x_ = nullptr;
};
template <class Family, class S>
using FirstLayer = sheafnn::LayerWhere<layers::DiffusionLayer<Family, S>,
                                       [](const layers::LayerSetting& of) { return of.number == 0; }>;
template <template <class, class> class Maps>
using ModelOf = sheafnn::SheafModel<sheafnn::SpecialOrthogonal<2>, Maps<sheafnn::SpecialOrthogonal<2>, double>, double,
                                    sheafnn::LayerKinds<TanhLayer, FirstLayer>>;
template <class Family, class>
using Drawn = sheafnn::DefaultPosterior<Family>;
template <class Family, class>
using Points = sheafnn::PointMass<Family>;

template <class Model>
void check_gradient() {
  CAPTURE(Model::bayesian);
  sheafnn::SyntheticOptions options;
  options.nodes = 60;
  options.degree = 5;
  options.features = 10;
  options.splits = 1;
  const sheafnn::Dataset data = sheafnn::synthetic(options);
  Model model({.features = 10, .channels = 4, .layers = 2, .classes = data.class_count}, 3);
  sheafnn::Network<Model> network(model, data.graph, data.features, 1);
  Buffer<double> bar(data.node_count() * data.class_count);
  for (Index i = 0; i < bar.size(); ++i) bar[i] = 0.1 * static_cast<double>(i * 7 % 11) - 0.4;
  const auto loss = [&] {
    const auto outputs = network.forward({.training = true});
    double sum = 0;
    for (Index i = 0; i < bar.size(); ++i) sum += bar[i] * outputs.row(i / data.class_count)[i % data.class_count];
    return sum;
  };
  loss();
  network.backward({bar.data(), data.node_count(), data.class_count}, {.kl_weight = 0});
  const Buffer<double> gradient = network.gradient();
  for (Index i = 0; i < gradient.size(); ++i) {
    double& value = model.parameters().values()[i];
    const double before = value, step = 1e-5;
    value = before + step;
    const double above = loss();
    value = before - step;
    const double below = loss();
    value = before;
    CHECK(gradient[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-6).scale(1));
  }
}

}  // namespace

TEST_CASE("a layer without a Laplacian after a diffusion layer has the gradient of finite differences") {
  check_gradient<ModelOf<Drawn>>();
  check_gradient<ModelOf<Points>>();
}

}  // namespace test_plain_layer_after_diffusion
