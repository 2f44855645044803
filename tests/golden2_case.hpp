/// \file
/// The cases of golden2/: polynomial filters, from another independent implementation with automatic differentiation.
///
/// Keys as in golden_case.hpp; basis_parameters = Jacobi α, β, Gegenbauer λ, λ_max; recurrence = A_k, B_k, C_k;
/// coefficients = w_k. config = d, f, L, lp, hp, bayes, separate_encoder, edge_weights, family, basis, K, mixing, skip,
/// published, learner, sheaf_act, linear, edge_feature_count.
#pragma once

#include <string>

#include "golden_case.hpp"

namespace golden2 {

using sheafnn::Index;

/// Reads golden2/NAME.npz and checks that it is about such a model.
golden::Case read(const std::string& name, test::MapKind kind, int dimension, bool bayesian);

/// The options of a case from its file; options that the library does not have fail.
sheafnn::ModelOptions options_of(const golden::Case& given);

/// The check of golden_case.hpp for golden2/NAME.npz.
template <class Model>
void check(const std::string& name) {
  golden::check<Model>(read(name, test::kind_of<typename Model::Family>, Model::stalk_dimension, Model::bayesian),
                       golden::double_bounds);
}

}  // namespace golden2
