// Zachary's karate club, learned by a Bayesian sheaf network with rotations of R³ as restriction maps.
#include <cstdio>
#include <sheafnn/bsnn.hpp>

int main() {
  const sheafnn::Dataset data = sheafnn::karate_club();
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
  Model model({.features = data.feature_count(), .channels = 8, .layers = 2, .classes = data.class_count},
              /*seed*/ 1);

  const auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});
  const auto posterior = sheafnn::predict(model, data, {.samples = 50});

  std::printf("test accuracy %.0f%%\n", 100 * result.test_accuracy);
  std::printf("node  label  predicted  entropy  mutual information\n");
  for (const int node : data.splits[0].test) {
    const auto u = static_cast<std::size_t>(node);
    std::printf("%4d  %5d  %9d  %7.3f  %18.3f\n", node, data.labels[u], posterior.label[u], posterior.entropy[u],
                posterior.mutual_information[u]);
  }
}
