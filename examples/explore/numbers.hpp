/// \file
/// What the pictures show, computed from the arrays of a Learned: turns of edges, spectra, principal components.
#pragma once

// core/eigen.hpp goes before other parts of Eigen.
// clang-format off
#include <sheafnn/core/eigen.hpp>
#include <Eigen/Eigenvalues>
// clang-format on

#include <algorithm>
#include <cmath>
#include <sheafnn/graph/graph.hpp>
#include <utility>
#include <vector>

#include "explore/learned.hpp"

namespace explore {

/// Eigenvalues of a symmetric matrix in increasing order, and its eigenvectors where they are asked for.
inline Eigen::VectorXd symmetric_eigen(const Eigen::MatrixXd& matrix, Eigen::MatrixXd* vectors = nullptr) {
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix.rows());
  solver.compute(matrix, vectors != nullptr ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (vectors != nullptr) *vectors = solver.eigenvectors();
  return solver.eigenvalues();
}

/// The largest angle, in degrees, between a vector x and its image Rx: 2 asin(‖R − I‖₂ / 2). In dimensions 2 and 3 it is
/// the rotation angle.
inline double turn_in_degrees(const Eigen::MatrixXd& rotation) {
  const Eigen::MatrixXd gram = 2 * Eigen::MatrixXd::Identity(rotation.rows(), rotation.cols()) - rotation -
                               rotation.transpose();  // (R − I)ᵀ(R − I)
  const double largest = symmetric_eigen(gram)(gram.rows() - 1);
  return 2 * std::asin(std::clamp(std::sqrt(std::max(largest, 0.0)) / 2, 0.0, 1.0)) * 180 / std::acos(-1.0);
}

/// One number per edge {u, v}, of F_{u⊴e}ᵀ F_{v⊴e} without edge weights. Of rotations it is the turn in degrees, of other
/// maps the distance from the identity, ‖F_{u⊴e}ᵀ F_{v⊴e} − I‖ (Frobenius).
inline std::vector<double> edge_turns(const Learned& learned, const sheafnn::Graph& graph) {
  std::vector<double> r;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const Index a = graph.forward_arc(e);
    const Eigen::MatrixXd product = learned.maps[static_cast<std::size_t>(a)].transpose().lazyProduct(
        learned.maps[static_cast<std::size_t>(graph.reverse(a))]);
    r.push_back(learned.rotations()
                    ? turn_in_degrees(product)
                    : (product - Eigen::MatrixXd::Identity(product.rows(), product.cols())).norm());
  }
  return r;
}

/// The mean of both ends' values, per edge.
inline std::vector<double> edge_means(const std::vector<double>& of_arcs, const sheafnn::Graph& graph) {
  std::vector<double> r;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const Index a = graph.forward_arc(e);
    r.push_back((of_arcs[static_cast<std::size_t>(a)] + of_arcs[static_cast<std::size_t>(graph.reverse(a))]) / 2);
  }
  return r;
}

