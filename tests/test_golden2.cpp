/// \file
/// Reading the files of golden2/ (golden2_case.hpp), and the filters' recurrences and coefficients against theirs.
#include <doctest/doctest.h>

#include <cmath>

#include "golden2_case.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"

namespace golden2 {
namespace {

using sheafnn::PolynomialBasis;

sheafnn::PolynomialOptions filter_of(const golden::Case& given) {
  constexpr PolynomialBasis bases[] = {PolynomialBasis::chebyshev,
                                       PolynomialBasis::chebyshev_second,
                                       PolynomialBasis::chebyshev_third,
                                       PolynomialBasis::chebyshev_fourth,
                                       PolynomialBasis::chebyshev_interpolation,
                                       PolynomialBasis::legendre,
                                       PolynomialBasis::gegenbauer,
                                       PolynomialBasis::jacobi};
  const std::vector<double>& config = given.file.at("config").values;
  const std::vector<double>& parameters = given.file.at("basis_parameters").values;
  sheafnn::PolynomialOptions r;
  r.basis = bases[static_cast<std::size_t>(config.at(9))];
  r.degree = static_cast<Index>(config.at(10));
  r.skip = config.at(12) != 0 ? sheafnn::HighPassSkip::mixed : sheafnn::HighPassSkip::input;
  r.published = config.at(13) != 0;
  r.jacobi_alpha = parameters.at(0);
  r.jacobi_beta = parameters.at(1);
  r.gegenbauer_lambda = parameters.at(2);
  r.largest_eigenvalue = parameters.at(3);
  return r;
}

}  // namespace

sheafnn::ModelOptions options_of(const golden::Case& given) {
  const std::vector<double>& config = given.file.at("config").values;
  REQUIRE(config.size() == 18);
  sheafnn::ModelOptions r = given.options;
  using sheafnn::LearnerInput, sheafnn::SheafActivation;
  constexpr LearnerInput learners[] = {LearnerInput::concatenation, LearnerInput::summed,
                                       LearnerInput::summed_published, LearnerInput::concatenation};
  constexpr SheafActivation activations[] = {SheafActivation::tanh, SheafActivation::identity,
                                             SheafActivation::elu};
  const bool attention = config[14] == 3;
  r.learner = learners[static_cast<std::size_t>(config[14])];
  r.sheaf_activation = attention ? SheafActivation::attention : activations[static_cast<std::size_t>(config[15])];
  r.edge_features = static_cast<Index>(config[17]);
  r.channels = static_cast<Index>(config[1]);
  r.layers = static_cast<Index>(config[2]);
  r.add_lp = config[3] != 0;
  r.add_hp = config[4] != 0;
  r.separate_encoder = config[6] != 0;
  r.edge_weights = config[7] != 0;
  r.left_weights = r.right_weights = config[11] != 0;
  r.linear = config[16] != 0;
  r.filter = filter_of(given);
  return r;
}

golden::Case read(const std::string& name, test::MapKind kind, int dimension, bool bayesian) {
  CAPTURE(name);
  golden::Case r = golden::read_inputs("golden2", name);
  const std::vector<double>& config = r.file.at("config").values;
  constexpr test::MapKind kinds[] = {test::MapKind::diagonal, test::MapKind::rotation, test::MapKind::dense};
  REQUIRE(r.file.at("model").values.at(0) == 0);
  REQUIRE(kinds[static_cast<std::size_t>(config.at(8))] == kind);
  REQUIRE(config.at(0) == dimension);
  REQUIRE((config.at(5) != 0) == bayesian);
  r.options = options_of(r);
  if (r.options.edge_features > 0)
    r.graph.set_arc_features(r.file.at("edge_features").values, r.options.edge_features);
  for (auto& [key, array] : r.file) {
    if (key.ends_with("poly.skip")) array.shape = {1};  // a scalar in the file
  }
  return r;
}

TEST_CASE("golden values: recurrences and coefficients of polynomial filters") {
  for (const char* name :
       {"poly_nsd_diag2_chebyshev1", "poly_nsd_diag3_options", "poly_nsd_gen2_attention",
        "poly_nsd_gen2_jacobi_lp", "poly_nsd_so2_summed_published", "poly_nsd_so3_legendre_hp",
        "poly_bsnn_diag3_chebyshev1_lp", "poly_bsnn_gen2_interpolation", "poly_bsnn_so3_gegenbauer"}) {
    CAPTURE(name);
    const golden::Case given = golden::read_inputs("golden2", name);
    const sheafnn::PolynomialOptions options = filter_of(given);
    const std::vector<double>& theta = given.file.at("param.poly.logits").values;
    const sheafnn::layers::Polynomial p(options, std::span<const double>(theta));
    std::vector<double> recurrence, coefficients;
    for (double sheafnn::layers::RecurrenceStep::*of :
         {&sheafnn::layers::RecurrenceStep::slope, &sheafnn::layers::RecurrenceStep::constant,
          &sheafnn::layers::RecurrenceStep::before}) {
      for (Index k = 0; k < p.degree(); ++k) recurrence.push_back(p.step(k).*of);
    }
    for (Index k = 0; k <= p.degree(); ++k) coefficients.push_back(p.coefficient(k));
    CHECK(golden::distance(recurrence, given.file.at("recurrence").values) <= 1e-15);
    CHECK(golden::distance(coefficients, given.file.at("coefficients").values) <= 1e-15);
  }
}

}  // namespace golden2
