/// \file
/// The rotations of a bundle network's nodes as .npz files, for other programs.
///
/// | key              | shape         | what                                                      |
/// | ---------------- | ------------- | --------------------------------------------------------- |
/// | format_version   | a number      | 1 (format_version.hpp)                                    |
/// | family           | text          | special-orthogonal                                        |
/// | stalk_dimension  | a number      | D                                                         |
/// | node_count       | a number      | n                                                         |
/// | edges            | m × 2         | ends u < v, sorted                                        |
/// | arcs             | 2m × 2        | u→v, sorted                                               |
/// | bundle_rotations | n × B × D × D | O_u^b; of Bayesian models the modes                       |
/// | bundle_kappa     | n × B         | Bayesian models: concentration of the rotation, in [0, 1) |
#pragma once

#include "sheafnn/bsnn/learned_bundle.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/sheaf_file.hpp"

namespace sheafnn::io {

/// Adds the arrays above to a file.
///
/// \throws std::invalid_argument  rotations of another number of nodes, or more than 4 GiB in all
inline void add_bundle(NpzWriter& writer, const LearnedBundle& bundle, const Graph& graph) {
  const Index n = graph.node_count(), d = bundle.dimension;
  require(bundle.nodes == n, "nodes of the bundle", bundle.nodes,
          sheafnn::detail::concat("must equal the number of nodes, ", n));
  detail::add_base(writer, "special-orthogonal", d, graph);
  writer.add<double>("bundle_rotations", {n, bundle.bundles, d, d}, bundle.rotations);
  if (!bundle.concentrations.empty())
    writer.add<double>("bundle_kappa", {n, bundle.bundles}, bundle.concentrations);
}

}  // namespace sheafnn::io
