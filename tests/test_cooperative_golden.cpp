// Cooperative networks against golden2/: an independent implementation with automatic differentiation. Its files hold
// what golden_case.hpp says, with config = d, f, L, bayes, learner, depth, act, conformal, norm, left, right, residual,
// separate_encoder, heads, directed, and noise.l.{out, in}.{rotation, scale}.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"

namespace cooperative_golden_test {

using sheafnn::Index;

sheafnn::CooperativeOptions options_of(const golden::Case& given, int dimension, bool bayesian) {
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 15);
  REQUIRE(config[0] == dimension);
  REQUIRE((config[3] != 0) == bayesian);
  const auto flag = [&](std::size_t i) { return config[i] != 0; };
  sheafnn::CooperativeOptions r;
  r.features = given.options.features;
  r.classes = given.options.classes;
  r.channels = static_cast<Index>(config[1]);
  r.layers = static_cast<Index>(config[2]);
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  r.learner = static_cast<sheafnn::NodeLearnerKind>(config[4]);
  r.learner_layers = static_cast<Index>(config[5]);
  const std::string learner = bayesian ? "param.out" : "param.out.0";
  if (r.learner == sheafnn::NodeLearnerKind::mlp) {
    r.learner_width = given.file.at(learner + ".hidden.weight").shape.at(0);
  }
  r.activation = static_cast<sheafnn::Activation>(config[6]);
  r.conformal = flag(7);
  r.norm = static_cast<sheafnn::FeatureNorm>(config[8]);
  r.left_weights = flag(9);
  r.right_weights = flag(10);
  r.residual = flag(11);
  r.separate_encoder = flag(12);
  r.readout_layers = static_cast<Index>(config[13]);
  r.directed = flag(14);
  return r;
}

/// The file's noise as ForwardPass takes it.
template <class Model>
golden::Noise<typename Model::Scalar> map_noise_of(const golden::Case& given, const Model& model) {
  using S = typename Model::Scalar;
  golden::Noise<S> r;
  for (Index l = 0; Model::bayesian && l < model.options().layers; ++l) {
    std::vector<S>& noise = r.maps.emplace_back();
    for (const std::string side : {"out", "in"}) {
      const std::string key = sheafnn::detail::concat("noise.", l, ".", side);
      const std::vector<double>&rotation = given.file.at(key + ".rotation").values,
            &scale = given.file.at(key + ".scale").values;
      for (std::size_t u = 0; u < scale.size(); ++u) {
        const std::size_t size = static_cast<std::size_t>(Model::stalk_dimension * Model::stalk_dimension);
        for (std::size_t k = 0; k < size; ++k) noise.push_back(static_cast<S>(rotation[u * size + k]));
        noise.push_back(static_cast<S>(scale[u]));
      }
    }
  }
  return r;
}

template <class Model>
void check_case(const std::string& name, const golden::Bounds& bounds) {
  CAPTURE(name);
  const golden::Case given = golden::read_inputs("golden2", name);
  const Model model =
      golden::with_parameters(Model(options_of(given, Model::stalk_dimension, Model::bayesian)), given);
  golden::check_model(given, bounds, model, map_noise_of(given, model));
}

}  // namespace cooperative_golden_test

TEST_CASE("golden: cooperative networks") {
  using namespace cooperative_golden_test;
  check_case<sheafnn::Csnn<2, double>>("csnn_mlp2", golden::double_bounds);
  check_case<sheafnn::Csnn<3, double>>("csnn_sage3_layernorm", golden::double_bounds);
  // Logits of 180 give log-probabilities down to 1e-10, which have the rounding errors of the logits.
  golden::Bounds bounds = golden::double_bounds;
  bounds.least = 1;
  check_case<sheafnn::Csnn<3, double>>("csnn_mlp3_directed", bounds);
}
TEST_CASE("golden: Bayesian cooperative networks") {
  using namespace cooperative_golden_test;
  check_case<sheafnn::Bcsnn<2, double>>("bcsnn_sage2", golden::double_bounds);
  check_case<sheafnn::Bcsnn<3, double>>("bcsnn_mlp3", golden::double_bounds);
}
TEST_CASE("golden: cooperative networks in single precision") {
  using namespace cooperative_golden_test;
  check_case<sheafnn::Csnn<3, float>>("csnn_sage3_layernorm", golden::float_bounds);
  check_case<sheafnn::Bcsnn<3, float>>("bcsnn_mlp3", golden::float_bounds);
}
