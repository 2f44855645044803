/// \file
/// GraphPart: what one process's part of a larger graph knows about the whole graph. It exchanges rows of node features with
/// the other parts.
///
/// A part has the nodes that its process owns and, after them, copies of their neighbours that other processes own
/// (the halo). Its edges are the edges with an owned end; an edge between nodes of two parts is in both (a cut edge).
/// Nodes are numbered: owned ones without a neighbour elsewhere (interior), other owned ones, halo.
///
/// Layers keep these rules, which make the sum of all parts' derivatives the derivative of the whole graph:
///   - Rows of the halo that a layer reads are copies of their owners' (begin_fetch(), end_fetch()). No other row of the
///     halo means anything, and derivatives with respect to it are 0.
///   - Half of the derivative of a cut edge's block belongs to each of both parts.
///   - Derivatives with respect to copies are added to their owners' derivatives (give_back()). If a layer reads the
///     scalings of both ends of an edge (filters), scalings are copied, too. Each part then takes the derivatives
///     through its own arc of a cut edge, in place of half of both arcs. Attention does the same, whose weights of an
///     arc only the owner of its source knows.
///   - Noise and dropout masks belong to the node's, feature's or arc's index in the whole graph.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"

namespace sheafnn {

/// Indices of arcs in a whole graph: of 32 bits, and of 52 where the graph has more arcs. Unchecked: i in [0, size()).
class ArcNumbers {
 public:
  /// Largest number of arcs: noise has as many addresses (Stream).
  static constexpr Index most = Index{1} << 52;

  /// All indices 0. \param wide  whether indices may need more than 32 bits
  void resize(Index count, bool wide) {
    lower_.assign(static_cast<std::size_t>(count), 0);
    upper_.assign(wide ? lower_.size() : 0, 0);
  }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(lower_.size()); }
  [[nodiscard]] bool wide() const noexcept { return !upper_.empty(); }
  [[nodiscard]] Index operator[](Index i) const noexcept {
    return static_cast<Index>(std::uint64_t{upper(i)} << 32 | lower(i));
  }
  [[nodiscard]] std::uint32_t lower(Index i) const noexcept { return lower_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::uint32_t upper(Index i) const noexcept {
    return wide() ? upper_[static_cast<std::size_t>(i)] : 0;
  }
  /// Unchecked: that the index is at least 0, and below 2³², or below `most` if wide().
  void set(Index i, Index number) noexcept {
    lower_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(number);
    if (wide()) upper_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(number >> 32);
  }

 private:
  std::vector<std::uint32_t> lower_, upper_;
};

/// The nodes and arcs of a part, and their indices in the whole graph.
struct PartNumbers {
  Index own = 0;                   ///< owned nodes; they are 0 … own − 1
  Index interior = 0;              ///< owned nodes without neighbours elsewhere; they are 0 … interior − 1
  Index total_nodes = 0;           ///< of the whole graph
  Index total_edges = 0;           ///< of the whole graph
  std::vector<Index> node;         ///< index in the whole graph, of every node of the part
  ArcNumbers arc;                  ///< the same of every arc
  std::vector<std::int32_t> cut;   ///< edges of the part that are in another one as well
  std::vector<Index> first_entry;  ///< per owned node: index of its first stored feature in the whole features
  std::vector<Index> degree;       ///< in the whole graph, of every node of the part
  std::vector<Index> in_degree;    ///< likewise: listed arcs that enter it (Graph::listed())
};

/// Exchanges rows with the other parts. All parts call the same functions in the same order. `rows` has one row of `width`
/// values for every node of the part, without gaps. Unchecked: these sizes.
class GraphPart {
 public:
  GraphPart(const GraphPart&) = delete;
  GraphPart& operator=(const GraphPart&) = delete;
  virtual ~GraphPart() = default;

  [[nodiscard]] const PartNumbers& numbers() const noexcept { return numbers_; }

  /// Starts to overwrite the rows of the halo with their owners' rows. Until end_fetch() no row of the halo may be
  /// read, no other one written, and nothing else begun. Unchecked: as above.
  virtual void begin_fetch(float* rows, Index width) = 0;
  /// The same in double precision.
  virtual void begin_fetch(double* rows, Index width) = 0;
  /// Waits for what begin_fetch() has started.
  virtual void end_fetch() = 0;

  /// Adds the rows of the halo to their owners' rows, in the order of the parts' indices, and sets them to 0.
  /// Unchecked: as above.
  virtual void give_back(float* rows, Index width) = 0;
  /// The same in double precision.
  virtual void give_back(double* rows, Index width) = 0;

  /// Replaces the values by their sums over all parts, added up in the order of the parts' indices. All parts get the same
  /// bits, from run to run. Unchecked: all parts give as many.
  virtual void sum(std::span<float> values, std::span<double> more) = 0;
  /// The same in double precision.
  virtual void sum(std::span<double> values, std::span<double> more) = 0;

  /// The largest of the values of all parts: the same on all. Unchecked: no value is NaN.
  [[nodiscard]] virtual double largest(double value) = 0;
  /// Replaces every value by the largest that any part gives. Unchecked: as above, and that all parts give as many.
  virtual void largest(std::span<double> values) {
    for (double& value : values) value = largest(value);
  }

 protected:
  /// Takes any numbers; who derives from it checks them.
  explicit GraphPart(PartNumbers numbers) : numbers_(std::move(numbers)) {}
  /// Replaces the degrees. Unchecked: that they belong to the part's nodes.
  void set_degrees(std::vector<Index> degree, std::vector<Index> in_degree) {
    numbers_.degree = std::move(degree);
    numbers_.in_degree = std::move(in_degree);
  }

 private:
  PartNumbers numbers_;
};

}  // namespace sheafnn
