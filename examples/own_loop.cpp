// An optimiser and a training loop of your own: Lion (Chen et al., 2023) on the objective of a Bayesian sheaf network.
#include <cmath>
#include <cstdio>
#include <sheafnn/bsnn.hpp>
#include <span>
#include <vector>

namespace {

/// θ ← θ − rate · (sign(0.9 m + 0.1 g) + decay · θ),   m ← 0.99 m + 0.01 g.
struct Lion {
  float rate, decay;
  std::vector<float> momentum;

  void step(std::span<float> values, std::span<const float> gradient) {
    momentum.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float direction = 0.9F * momentum[i] + 0.1F * gradient[i];
      const float sign = direction == 0 ? 0.0F : std::copysign(1.0F, direction);
      values[i] -= rate * (sign + decay * values[i]);
      momentum[i] = 0.99F * momentum[i] + 0.01F * gradient[i];
    }
  }
};

}  // namespace

int main() {
  const sheafnn::Dataset data = sheafnn::karate_club();
  const sheafnn::Split& split = data.splits[0];
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
  Model model({.features = data.feature_count(), .channels = 8, .layers = 2, .classes = data.class_count},
              /*seed*/ 1);

  sheafnn::Network network(model, data.graph, data.features);
  const sheafnn::Classification loss(data.labels);
  Lion lion{.rate = 0.003F, .decay = 1.0F, .momentum = {}};
  std::printf("epoch   loss     KL  validation\n");
  for (std::uint32_t epoch = 0; epoch <= 300; ++epoch) {
    const sheafnn::ForwardPass<float> pass{.epoch = epoch, .training = true, .input_dropout = 0.5, .dropout = 0.3};
    const sheafnn::Elbo elbo = sheafnn::elbo(network, pass, loss, split.train, {.kl_weight = 0.05, .samples = 2});
    lion.step(model.parameters().values().view(), network.gradient().view());
    if (epoch % 50 != 0) continue;
    const auto now = sheafnn::predict(model, data, {.samples = 10});
    const double accuracy =
        sheafnn::uncertainty::accuracy(now.probabilities, data.class_count, data.labels, split.validation);
    std::printf("%5u  %5.3f  %5.3f  %9.0f%%\n", epoch, elbo.loss, elbo.kl, 100 * accuracy);
  }

  const auto posterior = sheafnn::predict(model, data, {.samples = 50});
  std::printf("\ntest accuracy %.0f%%\n",
              100 * sheafnn::uncertainty::accuracy(posterior.probabilities, data.class_count, data.labels, split.test));
}
