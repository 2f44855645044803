// What a Bayesian sheaf network has learned on a graph whose edges mostly join different classes: the rotations of its
// edges, the spectrum of its Laplacian, and a file for other programs. usage: learned_sheaf [FILE.npz]
#include <cmath>
#include <cstdio>
#include <exception>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/io/sheaf_file.hpp>
#include <sheafnn/rotation/rotation_angle.hpp>
#include <sheafnn/sheaf.hpp>
using Rotations = sheafnn::SpecialOrthogonal<3>;

/// The mean angle by which edges turn a vector on its way from one end to the other, R_aᵀ R_rev. Also the smallest
/// eigenvalues of the normalised Laplacian.
void describe(const char* what, const sheafnn::CellularSheaf<Rotations>& sheaf, const sheafnn::Dataset& data) {
  double degrees[2] = {0, 0}, count[2] = {0, 0};
  for (sheafnn::Index e = 0; e < data.graph.edge_count(); ++e) {
    const auto [u, v] = data.graph.edge(e);
    const bool between = data.labels[static_cast<std::size_t>(u)] != data.labels[static_cast<std::size_t>(v)];
    const Eigen::Matrix3d turn = sheaf.map(u, e).transpose() * sheaf.map(v, e);
    degrees[between] += sheafnn::rotation::rotation_angle<double, 3>(turn) * 180 / std::acos(-1.0);
    count[between] += 1;
  }
  std::printf("%-15s %10.1f %16.1f    ", what, degrees[0] / count[0], degrees[1] / count[1]);
  const sheafnn::SheafLaplacian laplacian(sheaf, sheafnn::Normalisation::block);
  for (const double value : sheafnn::sheaf::smallest_eigenpairs(laplacian, 6).values)
    std::printf(" %6.4f", std::abs(value));
  std::printf("\n");
}

int main(int argc, char** argv) try {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fprintf(stderr, "usage: learned_sheaf [FILE.npz]\n");
    return 2;
  }
  sheafnn::SyntheticOptions graph{.nodes = 300, .classes = 3, .features = 30, .words = 6, .degree = 8};
  graph.homophily = 0.2;
  graph.class_cycle = 1;   // edges to other classes join a class and the next one
  graph.degree_noise = 0;  // no node without edges
  const sheafnn::Dataset data = sheafnn::synthetic(graph);
  sheafnn::ModelOptions options{.features = data.feature_count(), .channels = 8, .layers = 2, .classes = 3};
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  sheafnn::Bsnn<Rotations> model(options, /*seed*/ 1);

  std::printf("%27s %16s     smallest eigenvalues\n", "angle within", "between classes");
  describe("before training", sheafnn::learned_sheaf(model, data), data);
  const auto result = sheafnn::train(model, data, data.splits[0],
                                     {.epochs = 400, .sheaf_decay = 0, .kl_maximum = 1e-3, .training_samples = 4});
  describe("after training", sheafnn::learned_sheaf(model, data), data);
  describe("a sample", sheafnn::draw_sheaf(model, data), data);
  std::printf("test accuracy %.0f%%\n", 100 * result.test_accuracy);
  if (argc > 1) {
    sheafnn::io::write_sheaf(argv[1], sheafnn::learned_sheaf(model, data),
                             sheafnn::posterior_parameters(model, data));
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "learned_sheaf: %s\n", error.what());
  return 2;
}
