// Sheaf hypergraph networks against golden3/ (golden3_case.hpp). With the non-linear Laplacian its files hold selection.l, too: the
// selected pairs, the most discrepant one of a hyperedge first, then its mediators.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "golden3_case.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"

namespace hypergraph_golden_test {

using sheafnn::Index;

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
  const golden::Case given = golden3::read(name);
  const sheafnn::Hypergraph hypergraph = golden3::hypergraph_of(given);
  const Model model = golden3::hypergraph_model<Model>(given);
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
