/// \file
/// Positions of the nodes of a graph in the plane: eigenvectors 2 and 3 of its normalised Laplacian, refined by
/// Fruchterman and Reingold's forces. Source: Fruchterman, Reingold, "Graph drawing by force-directed placement", 1991.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sheafnn/core/eigen.hpp>
#include <sheafnn/graph/graph.hpp>
#include <sheafnn/random/stream.hpp>
#include <vector>

#include "explore/learned.hpp"

namespace explore {

namespace detail {

using Columns = std::vector<Eigen::VectorXd>;

/// (I + D^{-1/2} A D^{-1/2}) x / 2 of each column, with eigenvalues 1 − λ/2 for those λ of the normalised Laplacian.
inline void smooth(const sheafnn::Graph& graph, const Eigen::VectorXd& inverse_root, Columns& columns) {
  for (Eigen::VectorXd& x : columns) {
    Eigen::VectorXd sum = x;
    for (Index a = 0; a < graph.arc_count(); ++a) {
      const Index u = graph.source(a), v = graph.target(a);
      sum(u) += inverse_root(u) * inverse_root(v) * x(v);
    }
    x = sum / 2;
  }
}
/// Gram and Schmidt's procedure; columns that depend on those before become 0.
inline void orthonormalise(Columns& columns) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    Eigen::VectorXd& x = columns[j];
    for (int again = 0; again < 2; ++again) {
      for (std::size_t i = 0; i < j; ++i) x -= columns[i].dot(x) * columns[i];
    }
    const double norm = x.norm();
    x /= norm > 1e-12 ? norm : 1;
  }
}

/// Eigenvectors 2 and 3, n × 2, by subspace iteration from D^{1/2} 1, the first one: near enough for positions to start
/// from.
inline Eigen::MatrixXd spectral_positions(const sheafnn::Graph& graph) {
  constexpr int iterations = 150;
  const Index n = graph.node_count();
  Eigen::VectorXd inverse_root(n);
  Columns columns(3, Eigen::VectorXd(n));
  const sheafnn::Stream stream{1, sheafnn::Purpose::user};
  for (Index u = 0; u < n; ++u) {
    inverse_root(u) = 1 / std::sqrt(static_cast<double>(std::max<Index>(graph.degree(u), 1)));
    columns[0](u) = 1 / inverse_root(u);
    for (std::size_t j = 1; j < 3; ++j) {
      const auto word = stream.words(static_cast<std::uint32_t>(u), static_cast<std::uint32_t>(j)).word[0];
      columns[j](u) = sheafnn::random::uniform_from_word<double>(word) - 0.5;
    }
  }
  for (int i = 0; i < iterations; ++i) {
    orthonormalise(columns);
    smooth(graph, inverse_root, columns);
  }
  Eigen::MatrixXd r(n, 2);
  for (Index j = 0; j < 2; ++j) r.col(j) = inverse_root.cwiseProduct(columns[static_cast<std::size_t>(j + 1)]);
  return r;
}

/// Replaces each column by the ranks of its entries, in [0, 1]: no clumps, no far nodes.
inline void spread_evenly(Eigen::MatrixXd& x) {
  std::vector<Index> order(static_cast<std::size_t>(x.rows()));
  for (Index j = 0; j < x.cols(); ++j) {
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return x(a, j) < x(b, j); });
    for (std::size_t i = 0; i < order.size(); ++i) {
      x(order[i], j) = static_cast<double>(i) / static_cast<double>(order.size());
    }
  }
}

/// Turns points about their mean so that they spread most along the first axis.
inline void turn_to_longest_axis(Eigen::MatrixXd& x) {
  double mean[2] = {0, 0}, covariance[3] = {0, 0, 0};
  for (int j = 0; j < 2; ++j) mean[j] = x.col(j).mean();
  for (Index u = 0; u < x.rows(); ++u) {
    for (int j = 0; j < 2; ++j) x(u, j) -= mean[j];
    covariance[0] += x(u, 0) * x(u, 0);
    covariance[1] += x(u, 0) * x(u, 1);
    covariance[2] += x(u, 1) * x(u, 1);
  }
  const double angle = std::atan2(2 * covariance[1], covariance[0] - covariance[2]) / 2;
  for (Index u = 0; u < x.rows(); ++u) {
    const double first = x(u, 0), second = x(u, 1);
    x(u, 0) = std::cos(angle) * first + std::sin(angle) * second;
    x(u, 1) = std::cos(angle) * second - std::sin(angle) * first;
  }
}

}  // namespace detail

/// Positions, n × 2, deterministic, with mean 0 and the longest axis first. Each of the steps takes n² operations.
///
/// Forces: k²/r between any two nodes, r²/k along edges with k = 1/√n, and a pull to the centre that keeps components
/// together. A step moves a node at most by a length that falls to zero.
inline Eigen::MatrixXd layout(const sheafnn::Graph& graph, int steps = 150) {
  const Index n = graph.node_count();
  Eigen::MatrixXd position = detail::spectral_positions(graph);
  detail::spread_evenly(position);
  constexpr double pull_to_centre = 4;
  const double square = 1 / static_cast<double>(n), k = std::sqrt(square);
  std::vector<double> x(static_cast<std::size_t>(n)), y(x), fx(x), fy(x);
  for (Index u = 0; u < n; ++u) {
    x[static_cast<std::size_t>(u)] = position(u, 0);
    y[static_cast<std::size_t>(u)] = position(u, 1);
  }
  for (int step = 0; step < steps; ++step) {
    const double longest = 0.1 * (1 - static_cast<double>(step) / steps);
    for (std::size_t u = 0; u < x.size(); ++u) {
      double sum_x = 0, sum_y = 0;
      for (std::size_t v = 0; v < x.size(); ++v) {
        const double dx = x[u] - x[v], dy = y[u] - y[v], pull = square / (dx * dx + dy * dy + 1e-9);
        sum_x += pull * dx;
        sum_y += pull * dy;
      }
      fx[u] = sum_x + pull_to_centre * (0.5 - x[u]);
      fy[u] = sum_y + pull_to_centre * (0.5 - y[u]);
    }
    for (Index e = 0; e < graph.edge_count(); ++e) {
      const auto [i, j] = graph.edge(e);
      const std::size_t u = static_cast<std::size_t>(i), v = static_cast<std::size_t>(j);
      const double dx = x[u] - x[v], dy = y[u] - y[v], pull = std::hypot(dx, dy) / k;
      fx[u] -= pull * dx;
      fy[u] -= pull * dy;
      fx[v] += pull * dx;
      fy[v] += pull * dy;
    }
    for (std::size_t u = 0; u < x.size(); ++u) {
      const double length = std::hypot(fx[u], fy[u]);
      if (length == 0) continue;
      x[u] += fx[u] / length * std::min(length, longest);
      y[u] += fy[u] / length * std::min(length, longest);
    }
  }
  for (Index u = 0; u < n; ++u) {
    position(u, 0) = x[static_cast<std::size_t>(u)];
    position(u, 1) = y[static_cast<std::size_t>(u)];
  }
  detail::turn_to_longest_axis(position);
  return position;
}

}  // namespace explore
