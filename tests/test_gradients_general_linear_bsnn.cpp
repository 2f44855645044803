/// \file
/// Bayesian networks with general linear maps: forward pass and gradient in every setting.
#include "model_gradient.hpp"

namespace test_gradients_general_linear_bsnn {

TEST_CASE("Bayesian networks, general linear maps, D = 1 … 5: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::GeneralLinear<1>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::GeneralLinear<2>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::GeneralLinear<3>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::GeneralLinear<4>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::GeneralLinear<5>, double>>();
}

}  // namespace test_gradients_general_linear_bsnn
