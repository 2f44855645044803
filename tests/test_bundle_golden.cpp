// Bundle networks against golden3/ (golden3_case.hpp).
#include <doctest/doctest.h>

#include <string>

#include "golden3_case.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"

namespace bundle_golden_test {

template <class Model>
void check_case(const std::string& name, const golden::Bounds& bounds) {
  CAPTURE(name);
  const golden::Case given = golden3::read(name);
  const Model model = golden3::bundle_model<Model>(given);
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
