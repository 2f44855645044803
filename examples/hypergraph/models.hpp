/// \file
/// The models of the program hypergraph: a family of maps each is compiled apart.
#pragma once

#include <cstdint>
#include <sheafnn/bsnn/hypergraph_options.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <string_view>
#include <vector>

#include "models/trained_network.hpp"

namespace sheafnn::distributed {
class DistributedHypergraph;
}

namespace hypergraph_program {

/// One training.
struct Job {
  const sheafnn::HypergraphDataset& data;
  const sheafnn::Split& split;
  const sheafnn::HypergraphOptions& model;
  const sheafnn::TrainOptions& train;
  bool bayesian = false;
  sheafnn::distributed::DistributedHypergraph* part = nullptr;  ///< of the data, in hypergraph_mpi
};
using Outcome = programs::NetworkOutcome;
using Trained = programs::TrainedNetwork;

/// Networks of a family with one stalk dimension.
struct Models {
  Outcome (*train)(const Job& job);
  sheafnn::Prediction (*predict)(const Trained& model, const sheafnn::HypergraphDataset& data,
                                 const sheafnn::PredictOptions& options);
  /// Raw outputs of the first posterior sample, n × C, row-major.
  std::vector<double> (*outputs)(const Trained& model, const sheafnn::HypergraphDataset& data, std::uint64_t seed);
};
inline constexpr int least_dimension = 2, largest_dimension = 4;

// By stalk dimension, from the least to the largest.
extern const Models diagonal[], special_orthogonal[], general_linear[], identity[];
inline constexpr std::string_view all_maps = "diagonal, special-orthogonal, general-linear or identity";

/// \throws std::invalid_argument  a family or a stalk dimension that there is not
[[nodiscard]] inline const Models& find_models(std::string_view maps, int stalk_dimension) {
  sheafnn::require_between("stalk dimension", stalk_dimension, least_dimension, largest_dimension);
  const Models* family = maps == "diagonal"             ? diagonal
                         : maps == "special-orthogonal" ? special_orthogonal
                         : maps == "general-linear"     ? general_linear
                         : maps == "identity"           ? identity
                                                        : nullptr;
  sheafnn::require(family != nullptr, "maps", maps, sheafnn::detail::concat("must be ", all_maps));
  return family[stalk_dimension - least_dimension];
}

}  // namespace hypergraph_program
