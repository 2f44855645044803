/// \file
/// Folders for read_folder() (graph_folder.hpp): graphs from lists of edges, and synthetic graphs of any size. All ranks
/// write them together, each with memory for one range of nodes at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/npy_file.hpp"
#include "sheafnn/io/lines.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::distributed {

/// A synthetic graph in which the neighbours of a node follow from its index, so that ranks write their rows without a
/// message. Node u may have edges to u ± d (mod N) for `reach` distances d, each with probability `density`. It has class ⌊C
/// u/N⌋, and features that are N(0, 1) numbers, the one of its class raised by `signal`.
struct FolderOptions {
  Index nodes = 1000;     ///< N ≥ 2 · reach + 2
  Index reach = 6;        ///< of the distances 1, 2, …
  bool far = true;        ///< every third distance is one spread over the graph, so that every cut has many edges
  double density = 0.5;   ///< in (0, 1]
  Index features = 16;    ///< p, classes … 16384
  Index classes = 4;      ///< C ≥ 2
  double signal = 1;      ///< finite
  Index range = 1 << 16;  ///< nodes that a rank holds at a time, ≥ 1
  std::uint64_t seed = 0;
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const FolderOptions& options) {
  require_between("reach", options.reach, 1, 1000);
  require(options.nodes >= 2 * options.reach + 2, "nodes", options.nodes, "must be at least 2 * reach + 2");
  require(options.density > 0 && options.density <= 1, "density", options.density, "must be above 0, at most 1");
  require_between("classes", options.classes, 2, 1'000'000);
  require(options.features >= options.classes && options.features <= 16384, "features", options.features,
          "must be at least the number of classes, at most 16384");
  require(std::isfinite(options.signal), "signal", options.signal, "must be finite");
  require(options.range >= 1, "range", options.range, "must be at least 1");
}

namespace detail {

/// Distances of a synthetic graph: different, below N/2.
[[nodiscard]] inline std::vector<Index> distances(const FolderOptions& options) {
  std::vector<Index> r;
  for (Index j = 1; j <= options.reach; ++j) {
    Index d = options.far && j % 3 == 0 ? options.nodes / 2 * j / (options.reach + 1) : j;
    while (std::find(r.begin(), r.end(), d) != r.end() || d < 1) ++d;
    r.push_back(d);
  }
  return r;
}

/// Neighbours of a node of a synthetic graph, increasing: the random number of u decides whether the edge {u, u + d} exists
/// and d.
[[nodiscard]] inline std::vector<Index> neighbours(const FolderOptions& options, std::span<const Index> distance,
                                                   Index u) {
  const Index n = options.nodes;
  std::vector<Index> r;
  for (std::size_t j = 0; j < distance.size(); ++j) {
    const auto present = [&](Index from) {
      const Stream stream{options.seed, Purpose::user, static_cast<std::uint32_t>(j)};
      const auto words = stream.words(static_cast<std::uint32_t>(from), 0, static_cast<std::uint32_t>(from >> 32));
      return random::uniform_from_word<double>(words.word[0]) <= options.density;
    };
    const Index up = (u + distance[j]) % n, down = (u - distance[j] + n) % n;
    if (present(u)) r.push_back(up);
    if (present(down)) r.push_back(down);
  }
  std::sort(r.begin(), r.end());
  r.erase(std::unique(r.begin(), r.end()), r.end());
  return r;
}

/// Rows of ranges of nodes, range by range: all ranks know how many arcs come before theirs. Writes indptr.npy and the
/// pieces of indices.npy, which is made when its length is known.
class RowWriter {
 public:
  RowWriter(Communicator& ranks, const std::filesystem::path& folder, Index nodes)
      : ranks_(&ranks), folder_(folder), nodes_(nodes) {
    if (ranks.is_root()) {
      std::filesystem::create_directories(folder);
      const Index shape[] = {nodes + 1};
      create_npy<std::int64_t>(folder / "indptr.npy", shape);
    }
    barrier();
  }
  void barrier() { static_cast<void>(ranks_->all<std::int32_t>(0)); }

