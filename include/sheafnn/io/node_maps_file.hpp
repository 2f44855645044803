/// \file
/// The maps of a cooperative network's nodes as .npz files, for other programs. T_u = τ_u P_u is the map through which
/// node u receives ("out"), S_u = σ_u R_u the one through which it sends ("in").
///
/// | key                           | shape     | what                                                         |
/// | ----------------------------- | --------- | ------------------------------------------------------------ |
/// | format_version                | a number  | 1; files without it are of version 1 (format_version.hpp)    |
/// | family                        | text      | conformal                                                    |
/// | stalk_dimension               | a number  | D                                                            |
/// | node_count                    | a number  | n                                                            |
/// | edges                         | m × 2     | ends u < v, sorted                                           |
/// | arcs                          | A × 2     | arcs u→v that the network goes along, sorted: all 2m, or, of |
/// |                               |           | directed models, those that the graph lists                  |
/// | out_rotations, in_rotations   | n × D × D | P_u, R_u; of Bayesian models the modes                       |
/// | out_scales, in_scales         | n         | τ_u, σ_u, at most 10; of Bayesian models the medians         |
/// | out_kappa, in_kappa           | n         | Bayesian models: concentration of the rotation, in [0, 1)    |
/// | out_log_scale_mean, in_…      | n         | Bayesian models: μ of the logarithm of the scale             |
/// | out_log_scale_deviation, in_… | n         | Bayesian models: its standard deviation                      |
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "sheafnn/bsnn/learned_node_maps.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/sheaf_file.hpp"

namespace sheafnn::io {

/// Adds the arrays above to a file.
///
/// \param directed  the network goes along the arcs that the graph lists
/// \throws std::invalid_argument  maps of another number of nodes, or more than 4 GiB in all
inline void add_node_maps(NpzWriter& writer, const LearnedNodeMaps& maps, const Graph& graph,
                          bool directed = false) {
  const Index n = graph.node_count(), d = maps.dimension;
  require(maps.nodes == n, "nodes of the maps", maps.nodes,
          sheafnn::detail::concat("must equal the number of nodes, ", n));
  detail::add_base(writer, "conformal", d, graph, directed);
  for (const auto& [side, table] : {std::pair("out_", &maps.out), std::pair("in_", &maps.in)}) {
    const std::string name = side;
    writer.add<double>(name + "rotations", {n, d, d}, table->rotation);
    writer.add<double>(name + "scales", {n}, table->scale);
    if (table->concentration.empty()) continue;
    writer.add<double>(name + "kappa", {n}, table->concentration);
    writer.add<double>(name + "log_scale_mean", {n}, table->log_scale_mean);
    writer.add<double>(name + "log_scale_deviation", {n}, table->log_scale_deviation);
  }
}

/// Writes node maps: to a temporary file first, which then takes the place of `path`.
///
/// \throws std::invalid_argument  as add_node_maps()
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
inline void write_node_maps(const std::filesystem::path& path, const LearnedNodeMaps& maps, const Graph& graph,
                            bool directed = false) {
  NpzWriter writer;
  add_node_maps(writer, maps, graph, directed);
  writer.write(path);
}

}  // namespace sheafnn::io