/// Eigenvalues of D^{-1/2} L D^{-1/2} in increasing order, all in [0, 2]. L = δᵀδ has the maps with edge weights, and D is its
/// block diagonal. The inverse root is taken where D is regular. Dense: (nD)³ operations.
inline std::vector<double> spectrum(const sheafnn::Graph& graph, const std::vector<Eigen::MatrixXd>& maps,
                                    const std::vector<double>& edge_weights, Index dimension) {
  const Index n = graph.node_count(), d = dimension;
  std::vector<Eigen::MatrixXd> degrees(static_cast<std::size_t>(n), Eigen::MatrixXd::Zero(d, d));
  const auto block = [&](Index a, Index b) -> Eigen::MatrixXd {  // w² F_aᵀ F_b
    const double w = edge_weights[static_cast<std::size_t>(graph.edge_of(a))];
    return w * w * maps[static_cast<std::size_t>(a)].transpose().lazyProduct(maps[static_cast<std::size_t>(b)]);
  };
  for (Index a = 0; a < graph.arc_count(); ++a) degrees[static_cast<std::size_t>(graph.source(a))] += block(a, a);
  Eigen::MatrixXd laplacian = Eigen::MatrixXd::Zero(n * d, n * d);
  for (Index u = 0; u < n; ++u) {  // degrees become D_u^{-1/2}; the diagonal blocks are projections
    Eigen::MatrixXd& degree = degrees[static_cast<std::size_t>(u)];
    Eigen::MatrixXd vectors;
    Eigen::VectorXd values = symmetric_eigen(degree, &vectors);
    const double least = 1e-12 * values(d - 1);
    for (Index i = 0; i < d; ++i) values(i) = values(i) > least ? 1 / std::sqrt(values(i)) : 0.0;
    const Eigen::MatrixXd scaled = vectors.lazyProduct(values.asDiagonal().toDenseMatrix());
    const Eigen::MatrixXd root = scaled.lazyProduct(vectors.transpose()), half = root.lazyProduct(degree);
    laplacian.block(u * d, u * d, d, d) = half.lazyProduct(root);
    degree = root;
  }
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const Index u = graph.source(a), v = graph.target(a);
    const Eigen::MatrixXd half = degrees[static_cast<std::size_t>(u)].lazyProduct(block(a, graph.reverse(a)));
    laplacian.block(u * d, v * d, d, d) = -half.lazyProduct(degrees[static_cast<std::size_t>(v)]);
  }
  const Eigen::VectorXd values = symmetric_eigen(laplacian);
  std::vector<double> r(values.data(), values.data() + values.size());
  for (double& value : r) value = std::clamp(value, 0.0, 2.0);
  return r;
}
/// The spectrum of the sheaf of identity maps with stalks R^D: each eigenvalue of the graph's normalised Laplacian D times.
inline std::vector<double> identity_spectrum(const sheafnn::Graph& graph, Index dimension) {
  const std::vector<Eigen::MatrixXd> maps(static_cast<std::size_t>(graph.arc_count()),
                                          Eigen::MatrixXd::Identity(1, 1));
  const std::vector<double> ones(static_cast<std::size_t>(graph.edge_count()), 1.0);
  std::vector<double> r;
  for (const double value : spectrum(graph, maps, ones, 1))
    r.insert(r.end(), static_cast<std::size_t>(dimension), value);
  return r;
}

/// Rows projected to their first two principal components.
struct Projection {
  Eigen::MatrixXd points;    ///< n × 2
  double share[2] = {0, 0};  ///< of the variance
};

/// Principal component analysis of the rows of x, by the smaller of XᵀX and XXᵀ, X centred.
inline Projection principal_components(const Eigen::MatrixXd& x) {
  Eigen::MatrixXd centred = x;
  for (Index j = 0; j < x.cols(); ++j) centred.col(j).array() -= x.col(j).mean();
  const bool wide = x.cols() > x.rows();
  Eigen::MatrixXd gram, vectors;
  if (wide) {
    gram = centred.lazyProduct(centred.transpose());
  } else {
    gram = centred.transpose().lazyProduct(centred);
  }
  const Eigen::VectorXd values = symmetric_eigen(gram, &vectors);
  Projection r;
  r.points = Eigen::MatrixXd::Zero(x.rows(), 2);
  const double total = gram.trace();
  for (Index k = 0; k < std::min<Index>(2, gram.rows()); ++k) {
    const Index at = gram.rows() - 1 - k;
    const double value = std::max(values(at), 0.0);
    r.share[k] = total > 0 ? value / total : 0;
    if (wide) {
      r.points.col(k) = std::sqrt(value) * vectors.col(at);
    } else {
      r.points.col(k) = centred.lazyProduct(vectors.col(at));
    }
  }
  return r;
}
/// Projections of all layers; signs, which are arbitrary, follow the layer before.
inline std::vector<Projection> project_layers(const std::vector<Eigen::MatrixXd>& layers) {
  std::vector<Projection> r;
  for (const Eigen::MatrixXd& layer : layers) {
    r.push_back(principal_components(layer));
    if (r.size() < 2) continue;
    const Eigen::MatrixXd& before = r[r.size() - 2].points;
    for (Index k = 0; k < 2; ++k) {
      if (r.back().points.col(k).dot(before.col(k)) < 0) r.back().points.col(k) *= -1;
    }
  }
  return r;
}

/// Shares of values in `bins` equal intervals of [low, high]; the last one is closed.
inline std::vector<double> histogram(const std::vector<double>& values, double low, double high, Index bins) {
  std::vector<double> r(static_cast<std::size_t>(bins), 0.0);
  for (const double value : values) {
    const double position = (value - low) / (high - low) * static_cast<double>(bins);
    const Index bin = std::clamp(static_cast<Index>(position), Index{0}, bins - 1);
    r[static_cast<std::size_t>(bin)] += 1 / static_cast<double>(values.size());
  }
  return r;
}

}  // namespace explore
