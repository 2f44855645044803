// Sheaf hypergraph networks against golden3/: an independent implementation with automatic differentiation. Its files
// hold what golden_case.hpp says, with incidence in place of edges, config = d, f, L, bayes, separate_encoder, family,
// learner, laplacian, mediators, projection, update, static, bias, and of the non-linear Laplacian selection.l: the
// selected pairs, the most discrepant one of a hyperedge first, then its mediators.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "golden_case.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"

namespace hypergraph_golden_test {

using sheafnn::Index;

template <class Model>
sheafnn::HypergraphOptions options_of(const golden::Case& given) {
  REQUIRE(given.file.at("model").values.at(0) == 6);
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 13);
  REQUIRE(config[0] == Model::stalk_dimension);
  REQUIRE((config[3] != 0) == Model::bayesian);
  const auto flag = [&](std::size_t i) { return config[i] != 0; };
  sheafnn::HypergraphOptions r;
  r.features = given.options.features;
  r.classes = given.options.classes;
  r.channels = static_cast<Index>(config[1]);
  r.layers = static_cast<Index>(config[2]);
  r.feature_treatment = sheafnn::FeatureTreatment::none;
  if (Model::bayesian) r.separate_encoder = flag(4);
  r.learner = static_cast<sheafnn::HypergraphLearner>(config[6]);
  r.laplacian = static_cast<sheafnn::HypergraphLaplacian>(config[7]);
  r.mediators = flag(8);
  if (flag(9)) r.projection = given.file.at("projection").values;
  r.update = static_cast<sheafnn::HypergraphUpdate>(config[10]);
  r.static_sheaf = flag(11);
  r.bias = flag(12);
  r.spread = sheafnn::SpreadRange::published;
  r.sheaf_activation = sheafnn::SheafActivation::tanh;
  r.parametrisation = sheafnn::rotation::RotationParametrisation::householder;
  return r;
}
sheafnn::Hypergraph hypergraph_of(const golden::Case& given) {
  const std::vector<double>& incidence = given.file.at("incidence").values;
  std::vector<sheafnn::Incidence> pairs;
  Index hyperedges = 0;
  for (std::size_t i = 0; i < incidence.size(); i += 2) {
    pairs.push_back({static_cast<std::int32_t>(incidence[i]), static_cast<std::int32_t>(incidence[i + 1])});
    hyperedges = std::max<Index>(hyperedges, pairs.back().hyperedge + 1);
  }
  return {given.features.rows(), hyperedges, pairs};
}

/// Compares the pairs that the layers have selected, where they select any.
template <class Model>
void compare_selections(const golden::Case& given, const sheafnn::Network<Model>& network) {
  const sheafnn::HypergraphOptions& options = network.model().options();
  if (options.laplacian != sheafnn::HypergraphLaplacian::nonlinear) return;
  for (Index l = 0; l < options.layers; ++l) {
    std::vector<double> selected;
    const auto add = [&](Index a, Index b) {
      selected.push_back(static_cast<double>(a));
      selected.push_back(static_cast<double>(b));
    };
    const sheafnn::Hypergraph& hypergraph = network.graph();
    for (Index e = 0; e < hypergraph.hyperedge_count(); ++e) {
      const auto [p, q] = network.layer(l).terms().ends(e);
      if (p < 0) continue;
      add(p, q);
      for (Index k = hypergraph.first_member(e); options.mediators && k < hypergraph.first_member(e + 1); ++k) {
        const Index other = hypergraph.member(k);
        if (other == p || other == q) continue;
        add(p, other);
        add(q, other);
      }
    }
    golden::compare(given, "selection." + std::to_string(l), selected, 0);
  }
}

template <class Model>
void check_case(const std::string& name, const golden::Bounds& bounds) {
  CAPTURE(name);
  const golden::Case given = golden::read_inputs("golden3", name);
  const sheafnn::Hypergraph hypergraph = hypergraph_of(given);
  const Model model = golden::with_parameters(Model(options_of<Model>(given)), given);
  sheafnn::Network<Model> network(model, hypergraph, given.features, 1),
      threaded(model, hypergraph, given.features, 2);
  golden::check_networks(given, bounds, network, threaded, golden::noise_of(given, model));
  compare_selections(given, network);
}

}  // namespace hypergraph_golden_test

TEST_CASE("golden: sheaf hypergraph networks") {
  using namespace hypergraph_golden_test;
  check_case<sheafnn::SheafHyperGnn<sheafnn::Diagonal<2>, double>>("hyper_diag2", golden::double_bounds);
  check_case<sheafnn::SheafHyperGnn<sheafnn::Diagonal<3>, double>>("hyper_diag3_published", golden::double_bounds);
  check_case<sheafnn::SheafHyperGnn<sheafnn::SpecialOrthogonal<3>, double>>("hyper_so3_nonlinear",
                                                                            golden::double_bounds);
}
TEST_CASE("golden: Bayesian sheaf hypergraph networks") {
  using namespace hypergraph_golden_test;
  check_case<sheafnn::BayesianSheafHyperGnn<sheafnn::GeneralLinear<2>, double>>("bhyper_gen2",
                                                                                golden::double_bounds);
}
TEST_CASE("golden: sheaf hypergraph networks in single precision") {
  using namespace hypergraph_golden_test;
  check_case<sheafnn::SheafHyperGnn<sheafnn::Diagonal<2>, float>>("hyper_diag2", golden::float_bounds);
  check_case<sheafnn::BayesianSheafHyperGnn<sheafnn::GeneralLinear<2>, float>>("bhyper_gen2",
                                                                               golden::float_bounds);
}
