/// \file
/// A hypergraph in the memory of an executor (for graphs batch/graph.hpp).
///
/// Incident pairs have the indices that they have in the hypergraph, by node and hyperedge. Values per pair are stored
/// entry by entry, pairs innermost, as for graphs.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/kernels/hypergraph.hpp"
#include "sheafnn/layers/hypergraph_setting.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheafnn::batch::detail {

/// What kernels see of a hypergraph. For kernels of graphs a pair is an arc of its node. There are no segments of arcs and no
/// crowded nodes; `edges` is half of the pairs, rounded up, and only determines the number of lanes. `degree` is Σ a_i of
/// a node's pairs.
template <class S>
struct IncidenceView : GraphView<S> {
  Index incidences = 0, hyperedges = 0;
  Index slots = 0;                              ///< vectors m: one per hyperedge, or two (see IncidenceTerms)
  const std::int32_t* hyperedge = nullptr;      ///< per pair
  const std::int32_t* member_offset = nullptr;  ///< hyperedges + 1: first member of each hyperedge
  const std::int32_t* member = nullptr;         ///< the members' pairs
  const S* share = nullptr;                     ///< per hyperedge: 1/δ_e
  const S* pair_weight = nullptr;               ///< per pair: a_i of the published Laplacian; null: 1

  [[nodiscard]] SHEAFNN_HD Index pairs() const noexcept { return incidences; }
  [[nodiscard]] SHEAFNN_HD Index walk_rows() const noexcept { return slots; }
};

/// Owner of the arrays.
template <class Executor, class S>
class BatchHypergraph {
 public:
  /// \param laplacian  of the networks on it
  BatchHypergraph(Executor& executor, const Hypergraph& graph, layers::HypergraphLaplacian laplacian)
      : nodes_(graph.node_count()),
        hyperedges_(graph.hyperedge_count()),
        slots_(hyperedges_ * (laplacian == layers::HypergraphLaplacian::nonlinear ? 2 : 1)),
        offset_(executor, "hypergraph", graph.offsets()),
        node_(executor, "hypergraph", graph.nodes()),
        hyperedge_(executor, "hypergraph", graph.hyperedges()),
        member_offset_(executor, "hypergraph", graph.member_offsets()),
        member_(executor, "hypergraph", graph.members()),
        no_segments_(executor, "hypergraph", graph.node_count() + 1) {
    const bool published = laplacian == layers::HypergraphLaplacian::published;
    std::vector<std::int32_t> number(static_cast<std::size_t>(graph.pair_count()));
    std::iota(number.begin(), number.end(), 0);
    std::vector<S> share, weight, degree, root;
    for (Index e = 0; e < hyperedges_; ++e) share.push_back(kernels::member_share<S>(graph.size(e)));
    for (Index i = 0; published && i < graph.pair_count(); ++i)
      weight.push_back(kernels::published_weight<S>(graph.size(graph.hyperedge(i))));
    for (Index v = 0; v < nodes_; ++v) {
      S sum = published ? S(0) : static_cast<S>(graph.degree(v));
      for (Index i = graph.first_pair(v); published && i < graph.first_pair(v + 1); ++i)
        sum += weight[static_cast<std::size_t>(i)];
      degree.push_back(sum);
      root.push_back(sheafnn::detail::filter_scale<S>(graph.degree(v), false));
    }
    const auto put = [&]<class T>(const std::vector<T>& values) {
      return Array<Executor, T>(executor, "hypergraph", values);
    };
    number_ = put(number);
    share_ = put(share);
    weight_ = put(weight);
    degree_ = put(degree);
    root_ = put(root);
  }

  [[nodiscard]] IncidenceView<S> view() const noexcept {
    const Index pairs = node_.size();
    IncidenceView<S> r{};
    r.nodes = nodes_;
    r.edges = (pairs + 1) / 2;
    r.offset = offset_.data();
    r.arc_pair = r.pair_arc = number_.data();
    r.edge_node = node_.data();
    r.degree = degree_.data();
    r.inverse_root = root_.data();
    r.node_segment = no_segments_.data();
    r.incidences = pairs;
    r.hyperedges = hyperedges_;
    r.slots = slots_;
    r.hyperedge = hyperedge_.data();
    r.member_offset = member_offset_.data();
    r.member = member_.data();
    r.share = share_.data();
    r.pair_weight = weight_.data();
    return r;
  }

 private:
  Index nodes_, hyperedges_, slots_;
  Array<Executor, std::int32_t> offset_, node_, hyperedge_, member_offset_, member_, no_segments_, number_;
  Array<Executor, S> share_, weight_, degree_, root_;
};

}  // namespace sheafnn::batch::detail
