/// \file
/// The cases of golden2/: polynomial filters, from another independent implementation with automatic differentiation.
///
/// Keys as in golden_case.hpp, and hidden.l, the features before layer l; basis_parameters = Jacobi α, β, Gegenbauer λ,
/// λ_max; recurrence = A_k, B_k, C_k; coefficients = w_k. config = d, f, L, lp, hp, bayes, separate_encoder,
/// edge_weights, family, basis, K, mixing, skip, published, learner, sheaf_act, linear, edge_feature_count.
#pragma once

#include <string>

#include "golden_case.hpp"

namespace golden2 {

using sheafnn::Index;

/// Reads golden2/NAME.npz and checks that it is about such a model.
golden::Case read(const std::string& name, test::MapKind kind, int dimension, bool bayesian);

/// The options of a case from its file; others than those of the library fail.
sheafnn::ModelOptions options_of(const golden::Case& given);

/// Largest |difference| / max(1, largest |expected|).
double distance(const std::vector<double>& values, const std::vector<double>& expected);

/// Checks a case: outputs and gradients of a training pass with 1 and 2 threads, and an evaluation layer by layer.
template <class Model>
void check(const std::string& name) {
  const golden::Case given =
      read(name, test::kind_of<typename Model::Family>, Model::stalk_dimension, Model::bayesian);
  golden::check<Model>(given, golden::double_bounds);

  const Model model = golden::model_of<Model>(given);
  const auto noise = golden::noise_of<Model>(given);
  sheafnn::Network<Model> network(model, given.graph, given.features);
  test::evaluate(network, 0, 0, 1, [](Index) {}, {noise.begin(), noise.end()});
  double worst = distance(test::last_outputs(network), given.file.at("log_probabilities").values);
  for (Index l = 0; l <= given.options.layers; ++l) {
    const auto x = network.features_after(l);
    worst = std::max(worst, distance({x.data(), x.data() + x.size()},
                                     given.file.at("hidden." + std::to_string(l)).values));
  }
  golden::check_same(worst <= golden::double_bounds.output, name + ": evaluation");
}

}  // namespace golden2
