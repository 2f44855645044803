/// \file
/// Bayesian networks with special orthogonal maps: forward pass and gradient in every setting.
#include "model_gradient.hpp"

namespace test_gradients_special_orthogonal_bsnn {

TEST_CASE("Bayesian networks, special orthogonal maps, D = 1 … 5: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<1>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<4>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<5>, double>>();
}

}  // namespace test_gradients_special_orthogonal_bsnn