  /// Calls rows(first node, past the last, degrees) for the ranges of this rank, in as many rounds on all ranks. It fills
  /// in the degrees, and returns the arcs of these nodes. The first call counts, the second writes.
  template <class Rows>
  void write(Index range, const Rows& rows) {
    for (const bool writes : {false, true}) {
      Index written = 0;  // arcs of all ranges before this round
      for (Index round = 0; round * range * ranks_->size() < nodes_; ++round) {
        const Index first = std::min(nodes_, (round * ranks_->size() + ranks_->rank()) * range);
        const Index last = std::min(nodes_, first + range);
        std::vector<std::int64_t> degrees(static_cast<std::size_t>(last - first));
        const std::vector<std::int64_t> arcs = rows(first, last, std::span<std::int64_t>(degrees));
        const std::vector<std::int64_t> counts = ranks_->all(static_cast<std::int64_t>(arcs.size()));
        Index before = written;
        for (int p = 0; p < ranks_->rank(); ++p) before += counts[static_cast<std::size_t>(p)];
        for (const std::int64_t count : counts) written += count;
        if (writes && last > first) {
          write_node_numbers(folder_ / "indices.npy", before, arcs);
          std::int64_t end = before;
          for (std::int64_t& degree : degrees) degree = end += degree;
          write_rows<std::int64_t>(folder_ / "indptr.npy", first + 1, degrees);
        }
      }
      if (!writes && ranks_->is_root()) create_node_numbers(folder_ / "indices.npy", nodes_, written);
      barrier();
    }
  }

 private:
  Communicator* ranks_;
  std::filesystem::path folder_;
  Index nodes_;
};

/// The two node numbers of a line. \returns false for a blank line \throws std::runtime_error  it is something else
[[nodiscard]] inline bool read_edge(const std::filesystem::path& file, Index number, std::string_view line,
                                    std::int64_t& u, std::int64_t& v) {
  constexpr std::string_view blanks = " \t\r\v\f";
  std::int64_t* const nodes[] = {&u, &v};
  std::size_t count = 0;
  bool good = true;
  for (std::size_t at = 0; (at = line.find_first_not_of(blanks, at)) != std::string_view::npos; ++count) {
    const std::string_view word = line.substr(at, line.find_first_of(blanks, at) - at);
    good = good && count < 2 && io::detail::parse_number(word, *nodes[count]);
    at += word.size();
  }
  if (count == 0) return false;
  if (!good || count != 2) {
    throw std::runtime_error(
        concat(file.string(), ":", number, ": '", io::detail::printable(line), "' is not two node numbers"));
  }
  return true;
}

}  // namespace detail

