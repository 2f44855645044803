/// \file
/// Networks with the identity as every map, of both kinds: forward pass and gradient in every setting.
#include "model_gradient.hpp"

namespace test_gradients_identity {

TEST_CASE("Bayesian networks, identity maps, D = 2, 3: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Identity<2>, double>>();
  model_gradient::check_model<sheafnn::Bsnn<sheafnn::Identity<3>, double>>();
}

TEST_CASE("deterministic networks, identity maps, D = 1 … 5: forward pass and gradient for every option") {
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Identity<1>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Identity<2>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Identity<3>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Identity<4>, double>>();
  model_gradient::check_model<sheafnn::Nsd<sheafnn::Identity<5>, double>>();
}

}  // namespace test_gradients_identity
