// A loss of your own: the mean squared error of a signal on the nodes, differentiated by hand. The signal is what 20
// steps of diffusion make of +10 at Mr. Hi and -10 at the officer; it is known for half of the club's members.
#include <cstdio>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/sheaf.hpp>
#include <vector>

int main() {
  const sheafnn::Dataset club = sheafnn::karate_club();
  const sheafnn::Index n = club.node_count();
  const sheafnn::SheafLaplacian laplacian(sheafnn::CellularSheaf<sheafnn::Identity<1>>(club.graph));
  sheafnn::Cochain<double> signal = sheafnn::Cochain<double>::Zero(n, 1);
  signal(0) = 10;
  signal(n - 1) = -10;
  signal = sheafnn::sheaf::diffuse(laplacian, signal, 0.03, 20);
  std::vector<std::int32_t> known, unknown;
  for (std::int32_t u = 0; u < n; ++u) (u % 2 == 0 ? known : unknown).push_back(u);

  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
  Model model({.features = club.feature_count(), .channels = 8, .layers = 2, .classes = 1}, /*seed*/ 1);
  sheafnn::Network network(model, club.graph, club.features);
  sheafnn::layers::Adam<float> adam(model.parameters().size(), /*rate*/ 0.01);

  for (std::uint32_t epoch = 0; epoch <= 400; ++epoch) {
    // L = Σ (y_u − s_u)² / N over the N known nodes, so ∂L/∂y_u = 2 (y_u − s_u) / N. Rows of y belong to the nodes.
    const auto y =
        network.forward({.epoch = epoch, .training = true, .input_dropout = 0.5, .dropout = 0.1, .nodes = known});
    const auto y_bar = network.output_bar();
    const double count = static_cast<double>(known.size());
    double loss = 0;
    for (sheafnn::Index row = 0; row < y.rows(); ++row) {
      const double error = static_cast<double>(y(row, 0)) - signal(network.nodes()[row]);
      loss += error * error / count;
      y_bar(row, 0) = static_cast<float>(2 * error / count);
    }
    const double kl = network.backward(y_bar, {.kl_weight = 0.01});
    adam.step({}, model.parameters(), network.gradient(), /*weight decay*/ 1e-4, /*of the sheaf learner*/ 1e-4);
    if (epoch % 100 == 0) std::printf("epoch %3u  mean squared error %.4f  KL %.3f\n", epoch, loss, kl);
  }

  // Predictions are means over the posterior.
  constexpr sheafnn::Index samples = 50;
  sheafnn::Cochain<double> mean = sheafnn::Cochain<double>::Zero(n, 1);
  network.begin({}).draw_samples(samples, [&](const auto& y) { mean += y.eigen().template cast<double>() / samples; });
  const sheafnn::Regression regression{sheafnn::MatrixView(signal)};
  std::printf("R^2 of the other members: %.2f\n", regression.score(sheafnn::MatrixView(mean), unknown).score);
}
