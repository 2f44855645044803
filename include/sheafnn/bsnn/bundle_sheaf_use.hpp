/// \file
/// Are the rotations that a bundle network has learned used? The figures of sheaf_use.hpp for rotations of nodes:
///
/// - spread, kl: of the distributions of the rotations of all nodes and bundles
/// - turn: degrees of O_uᵀ O_v along the edges of the mean rotations, all bundles and layers together
/// - permuted: node u has the rotations of node π(u), in all bundles; every layer has a permutation of its own
/// - prior: rotations that are uniform
/// - identity: O = I
///
/// Source: math: "Flat bundles", "Bayesian bundles".
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sheafnn/bsnn/bundle_network.hpp"
#include "sheafnn/bsnn/given_maps_score.hpp"
#include "sheafnn/bsnn/learned_bundle.hpp"
#include "sheafnn/bsnn/sheaf_use.hpp"
#include "sheafnn/rotation/haar.hpp"

namespace sheafnn {

namespace detail {

/// Figures of the rotations. \param network  after begin() and draw()
template <int D, bool Bayesian, class S>
void describe_bundle(Network<BundleModel<D, Bayesian, S>>& network, SheafUse& use) {
  const Graph& graph = network.graph();
  const Index bundles = network.model().options().bundles;
  std::vector<double> kappa, degrees;
  for (Index l = 0; l < (Bayesian ? 1 : network.model().options().layers); ++l) {
    const LearnedBundle table = bundle_table(network, l);
    kappa.insert(kappa.end(), table.concentrations.begin(), table.concentrations.end());
    using RowMajor = Eigen::Map<const Eigen::Matrix<double, D, D, Eigen::RowMajor>>;
    for (Index e = 0; e < graph.edge_count(); ++e) {
      const Index a = graph.forward_arc(e);
      for (Index b = 0; b < bundles; ++b) {
        const auto at = [&](Index u) { return RowMajor(table.rotations.data() + (u * bundles + b) * D * D); };
        degrees.push_back(
            degrees_of<D>(SquareMatrix<double, D>(at(graph.source(a)).transpose() * at(graph.target(a)))));
      }
    }
  }
  if constexpr (Bayesian) {
    use.kl = network.kl();
    use.spread.push_back({"kappa", sheaf_quantiles(kappa)});
  }
  use.turn = sheaf_quantiles(degrees);
}

/// Node u gets the rotations of node π(u). \param row  values per node
template <class S>
[[nodiscard]] Buffer<S> permuted_bundle(const Buffer<S>& rows, Index row, const Stream& stream) {
  const std::vector<std::int32_t> other = permuted_nodes(rows.size() / row, stream);
  Buffer<S> r(rows.size());
  for (std::size_t u = 0; u < other.size(); ++u) {
    std::copy_n(rows.data() + other[u] * row, row, r.data() + static_cast<Index>(u) * row);
  }
  return r;
}
/// `count` rotations that are uniform.
template <int D, class S>
[[nodiscard]] Buffer<S> drawn_bundle(Index count, const Stream& stream) {
  Buffer<S> r(count * D * D);
  for (Index i = 0; i < count; ++i) {
    const SquareMatrix<double, D> rotation = haar_rotation<double, D>(stream, static_cast<std::uint32_t>(i));
    for (int k = 0; k < D * D; ++k) r[i * D * D + k] = static_cast<S>(rotation(k / D, k % D));
  }
  return r;
}
/// `count` times the identity.
template <int D, class S>
[[nodiscard]] Buffer<S> identity_bundle(Index count) {
  Buffer<S> r(count * D * D);
  for (Index i = 0; i < r.size(); ++i) r[i] = i % (D * D) % (D + 1) == 0 ? S(1) : S(0);
  return r;
}

}  // namespace detail

/// See the file comment. Graphs without edges have no figures, and without labelled nodes there is no score.
///
/// \throws std::invalid_argument  an option out of range, a node number out of range, or as predict()
template <int D, bool Bayesian, class S>
[[nodiscard]] SheafUse sheaf_use(const BundleModel<D, Bayesian, S>& model, const Dataset& data,
                                 std::span<const std::int32_t> nodes, const SheafUseOptions& options = {}) {
  const Index bundles = model.options().bundles, count = data.graph.node_count() * bundles;
  using Rows = Buffer<S>;
  return detail::sheaf_use_of_nodes<Rows>(
      model, data, nodes, options, detail::describe_bundle<D, Bayesian, S>,
      [](const auto& network, Index l) { return network.bundle_maps(l).values(); },
      [&](const auto&) -> detail::ChangedNodeMaps<Rows> {
        return {.permuted =
                    [=](const Rows& rows, const Stream& stream) {
                      return detail::permuted_bundle(rows, bundles * D * D, stream);
                    },
                .drawn = [=](const Rows&,
                             const Stream& stream) { return detail::drawn_bundle<D, S>(count, stream); },
                .identity = [=] { return detail::identity_bundle<D, S>(count); }};
      });
}

}  // namespace sheafnn