/// Writes a synthetic graph. All ranks call it with the same options; the files do not depend on their number.
///
/// \throws std::invalid_argument  an option out of range \throws std::runtime_error  a file that cannot be written
inline void write_synthetic_folder(Communicator& ranks, const std::filesystem::path& folder,
                                   const FolderOptions& options) {
  validate(options);
  const std::vector<Index> distance = detail::distances(options);
  detail::RowWriter writer(ranks, folder, options.nodes);
  if (ranks.is_root()) {
    const Index dense[] = {options.nodes, options.features}, one[] = {options.nodes};
    create_npy<float>(folder / "features.npy", dense);
    for (const char* name : {"labels.npy", "train_mask.npy", "val_mask.npy", "test_mask.npy"})
      create_npy<std::int32_t>(folder / name, one);
  }
  writer.write(options.range, [&](Index first, Index last, std::span<std::int64_t> degrees) {
    std::vector<std::int64_t> arcs;
    for (Index u = first; u < last; ++u) {
      const std::vector<Index> of_node = detail::neighbours(options, distance, u);
      degrees[static_cast<std::size_t>(u - first)] = static_cast<std::int64_t>(of_node.size());
      arcs.insert(arcs.end(), of_node.begin(), of_node.end());
    }
    return arcs;
  });
  for (Index first = ranks.rank() * options.range; first < options.nodes; first += ranks.size() * options.range) {
    const Index last = std::min(options.nodes, first + options.range);
    std::vector<float> features;
    std::vector<std::int32_t> labels, sets[3];
    for (Index u = first; u < last; ++u) {
      const Index label = u * options.classes / options.nodes;
      labels.push_back(static_cast<std::int32_t>(label));
      const Stream stream{options.seed, Purpose::user, 1'000'000};
      const std::uint32_t low = static_cast<std::uint32_t>(u), high = static_cast<std::uint32_t>(u >> 32);
      for (Index j = 0; j < options.features; j += 4) {
        const auto normals = normals_from_words<float>(stream.words(low, static_cast<std::uint32_t>(j / 4), high));
        for (Index k = j; k < std::min(j + 4, options.features); ++k) {
          features.push_back(normals.value[k - j] + (k == label ? static_cast<float>(options.signal) : 0.0F));
        }
      }
      const Stream set{options.seed, Purpose::user, 1'000'001};
      const double place = random::uniform_from_word<double>(set.words(low, 0, high).word[0]);
      for (int k = 0; k < 3; ++k) sets[k].push_back((place < 0.6 ? 0 : place < 0.8 ? 1 : 2) == k ? 1 : 0);
    }
    write_rows<float>(folder / "features.npy", first, features);
    write_rows<std::int32_t>(folder / "labels.npy", first, labels);
    const char* names[] = {"train_mask.npy", "val_mask.npy", "test_mask.npy"};
    for (int k = 0; k < 3; ++k) write_rows<std::int32_t>(folder / names[k], first, sets[k]);
  }
  writer.barrier();
}

/// Writes indptr.npy and indices.npy from a text file of edges, a line with two node numbers for each edge. Blank lines are
/// skipped, repeated edges and directions merged, self-loops left out. Every rank reads the file once for each of its
/// ranges, twice in all.
///
/// \param range  nodes whose arcs a rank holds at a time
/// \throws std::invalid_argument  nodes or range below 1
/// \throws std::runtime_error     a file that cannot be read or written, a line that is not two node numbers, one out of range
inline void convert_edges(Communicator& ranks, const std::filesystem::path& edges,
                          const std::filesystem::path& folder, Index nodes, Index range) {
  require(nodes >= 1, "nodes", nodes, "must be at least 1");
  require(range >= 1, "range", range, "must be at least 1");
  detail::RowWriter(ranks, folder, nodes)
      .write(range, [&](Index first, Index last, std::span<std::int64_t> degrees) {
        std::vector<std::pair<std::int64_t, std::int64_t>> arcs;
        std::ifstream file(edges);
        if (!file) throw std::runtime_error(edges.string() + ": cannot be opened");
        std::string line;
        for (Index number = 1; std::getline(file, line); ++number) {
          std::int64_t u = 0, v = 0;
          if (!detail::read_edge(edges, number, line, u, v)) continue;
          if (std::min(u, v) < 0 || std::max(u, v) >= nodes) {
            throw std::runtime_error(detail::concat(edges.string(), ":", number, ": node ",
                                                    u < 0 || u >= nodes ? u : v,
                                                    "; node numbers are between 0 and ", nodes - 1));
          }
          if (u == v) continue;
          if (first <= u && u < last) arcs.emplace_back(u, v);
          if (first <= v && v < last) arcs.emplace_back(v, u);
        }
        if (!file.eof()) throw std::runtime_error(edges.string() + ": cannot be read");
        std::sort(arcs.begin(), arcs.end());
        arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
        std::vector<std::int64_t> targets;
        for (const auto& [from, to] : arcs) {
          ++degrees[static_cast<std::size_t>(from - first)];
          targets.push_back(to);
        }
        return targets;
      });
}

}  // namespace sheafnn::distributed
