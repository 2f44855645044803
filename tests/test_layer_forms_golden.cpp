/// \file
/// Waves, attention and copresheaves against the golden values of golden3/: outputs, hidden features and gradients.
#include <doctest/doctest.h>

#include <string>

#include "golden3_case.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_layer_forms_golden {
namespace {

using namespace sheafnn;

template <class Model>
void check(const std::string& name) {
  golden::check<Model>(golden3::layer_form(name), golden::double_bounds);
}

}  // namespace

TEST_CASE("golden values: waves") { check<SheafWave<GeneralLinear<2>, double>>("wave_nsd_gen2"); }
TEST_CASE("golden values: copresheaves") { check<CopresheafNetwork<GeneralLinear<2>, double>>("copresheaf_gen2"); }
TEST_CASE("golden values: sheaf attention") {
  check<SheafAttention<SpecialOrthogonal<3>, double>>("san_so3");
  check<SheafAttention<Diagonal<2>, double>>("res_san_diag2_heads");
  check<BayesianSheafAttention<SpecialOrthogonal<2>, double>>("bsan_so2_random_attention");
}

}  // namespace test_layer_forms_golden
