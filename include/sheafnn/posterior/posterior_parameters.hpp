/// \file
/// PosteriorParameters: the posterior of a sheaf as plain arrays: mean and spread with one row per incident pair, edge weights
/// with one per edge.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// A matrix with a name, rows × columns values row by row.
struct NamedMatrix {
  std::string name;
  Index columns = 1;
  std::vector<double> values;
};

/// Row a belongs to the arc a = (u→v) of a graph with m edges, that is to the incident pair u ⊴ {u, v}. Arcs are sorted by
/// source, then target, as in Graph.
struct PosteriorParameters {
  Index map_size = 0;            ///< values per map, as the family stores it: D² (row by row) or D (a diagonal)
  std::vector<double> location;  ///< 2m × map_size, the means
  std::vector<NamedMatrix> spread;   ///< 2m × columns each; which ones is up to the posterior
  std::vector<double> edge_weights;  ///< m, by edge; 1 if the model has no edge weights

  /// \throws std::invalid_argument  the posterior has no parameters of that name
  [[nodiscard]] const NamedMatrix& find(std::string_view name) const {
    std::string names;
    for (const NamedMatrix& matrix : spread) {
      if (matrix.name == name) return matrix;
      names += detail::concat(names.empty() ? "" : ", ", matrix.name);
    }
    throw_invalid_argument("name", name, detail::concat("this posterior has ", names));
  }
};

}  // namespace sheafnn
