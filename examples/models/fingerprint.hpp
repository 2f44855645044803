/// \file
/// Fingerprints of data: whether data are the data of an earlier training.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <sheafnn/graph/dataset.hpp>
#include <span>
#include <string>
#include <type_traits>

#include "models/node_data.hpp"

namespace programs {

/// FNV-1a over the bytes of what is added.
class Fingerprint {
 public:
  template <class Values>
  void add(const Values& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values.data(), values.size()));
    for (const std::byte b : bytes) hash_ = (hash_ ^ static_cast<std::uint64_t>(b)) * 0x100000001b3U;
  }
  /// The graph and the features of its nodes, arcs and edges.
  template <class GraphType>
  void add_graph(const sheafnn::NodeDataset<GraphType>& data) {
    const GraphType& graph = data.graph;
    const auto add_features = [&] {
      add(data.features.offsets());
      add(data.features.column_of());
      add(data.features.values());
    };
    if constexpr (std::is_same_v<GraphType, sheafnn::Hypergraph>) {
      add(graph.member_offsets());
      add(graph.offsets());
      add(graph.hyperedges());
      add_features();
    } else {
      add(graph.sources());
      add(graph.targets());
      add_features();
      add(graph.arc_features());
      add(graph.edge_types());
      add(graph.node_types());
      if (data.given_sheaf != nullptr) {
        add(data.given_sheaf->maps);
        add(data.given_sheaf->edge_weights);
        add(data.given_sheaf->edge_labels);
      }
    }
  }
  [[nodiscard]] std::string text() const {
    char r[17];
    std::snprintf(r, sizeof(r), "%016llx", static_cast<unsigned long long>(hash_));
    return r;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// The fingerprint of everything in a dataset that a training on nodes reads.
///
/// \param directed  it reads which arcs are listed
[[nodiscard]] inline std::string fingerprint(const NodeData& data, bool directed = false) {
  Fingerprint r;
  data.visit([&]<class GraphType>(const sheafnn::NodeDataset<GraphType>& whole) {
    r.add_graph(whole);
    if constexpr (std::is_same_v<GraphType, sheafnn::Graph>) {
      for (sheafnn::Index a = 0; directed && a < whole.graph.arc_count(); ++a) {
        r.add(std::array{static_cast<std::int8_t>(whole.graph.listed(a))});
      }
    }
  });
  r.add(data.labels);
  r.add(data.targets);
  // Numbers increase within a set. Where that does not show where one begins, a mark says so: for an empty set, and where
  // the indices of the previous set continue. The same nodes in other sets are another split.
  std::int32_t last = std::numeric_limits<std::int32_t>::max();
  for (const sheafnn::Split& split : data.splits) {
    std::int32_t mark = 0;
    for (const auto* set : {&split.train, &split.validation, &split.test}) {
      --mark;
      if (set->empty() || set->front() > last) r.add(std::array{mark});
      if (set->empty()) continue;
      r.add(*set);
      last = set->back();
    }
  }
  return r.text();
}

}  // namespace programs
