// A layer of your own: reaction and diffusion (Allen-Cahn), with a rate of both for every stalk coordinate,
//     X' = X − tanh(γ) ∘ Δ X + tanh(ρ) ∘ (X − X ∘ X ∘ X),   X after dropout.
// It has no A, B and ε: left_weights and right_weights of ModelOptions have no effect.
// Its equation is written once: for train(), for batches of trainings side by side and for CUDA devices.
#include <cstdio>
#include <sheafnn/batch.hpp>
#include <sheafnn/bsnn.hpp>
#include <vector>

// At one value of the features. T is a tile of channels, which behaves like a scalar.
template <class T>
struct Reaction {
  static constexpr sheafnn::layers::EquationWeight weights[] = {{.name = "gamma", .initial = 0.5, .tanh = true},
                                                                {.name = "rho", .initial = 0, .tanh = true}};
  T gamma, rho;

  // From the rates tanh(γ_i) and tanh(ρ_i) of a stalk coordinate.
  template <class S>
  SHEAFNN_HD explicit Reaction(const S* rates) : gamma(rates[0]), rho(rates[1]) {}

  // X' from X (at.x) and Δ X (at.z).
  SHEAFNN_HD T forward(const sheafnn::layers::LayerValues<T>& at) const {
    return at.x - gamma * at.z + rho * (at.x - at.x * at.x * at.x);
  }
  // Computes the derivatives with respect to the rates, X and Δ X from the derivative with respect to X'. It sets
  // rates_bar, and does not add to it. No branches on numbers: sheafnn::math::select. More inputs (X_1, X_{l−1}):
  // kernels/layer_equation.hpp.
  SHEAFNN_HD sheafnn::layers::LayerValues<T> backward(const sheafnn::layers::LayerValues<T>& at, const T& bar,
                                                      T* rates_bar) const {
    rates_bar[0] = -bar * at.z;
    rates_bar[1] = bar * (at.x - at.x * at.x * at.x);
    return {.x = bar * (T(1) + rho * (T(1) - T(3) * at.x * at.x)), .z = -gamma * bar};
  }
};
template <class Family, class S>
using ReactionLayer = sheafnn::layers::LaplacianLayer<Reaction, Family, S>;

using Maps = sheafnn::SpecialOrthogonal<3>;
using Model = sheafnn::SheafModel<Maps, sheafnn::PointMass<Maps>, float, sheafnn::LayerKinds<ReactionLayer>>;

// Three seeds side by side. \tparam Executor  batch::HostExecutor, or batch::DeviceExecutor in a file for nvcc
template <class Executor>
void train_seeds(const sheafnn::Dataset& data, const sheafnn::ModelOptions& options) {
  std::vector<Model> models;
  for (std::uint64_t seed = 0; seed < 3; ++seed) models.emplace_back(options, seed);
  std::vector<sheafnn::batch::Training<Model>> trainings;
  for (Model& model : models) trainings.push_back({&model, &data.splits[0], {.epochs = 300}});
  Executor executor;
  for (const auto& outcome : sheafnn::batch::train_batch<Executor, Model>(executor, data, trainings)) {
    std::printf("side by side: test accuracy %.0f%%\n", 100 * outcome.result.test_accuracy);
  }
}

int main() {
  const sheafnn::Dataset data = sheafnn::karate_club();
  const sheafnn::ModelOptions options{.features = data.feature_count(),
                                      .channels = 8,
                                      .layers = 3,
                                      .classes = data.class_count};
  Model model(options);
  const auto result = train(model, data, data.splits[0], {.epochs = 300});
  const float gamma = model.parameters().data(model.parameters().find("gamma.0"))[0];
  std::printf("gamma of the first layer %.2f, test accuracy %.0f%%\n", gamma, 100 * result.test_accuracy);
  train_seeds<sheafnn::batch::HostExecutor>(data, options);
}
