/// \file
/// Reads the maps of a given sheaf from an .npz file, such as io::write_sheaf() writes:
///
/// | key          | shape                                  | what                                                            |
/// | ------------ | -------------------------------------- | --------------------------------------------------------------- |
/// | maps         | 2m × D × D, or 2m × D (diagonal)       | one map per arc, arcs sorted by source and target               |
/// | edge_weights | m, optional                            | w_e of orthogonal maps                                          |
/// | edge_labels  | m, optional                            | label of each edge, edges sorted                                |
/// | table        | T × 2 × D × D, or T × 2 × D, optional  | in place of maps: of each label the maps at the smaller and the larger endpoint |
/// | signs        | m, optional                            | in place of maps, with D = 1: 1 or −1 at the larger endpoint; labels 0 and 1 |
/// | edges        | m × 2, optional                        | ends u < v; checked against the graph                           |
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/given_map_arrays.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz_archive.hpp"

namespace sheafnn::io {

/// \param graph  that the sheaf is over
/// \throws std::runtime_error  naming file and key: it cannot be read, there are neither maps nor a table, or sizes that do not
///                             fit the graph
[[nodiscard]] inline GivenMapArrays read_given_sheaf(const std::filesystem::path& path, const Graph& graph) {
  const NpzArchive archive(path);
  const Index m = graph.edge_count();
  const auto fail = [&](const std::string& key, const std::string& why) {
    throw std::runtime_error(sheafnn::detail::concat(path.string(), ": ", key, ": ", why));
  };
  const auto rows_of = [&](const std::string& key, Index rows, const char* what) {
    NpyArray array = archive.array(key);
    if (array.shape().empty() || array.shape()[0] != rows) {
      fail(key, sheafnn::detail::concat("expected a row for each of ", rows, " ", what, " of the graph"));
    }
    return array;
  };
  if (archive.contains("edges")) {
    const std::vector<std::int64_t> ends = rows_of("edges", m, "edges").numbers();
    for (Index e = 0; e < m; ++e) {
      const std::size_t i = static_cast<std::size_t>(e);
      if (ends.size() != static_cast<std::size_t>(2 * m) || ends[2 * i] != graph.edge(e).u ||
          ends[2 * i + 1] != graph.edge(e).v) {
        fail("edges", sheafnn::detail::concat("edge ", e, " is not the graph's, ", graph.edge(e).u, " – ",
                                              graph.edge(e).v));
      }
    }
  }
  GivenMapArrays r;
  if (archive.contains("edge_labels")) {
    detail::naming_file(path.string(), [&] {
      r.set_edge_labels(rows_of("edge_labels", m, "edges").template values<std::int64_t>());
    });
  }
  if (archive.contains("table")) {
    if (r.edge_labels.empty() && m > 0) fail("table", "needs edge_labels");
    const NpyArray table = archive.array("table");
    const std::vector<Index>& shape = table.shape();
    if (shape.size() < 3 || shape[1] != 2 || shape[0] < r.label_count) {
      fail("table", sheafnn::detail::concat("expected at least ", r.label_count, " x 2 maps"));
    }
    r.label_count = shape[0];
    const std::vector<double> values = table.values<double>();
    const Index size = static_cast<Index>(values.size()) / (2 * std::max<Index>(1, shape[0]));
    r.maps.resize(static_cast<std::size_t>(graph.arc_count() * size));
    for (Index e = 0; e < m; ++e) {
      const Index forward = graph.forward_arc(e);
      const double* pair = values.data() + r.edge_labels[static_cast<std::size_t>(e)] * 2 * size;
      std::copy_n(pair, size, r.maps.data() + forward * size);
      std::copy_n(pair + size, size, r.maps.data() + graph.reverse(forward) * size);
    }
  } else if (archive.contains("signs")) {
    const std::vector<double> signs = rows_of("signs", m, "edges").template values<double>();
    r.maps.assign(static_cast<std::size_t>(graph.arc_count()), 1.0);
    const bool labelled = !r.edge_labels.empty();
    if (!labelled) r.label_count = 2;
    for (Index e = 0; e < m; ++e) {
      const double sign = signs[static_cast<std::size_t>(e)];
      if (sign != 1 && sign != -1)
        fail("signs", sheafnn::detail::concat(sign, " of edge ", e, " is neither 1 nor -1"));
      r.maps[static_cast<std::size_t>(graph.reverse(graph.forward_arc(e)))] = sign;
      if (!labelled) r.edge_labels.push_back(sign > 0 ? 0 : 1);
    }
  } else if (archive.contains("maps")) {
    r.maps = rows_of("maps", graph.arc_count(), "arcs").template values<double>();
  } else {
    fail("maps", "is missing, and there are no signs and no table");
  }
  if (archive.contains("edge_weights")) {
    r.edge_weights = rows_of("edge_weights", m, "edges").template values<double>();
    if (std::all_of(r.edge_weights.begin(), r.edge_weights.end(), [](double w) { return w == 1; }))
      r.edge_weights.clear();
  }
  return r;
}

}  // namespace sheafnn::io
