/// \file
/// The networks' forward pass once more: dense matrices of extended precision, one arc at a time, written from the
/// definitions (math: "The model", "Coboundary and Laplacian"). Slow, and independent of the library but for
/// graphs and random numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "map_kind.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace reference {

/// Extended where the machine has it.
using Real = long double;
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

/// A model, a graph and a pass.
struct Problem {
  test::MapKind kind = test::MapKind::fixed;
  int stalk_dimension = 1;
  bool bayesian = false;
  sheafnn::ModelOptions options;             ///< resolved
  std::map<std::string, Matrix> parameters;  ///< out × in; vectors as one column

  const sheafnn::Graph* graph = nullptr;
  Matrix features;  ///< n × p
  std::vector<std::int32_t> labels, nodes;

  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t first_sample = 0;  ///< number of the first sample, in the addresses of random numbers
  double input_dropout = 0, dropout = 0;
  double kl_weight = 0;
  sheafnn::KlEstimator kl_estimator = sheafnn::KlEstimator::closed_form;
  sheafnn::Index samples = 1;
  /// For sample k and sheaf s at [k · sheaves + s]: one row per arc, matrices row by row.
  std::vector<Matrix> noise;
};

struct Result {
  Real nll = 0, kl = 0, loss = 0;
  Matrix log_probabilities;  ///< n × C, of the last sample
};

/// Runs the pass.
Result forward(const Problem& problem);

/// Δ of one sheaf from its maps, (nD) × (nD): S δᵀδ S.
///
/// \param maps  2m matrices D × D, edge weights included
Matrix laplacian(const sheafnn::Graph& graph, int dimension, test::MapKind kind,
                 sheafnn::Normalisation normalisation, const std::vector<Matrix>& maps);

/// Scalar operator of a fixed filter, n × n: sign +1 for low pass, −1 for high pass. Scaled on both sides by
/// (deg + shift)^{-1/2}, 0 for 0.
Matrix fixed_filter(const sheafnn::Graph& graph, Real sign, Real shift = 1);

}  // namespace reference
