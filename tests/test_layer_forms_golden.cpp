/// \file
/// Waves, attention and copresheaves against the golden values of golden3/: outputs, hidden features and gradients; waves
/// and copresheaves in the batch engine, too.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "golden_batch.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_layer_forms_golden {
namespace {

using namespace sheafnn;

/// The options of a case; numbers of models as the files have them.
ModelOptions options_of(const golden::Case& given) {
  const std::vector<double>& config = given.file.at("config").values;
  const auto number = [&](std::size_t i) { return static_cast<Index>(config.at(i)); };
  ModelOptions r = given.options;
  r.channels = number(1);
  r.layers = number(2);
  r.edge_weights = false;
  switch (static_cast<int>(given.file.at("model").values.at(0))) {
    case 3:
      REQUIRE(number(7) == 1);
      REQUIRE(number(8) == 0);
      r.layer = LayerForm::wave;
      r.add_lp = number(3) != 0;
      r.add_hp = number(4) != 0;
      r.separate_encoder = number(6) != 0;
      break;
    case 4:
      r.layer = LayerForm::attention;
      r.separate_encoder = number(4) != 0;
      r.attention = {.heads = number(8),
                     .width = number(11),
                     .transported = number(9) != 0,
                     .residual = number(7) != 0,
                     .normalised = number(6) != 0,
                     .random = number(10) != 0};
      break;
    default:
      REQUIRE(given.file.at("model").values.at(0) == 8);
      r.layer = LayerForm::copresheaf;
      r.separate_encoder = number(4) != 0;
  }
  return r;
}

template <class Model, bool Batched = false>
void check(const std::string& name) {
  CAPTURE(name);
  golden::Case given = golden::read_inputs("golden3", name);
  given.options = options_of(given);
  for (auto& [key, array] : given.file) {
    if (key.ends_with("log_scale")) array.shape = {1};  // a scalar in the file
  }
  if constexpr (Batched) {
    batch::HostExecutor executor;
    golden::check_batch<Model>(executor, given, golden::double_bounds);
  } else {
    golden::check<Model>(given, golden::double_bounds);
  }
}

}  // namespace

TEST_CASE("golden values: waves") {
  using Model = SheafWave<GeneralLinear<2>, double>;
  check<Model>("wave_nsd_gen2");
  check<Model, true>("wave_nsd_gen2");
}
TEST_CASE("golden values: copresheaves") {
  using Model = CopresheafNetwork<GeneralLinear<2>, double>;
  check<Model>("copresheaf_gen2");
  check<Model, true>("copresheaf_gen2");
}
TEST_CASE("golden values: sheaf attention") {
  check<SheafAttention<SpecialOrthogonal<3>, double>>("san_so3");
  check<SheafAttention<Diagonal<2>, double>>("res_san_diag2_heads");
  check<BayesianSheafAttention<SpecialOrthogonal<2>, double>>("bsan_so2_random_attention");
}

}  // namespace test_layer_forms_golden
