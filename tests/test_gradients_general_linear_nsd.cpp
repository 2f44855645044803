/// \file
/// Deterministic networks with general linear maps: forward pass and gradient in every setting.
#include "model_gradient.hpp"

namespace test_gradients_general_linear_nsd {

TEST_CASE("deterministic networks, general linear maps, D = 1 … 5: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Nsd<sheafnn::GeneralLinear<1>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::GeneralLinear<2>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::GeneralLinear<3>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::GeneralLinear<4>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::GeneralLinear<5>, double>>();
}

}  // namespace test_gradients_general_linear_nsd
