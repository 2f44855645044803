/// \file
/// Networks with polynomial filters: the gradient of the loss NLL + λ·KL against central differences along every
/// coordinate of every parameter, for all filters and families; evaluations, which go another way, against training
/// passes.
#include <doctest/doctest.h>

#include <cmath>

#include "model_gradient.hpp"
#include "worst.hpp"

namespace test_polynomial_networks {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::rotation;
using model_gradient::Setting;

Setting setting(std::string name, PolynomialBasis basis, Index degree) {
  Setting r;
  r.name = std::move(name);
  r.model.filter.basis = basis;
  r.model.filter.degree = degree;
  r.model.filter.jacobi_alpha = 0.5;
  r.model.filter.jacobi_beta = -0.25;
  r.model.filter.gegenbauer_lambda = 0.5;
  r.model.edge_weights = r.model.separate_encoder = false;
  return r;
}

/// Every filter, and every option that meets one.
std::vector<Setting> settings(bool rotations, bool sampled) {
  std::vector<Setting> r;
  for (std::size_t i = 1; i < names_of(PolynomialBasis()).size(); ++i) {
    r.push_back(setting(std::string(names_of(PolynomialBasis())[i]), static_cast<PolynomialBasis>(i), 4));
  }
  const auto add = [&](std::string name, PolynomialBasis basis, Index degree, const auto& change) {
    change(r.emplace_back(setting(std::move(name), basis, degree)));
  };
  add("degree 0", PolynomialBasis::chebyshev, 0, [](Setting&) {});
  add("degree 1", PolynomialBasis::jacobi, 1, [](Setting&) {});
  add("degree 2, mixed skip", PolynomialBasis::chebyshev_third, 2, [](Setting& s) {
    s.model.filter.skip = HighPassSkip::mixed;
    s.model.add_lp = s.model.add_hp = true;
  });
  add("degree 3, no skip, free", PolynomialBasis::gegenbauer, 3, [](Setting& s) {
    s.model.filter.skip = HighPassSkip::off;
    s.model.filter.coefficients = PolynomialCoefficients::free;
  });
  add("published interpolation, another bound", PolynomialBasis::chebyshev_interpolation, 3, [](Setting& s) {
    s.model.filter.published = true;
    s.model.filter.largest_eigenvalue = 2.5;
  });
  add("published Jacobi, mixed skip", PolynomialBasis::jacobi, 3, [](Setting& s) {
    s.model.filter.published = true;
    s.model.filter.skip = HighPassSkip::mixed;
  });
  add("no mixing, one sheaf, no activation", PolynomialBasis::legendre, 3, [](Setting& s) {
    s.model.left_weights = s.model.right_weights = s.model.activation = false;
    s.model.linear = true;
  });
  add("degree 0, mixed skip, dropout", PolynomialBasis::legendre, 0, [](Setting& s) {
    s.model.filter.skip = HighPassSkip::mixed;
    s.model.left_weights = s.model.right_weights = false;
    s.dropout = 0.3;
  });
  add("everything", PolynomialBasis::chebyshev, 5, [&](Setting& s) {
    s.model.add_lp = s.model.add_hp = s.model.second_linear = true;
    s.model.channels = 5;
    s.input_dropout = s.dropout = 0.3;
    s.model.edge_weights = rotations;
    s.model.separate_encoder = s.model.degree_input = sampled;
    if (sampled) {
      s.samples = 2;
      s.kl_estimator = KlEstimator::monte_carlo;
    }
  });
  return r;
}

enum class Extent { all, one };  // every setting, or one with fixed filters and the skip term

template <class Model>
void check_model(Extent extent = Extent::all) {
  static_assert(std::is_same_v<typename Model::Scalar, double>);
  CAPTURE(Model::Family::name);
  CAPTURE(Model::stalk_dimension);
  CAPTURE(Model::bayesian);
  const tiny::Task task;
  constexpr auto kind = test::kind_of<typename Model::Family>;
  for (const Setting& setting :
       settings(kind == test::MapKind::rotation, Model::bayesian && kind != test::MapKind::fixed)) {
    CAPTURE(setting.name);
    if (extent == Extent::one && setting.name != "degree 2, mixed skip") continue;
    Model model(setting.model, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    test::TrainingPass<double> pass = setting.pass(task);
    pass.epoch = 0;
    pass.only_nodes = setting.model.filter.degree % 2 == 0;
    Network<Model> network(model, task.graph, task.sparse);
    model_gradient::check_gradient(model, network, pass);

    if constexpr (Model::bayesian) {  // the second sample, with and without one before it
      std::vector<double> second;
      test::evaluate(network, 3, 0, 2, [&](Index) { second = test::last_outputs(network); });
      const auto alone = network.forward({.seed = 3, .sample = 1});
      log_softmax_rows(1, alone.rows(), alone.columns(), alone.data(), alone.stride());
      CHECK(test::last_outputs(network) == second);
      continue;
    }
    const auto outputs = [&](bool training) {
      network.forward({.training = training});
      return test::last_outputs(network);
    };
    const std::vector<double> trained = outputs(true), evaluated = outputs(false);
    double worst = 0;
    for (std::size_t i = 0; i < trained.size(); ++i) {
      worst = test::worse(worst, std::abs(trained[i] - evaluated[i]) / std::max(1.0, std::abs(trained[i])));
    }
    CHECK(worst <= 1e-13);
  }
}

template <template <int> class Family>
void check_higher_dimensions(Extent extent) {
  check_model<Nsd<Family<4>, double>>(extent);
  check_model<Nsd<Family<5>, double>>(extent);
  check_model<Bsnn<Family<4>, double>>(extent);
  check_model<Bsnn<Family<5>, double>>(extent);
}

}  // namespace

TEST_CASE("polynomial filters, diagonal maps: gradient for every filter") {
  check_model<Nsd<Diagonal<1>, double>>();
  check_model<Nsd<Diagonal<2>, double>>();
  check_model<Nsd<Diagonal<3>, double>>();
  check_model<Bsnn<Diagonal<1>, double>>();
  check_model<Bsnn<Diagonal<2>, double>>();
  check_model<Bsnn<Diagonal<3>, double>>();
  check_higher_dimensions<Diagonal>(Extent::one);
}
TEST_CASE("polynomial filters, rotations: gradient for every filter") {
  check_model<Nsd<SpecialOrthogonal<1>, double>>();
  check_model<Nsd<SpecialOrthogonal<2>, double>>();
  check_model<Nsd<SpecialOrthogonal<3>, double>>();
  check_model<Bsnn<SpecialOrthogonal<1>, double>>();
  check_model<Bsnn<SpecialOrthogonal<2>, double>>();
  check_model<Bsnn<SpecialOrthogonal<3>, double>>();
  check_higher_dimensions<SpecialOrthogonal>(Extent::one);
}
TEST_CASE("polynomial filters, general maps: gradient for every filter") {
  check_model<Nsd<GeneralLinear<1>, double>>();
  check_model<Nsd<GeneralLinear<2>, double>>();
  check_model<Nsd<GeneralLinear<3>, double>>();
  check_model<Bsnn<GeneralLinear<1>, double>>();
  check_model<Bsnn<GeneralLinear<2>, double>>();
  check_model<Bsnn<GeneralLinear<3>, double>>();
  check_higher_dimensions<GeneralLinear>(Extent::one);
}
TEST_CASE("polynomial filters, identity maps: gradient for every filter") {
  check_model<Nsd<Identity<2>, double>>();
  check_model<Nsd<Identity<3>, double>>();
}

TEST_CASE("polynomial filters, conformal maps: gradient for every filter") {
  check_model<Nsd<Conformal<2>, double>>();
  check_model<Bsnn<Conformal<2>, double>>();
}
// Fifteen seconds: with --no-skip only.
TEST_CASE("polynomial filters, D = 4 and 5: gradient for every filter" * doctest::skip()) {
  check_higher_dimensions<Diagonal>(Extent::all);
  check_higher_dimensions<SpecialOrthogonal>(Extent::all);
  check_higher_dimensions<GeneralLinear>(Extent::all);
}

}  // namespace test_polynomial_networks
