// One diffusion layer inside a computation of your own, which learns everything by gradient descent: free embeddings X,
// a restriction map for every incident pair, the layer's weights, and logits z = X' r for the two factions.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sheafnn/graph/karate.hpp>
#include <sheafnn/layers.hpp>

using Layer = sheafnn::layers::SheafDiffusionLayer<sheafnn::GeneralLinear<2>, double>;
using Matrix = sheafnn::Cochain<double>;  // Eigen, row-major

int main() {
  const sheafnn::Dataset club = sheafnn::karate_club();
  const sheafnn::Split& split = club.splits[0];
  const sheafnn::Index n = club.node_count(), d = Layer::stalk_dimension, f = 4;

  Layer layer(club.graph, {.channels = f});
  auto weights = layer.default_weights();
  std::srand(1);                               // of Eigen's random numbers
  Matrix x = 0.01 * Matrix::Random(n * d, f);  // a row per stalk coordinate
  Matrix maps(club.graph.arc_count(), d * d);  // a row per incident pair
  maps.rowwise() = Eigen::RowVector4d(1, 0, 0, 1);
  Eigen::VectorXd readout = Eigen::VectorXd::Random(d * f);

  for (int step = 0; step <= 200; ++step) {
    const auto y = layer.forward(sheafnn::MatrixView(maps), weights, sheafnn::FeatureView(x, d));
    const auto rows = y.rows().eigen();  // n × d f
    const Eigen::VectorXd logits = rows * readout;

    // The logistic loss of the training nodes and its derivative.
    Eigen::VectorXd logits_bar = Eigen::VectorXd::Zero(n);
    double loss = 0, right = 0;
    for (const int u : split.train) {
      const double label = club.labels[static_cast<std::size_t>(u)], p = 1 / (1 + std::exp(-logits(u)));
      loss -= std::log(label == 1 ? p : 1 - p) / static_cast<double>(split.train.size());
      logits_bar(u) = (p - label) / static_cast<double>(split.train.size());
    }
    for (const int u : split.test)
      right += (logits(u) > 0) == (club.labels[static_cast<std::size_t>(u)] == 1) ? 1 : 0;
    // Backwards: through the readout by hand, through the layer by its backward pass.
    Matrix y_bar(n * d, f), x_bar(n * d, f), maps_bar = Matrix::Zero(maps.rows(), maps.cols());
    auto weights_bar = layer.zero_weights();
    sheafnn::FeatureView(y_bar, d).rows().eigen() = logits_bar * readout.transpose();
    const Eigen::VectorXd readout_bar = rows.transpose() * logits_bar;
    layer.backward(sheafnn::FeatureView(y_bar, d), sheafnn::FeatureView(x_bar, d), sheafnn::MatrixView(maps_bar),
                   weights_bar);

    constexpr double rate = 2;
    x -= rate * x_bar;
    maps -= rate * maps_bar;
    weights.left -= rate * weights_bar.left;
    weights.right -= rate * weights_bar.right;
    weights.epsilon -= rate * weights_bar.epsilon;
    readout -= rate * readout_bar;
    if (step % 50 == 0) {
      std::printf("step %3d  loss %.4f  test accuracy %3.0f%%\n", step, loss,
                  100 * right / static_cast<double>(split.test.size()));
    }
  }
}
