// A layer of your own: reaction and diffusion (Allen-Cahn), with a rate of both for every stalk coordinate,
//     X' = X − tanh(γ) ∘ Δ X + tanh(ρ) ∘ (X − X ∘ X ∘ X),   X after dropout.
#include <cmath>
#include <cstdio>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/layers.hpp>
using sheafnn::Index;

template <class T>
struct ReactionWeights {
  sheafnn::WeightVector<T> gamma, rho;  // of layer l, in checkpoints: gamma.l and rho.l
  void declare(sheafnn::ParameterList<T>& list, const sheafnn::LayerSetting& of) {
    list.vector(gamma, "gamma", {of.coordinates}, sheafnn::constant_values(0.5));
    list.vector(rho, "rho", {of.coordinates}, sheafnn::constant_values(0));
  }
};

template <class Family, class S>
class ReactionLayer final : public sheafnn::WeightedLayer<Family, S, ReactionWeights> {
 public:
  ReactionLayer(const sheafnn::Graph& graph, const sheafnn::DiffusionShape<S>& shape,
                const sheafnn::LayerSetting& of)
      : ReactionLayer::WeightedLayer(graph, shape, of),
        dropping_(graph.own_node_count(), shape.row()),
        laplacian_(graph, shape),
        z_(graph.node_count() * shape.row()),
        direct_(z_.size()) {}
  sheafnn::DropoutMask& mask() noexcept override { return dropping_.mask(); }

  void forward(const sheafnn::LayerCall<Family, S>& call) override {
    this->begin(call);
    dropping_.forward(call.execution, this->own(call.x).rows(), call.active_dropout());
    laplacian_.forward(call, dropping_.output(), this->at_nodes(z_));
    for_numbers(call.execution, [&](Index i, Index at, Index from) {
      const S x = dropping_.output().data()[from], gamma = std::tanh(this->weights_.gamma[i]);
      this->output_[at] = x - gamma * z_[at] + std::tanh(this->weights_.rho[i]) * (x - x * x * x);
    });
  }
  void backward(const sheafnn::LayerBackwardCall<Family, S>& call) override {
    this->check(call);
    for_numbers(call.execution, [&](Index i, Index at, Index from) {
      const S x = dropping_.output().data()[from], bar = call.output_bar.data()[at], z = z_[at];
      const S gamma = std::tanh(this->weights_.gamma[i]), rho = std::tanh(this->weights_.rho[i]);
      this->weights_bar_.gamma[i] -= (1 - gamma * gamma) * bar * z;
      this->weights_bar_.rho[i] += (1 - rho * rho) * bar * (x - x * x * x);
      direct_[at] = bar * (1 + rho * (1 - 3 * x * x));
      z_[at] = -gamma * bar;  // the derivative of z in its place
    });
    laplacian_.backward(call, this->at_nodes(z_), call.x_bar);
    for_numbers(call.execution, [&](Index, Index at, Index from) { call.x_bar.data()[from] += direct_[at]; });
    dropping_.backward_in_place(call.execution, this->own(call.x_bar).rows());
  }

 private:
  // body(i, number of the output, number of X) for all numbers of coordinate i, each coordinate by one thread.
  template <class Body>
  void for_numbers(sheafnn::Execution execution, const Body& body) const {
    const Index d = this->diffusion_->coordinates, f = this->diffusion_->channels;
    const sheafnn::NodeSelection nodes = this->own_nodes();
    sheafnn::parallel_for(execution, d, 1, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) {
        for (Index k = 0; k < nodes.count(); ++k) {
          for (Index c = 0; c < f; ++c) body(i, (k * d + i) * f + c, (nodes[k] * d + i) * f + c);
        }
      }
    });
  }
  sheafnn::DropoutLayer<S> dropping_;
  sheafnn::LaplacianStep<Family, S> laplacian_;
  sheafnn::Buffer<S> z_, direct_;
};
int main() {
  using Maps = sheafnn::SpecialOrthogonal<3>;
  using Model = sheafnn::SheafModel<Maps, sheafnn::PointMass<Maps>, float, sheafnn::LayerKinds<ReactionLayer>>;
  const sheafnn::Dataset data = sheafnn::karate_club();
  Model model({.features = data.feature_count(), .channels = 8, .layers = 3, .classes = data.class_count});
  const auto result = train(model, data, data.splits[0], {.epochs = 300});
  const float gamma = model.parameters().data(model.parameters().find("gamma.0"))[0];
  std::printf("gamma of the first layer %.2f, test accuracy %.0f%%\n", gamma, 100 * result.test_accuracy);
}
