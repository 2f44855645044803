/// \file
/// Partition: which rank owns which node of a graph. Has contiguous ranges of equal work, partitions from files, and the
/// cost of a partition: edge cut, halos, balance.
///
/// The work of a node is taken as its degree + node_work. A pass does something for every arc, or incident pair, of a node,
/// and something for the node itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::distributed {

/// Work of a node besides its arcs, measured in arcs.
inline constexpr Index node_work = 4;

/// Owners of the nodes of a graph.
struct Partition {
  int parts = 1;
  std::vector<std::int32_t> owner;  ///< n values in [0, parts)
};

/// \throws std::invalid_argument  another number of owners than nodes, an owner out of range, or a part without nodes
inline void validate(const Partition& partition, Index nodes) {
  using sheafnn::detail::concat;
  require(partition.parts >= 1, "partition.parts", partition.parts, "must be at least 1");
  require(static_cast<Index>(partition.owner.size()) == nodes, "partition.owner", partition.owner.size(),
          concat("expected one number for each of ", nodes, " nodes"));
  std::vector<Index> count(static_cast<std::size_t>(partition.parts));
  for (std::size_t u = 0; u < partition.owner.size(); ++u) {
    const std::int32_t owner = partition.owner[u];
    if (owner < 0 || owner >= partition.parts) {
      throw_invalid_argument(concat("partition.owner[", u, "]"), owner,
                             concat("must be between 0 and ", partition.parts - 1));
    }
    ++count[static_cast<std::size_t>(owner)];
  }
  for (std::size_t p = 0; p < count.size(); ++p) {
    if (count[p] == 0) {
      throw_invalid_argument("partition", concat("part ", p, " without nodes"),
                             concat("every part needs a node; ", nodes, " nodes are cut into ", partition.parts,
                                    " parts"));
    }
  }
}

namespace detail {

/// Ranges of nodes with equal work. \param offset  n + 1 values: arcs before each node
template <class Offset>
[[nodiscard]] std::vector<std::int32_t> contiguous_owners(std::span<const Offset> offset, int parts) {
  const Index n = static_cast<Index>(offset.size()) - 1;
  std::vector<std::int32_t> r(static_cast<std::size_t>(n));
  const double share = static_cast<double>(static_cast<Index>(offset.back()) + node_work * n) / parts;
  double work = 0;
  Index owner = 0;
  for (std::size_t u = 0; u < r.size(); ++u) {
    const Index left = n - static_cast<Index>(u);  // nodes, of which each further part needs one
    if (u > 0 && owner + 1 < parts &&
        (work >= share * static_cast<double>(owner + 1) || left <= parts - owner - 1)) {
      ++owner;
    }
    r[u] = static_cast<std::int32_t>(owner);
    work += static_cast<double>(static_cast<Index>(offset[u + 1] - offset[u]) + node_work);
  }
  return r;
}

}  // namespace detail

/// Ranges of nodes with equal work, in the order of their indices.
///
/// \param graph  a Graph, or a Hypergraph
/// \throws std::invalid_argument  parts not between 1 and the number of nodes
template <class GraphType>
[[nodiscard]] Partition contiguous_partition(const GraphType& graph, int parts) {
  require_between("parts", Index{parts}, 1, graph.node_count());
  return {parts, detail::contiguous_owners(graph.offsets(), parts)};
}

/// A partition from a text file with the index of a part for every node, one after another, as METIS's programs write
/// it.
///
/// \throws std::runtime_error  a file that cannot be read, something in it that is not a number, or what validate() refuses
[[nodiscard]] inline Partition read_partition(const std::filesystem::path& path, Index nodes, int parts) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path.string() + ": cannot be opened");
  Partition r{parts, {}};
  std::string text;
  while (file >> text) {
    std::istringstream number(text);
    std::int32_t owner = 0;
    if (!(number >> owner) || !number.eof()) {
      throw std::runtime_error(sheafnn::detail::concat(path.string(), ": number ", r.owner.size() + 1, ", '", text,
                                                       "', is not the number of a part"));
    }
    r.owner.push_back(owner);
  }
  return io::detail::naming_file(path.string(), [&] {
    validate(r, nodes);
    return r;
  });
}
/// Writes what read_partition() reads, as io::write_text() does. Takes any partition.
///
/// \throws std::runtime_error  a file that cannot be written; an old one is left as it was
inline void write_partition(const std::filesystem::path& path, const Partition& partition) {
  std::string text;
  for (const std::int32_t owner : partition.owner) text += std::to_string(owner) + '\n';
  io::write_text(path, text);
}

