/// \file
/// Deterministic networks with diagonal maps: forward pass and gradient in every setting.
#include "model_gradient.hpp"

namespace test_gradients_diagonal_nsd {

TEST_CASE("deterministic networks, diagonal maps, D = 1 … 5: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Diagonal<1>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Diagonal<2>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Diagonal<3>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Diagonal<4>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Diagonal<5>, double>>();
}

}  // namespace test_gradients_diagonal_nsd
