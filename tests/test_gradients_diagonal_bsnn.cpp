/// \file
/// Bayesian networks with diagonal maps: forward pass and gradient in every setting.
#include "model_gradient.hpp"

namespace test_gradients_diagonal_bsnn {

TEST_CASE("Bayesian networks, diagonal maps, D = 1 … 5: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Diagonal<1>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Diagonal<2>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Diagonal<3>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Diagonal<4>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Diagonal<5>, double>>();
}

}  // namespace test_gradients_diagonal_bsnn
