// Bundle networks against golden3/: an independent implementation with automatic differentiation. Its files hold what
// golden_case.hpp says, with config = d, B, f, L, bayes, learner, orth, normalisation, self_loops, expansion, K, mix,
// norm, residual, act.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"

namespace bundle_golden_test {

using sheafnn::Index;

sheafnn::BundleOptions options_of(const golden::Case& given, int dimension, bool bayesian) {
  using enum sheafnn::Activation;
  constexpr sheafnn::Activation activations[] = {elu, relu, gelu, tanh, identity};
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 15);
  REQUIRE(config[0] == dimension);
  REQUIRE((config[4] != 0) == bayesian);
  const auto index = [&](std::size_t i) { return static_cast<Index>(config[i]); };
  sheafnn::BundleOptions r;
  r.features = given.options.features;
  r.classes = given.options.classes;
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  r.bundles = index(1);
  r.channels = index(2);
  r.layers = index(3);
  r.learner = config[5] == 0 ? sheafnn::BundleLearnerKind::mlp : sheafnn::BundleLearnerKind::sage;
  if (config[5] == 0) {
    r.learner_width =
        given.file.at(bayesian ? "param.maps.hidden.weight" : "param.maps.0.hidden.weight").shape.at(0);
  }
  r.parametrisation = config[6] == 0 ? sheafnn::rotation::RotationParametrisation::householder
                                     : sheafnn::rotation::RotationParametrisation::euler;
  r.normalisation = static_cast<sheafnn::AdjacencyNormalisation>(config[7]);
  r.self_loops = config[8] != 0;
  r.expansion = static_cast<sheafnn::HeatExpansion>(config[9]);
  r.terms = index(10);
  r.mixing = static_cast<sheafnn::BundleMixing>(config[11]);
  r.layer_norm = config[12] != 0;
  r.residual = config[13] != 0;
  r.activation = activations[static_cast<std::size_t>(config[14])];
  return r;
}

template <class Model>
void check_case(const std::string& name, const golden::Bounds& bounds) {
  CAPTURE(name);
  const golden::Case given = golden::read_inputs("golden3", name);
  const Model model =
      golden::with_parameters(Model(options_of(given, Model::stalk_dimension, Model::bayesian)), given);
  golden::check_model(given, bounds, model, golden::noise_of(given, model));
}

}  // namespace bundle_golden_test

TEST_CASE("golden: bundle networks") {
  using namespace bundle_golden_test;
  check_case<sheafnn::Bunn<2, double>>("bunn_planar", golden::double_bounds);
  check_case<sheafnn::Bunn<3, double>>("bunn_d3_feedforward", golden::double_bounds);
}
TEST_CASE("golden: Bayesian bundle networks") {
  using namespace bundle_golden_test;
  check_case<sheafnn::BayesianBunn<3, double>>("bbunn_d3_spectral", golden::double_bounds);
}
TEST_CASE("golden: bundle networks in single precision") {
  using namespace bundle_golden_test;
  check_case<sheafnn::Bunn<3, float>>("bunn_d3_feedforward", golden::float_bounds);
}