/// What a partition costs.
struct PartitionReport {
  /// The cost of one part.
  struct Part {
    Index own = 0;         ///< owned nodes
    Index interior = 0;    ///< owned nodes without neighbours in other parts
    Index halo = 0;        ///< neighbours owned elsewhere: rows that the part receives in every exchange
    Index arcs = 0;        ///< of owned nodes
    Index neighbours = 0;  ///< other parts that it exchanges rows with
  };
  Index cut = 0;  ///< edges between parts
  std::vector<Part> parts;

  /// Largest work of a part over the mean: 1 is best.
  [[nodiscard]] double imbalance() const noexcept {
    double most = 0, sum = 0;
    for (const Part& part : parts) {
      const double work = static_cast<double>(part.arcs + node_work * part.own);
      most = std::max(most, work);
      sum += work;
    }
    return sum > 0 ? most * static_cast<double>(parts.size()) / sum : 1;
  }
  /// Rows in the halos of all parts, which one exchange sends.
  [[nodiscard]] Index halo() const noexcept {
    Index sum = 0;
    for (const Part& part : parts) sum += part.halo;
    return sum;
  }
  /// Messages of one exchange of all parts.
  [[nodiscard]] Index messages() const noexcept {
    Index sum = 0;
    for (const Part& part : parts) sum += part.neighbours;
    return sum;
  }
};

/// \throws std::invalid_argument  as validate()
[[nodiscard]] inline PartitionReport describe(const Graph& graph, const Partition& partition) {
  validate(partition, graph.node_count());
  PartitionReport r;
  r.parts.resize(static_cast<std::size_t>(partition.parts));
  std::vector<std::vector<std::int64_t>> received(r.parts.size());  // node + n · its owner
  const Index n = graph.node_count();
  for (Index u = 0; u < n; ++u) {
    const std::int32_t owner = partition.owner[static_cast<std::size_t>(u)];
    PartitionReport::Part& part = r.parts[static_cast<std::size_t>(owner)];
    bool interior = true;
    for (Index arc = graph.first_arc(u); arc < graph.first_arc(u + 1); ++arc) {
      const Index v = graph.target(arc);
      const std::int32_t other = partition.owner[static_cast<std::size_t>(v)];
      if (other == owner) continue;
      interior = false;
      r.cut += u < v ? 1 : 0;
      received[static_cast<std::size_t>(owner)].push_back(v + n * Index{other});
    }
    ++part.own;
    part.interior += interior ? 1 : 0;
    part.arcs += graph.degree(u);
  }
  for (std::size_t p = 0; p < received.size(); ++p) {
    std::vector<std::int64_t>& rows = received[p];
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    r.parts[p].halo = static_cast<Index>(rows.size());
    Index last = -1;
    for (const std::int64_t row : rows) {
      r.parts[p].neighbours += row / n != last ? 1 : 0;
      last = row / n;
    }
  }
  return r;
}

/// What a report counts.
struct PartitionWords {
  const char *edges = "edges", *rows = "nodes", *pairs = "arcs";  ///< rows: of the halo
};

/// The report in one line of text, and one for each part if there are few. Takes any.
///
/// \param rows, edges  in the whole graph
[[nodiscard]] inline std::string to_string(const PartitionReport& report, Index rows, Index edges,
                                           const PartitionWords& words = {}) {
  std::ostringstream out;
  out.precision(3);
  const auto percent = [](Index part, Index whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<Index>(1, whole));
  };
  out << report.parts.size() << " parts: " << report.cut << " of " << edges << ' ' << words.edges << " cut ("
      << percent(report.cut, edges) << "%), halo " << report.halo() << " rows (" << percent(report.halo(), rows)
      << "% of the " << words.rows << "), " << report.messages() << " messages per exchange, largest part "
      << report.imbalance() << " of the mean work\n";
  if (report.parts.size() > 16) return out.str();
  for (std::size_t p = 0; p < report.parts.size(); ++p) {
    const PartitionReport::Part& part = report.parts[p];
    out << "  part " << p << ": " << part.own << " nodes, " << part.interior << " of them interior, " << part.arcs
        << ' ' << words.pairs << ", halo " << part.halo << " from " << part.neighbours << " parts\n";
  }
  return out.str();
}

}  // namespace sheafnn::distributed
