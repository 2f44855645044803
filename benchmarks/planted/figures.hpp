/// \file
/// How well a learned sheaf recovers a planted one: transports up to a change of basis, holonomies of cycles, and the
/// posterior's spread against the truth.
#pragma once

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <sheafnn/core/small_matrix.hpp>
#include <sheafnn/posterior/posterior_parameters.hpp>
#include <sheafnn/random/stream.hpp>
#include <sheafnn/rotation/cayley_distribution.hpp>
#include <sheafnn/rotation/nearest_rotation.hpp>
#include <sheafnn/rotation/operations.hpp>
#include <sheafnn/sheaf/cellular_sheaf.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "models/rank_correlation.hpp"

namespace planted {

using sheafnn::Index;

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// The value below which a share of the values lies; NaN of none.
[[nodiscard]] inline double quantile(std::vector<double> values, double level) {
  if (values.empty()) return unknown;
  const auto at = values.begin() + static_cast<Index>(level * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

template <int D>
using Matrix = sheafnn::SquareMatrix<double, D>;

template <int D>
[[nodiscard]] double degrees(const Matrix<D>& rotation) {
  return 180 / std::acos(-1.0) * std::abs(sheafnn::rotation::rotation_angle<double, D>(rotation));
}

/// The transports F_{u⊴e}ᵀ F_{v⊴e} from v to u of every arc u→v as rotations: of general linear maps the nearest ones, the
/// identity where there are several.
template <class Family>
[[nodiscard]] std::vector<Matrix<Family::stalk_dimension>> rotations_of(
    const sheafnn::CellularSheaf<Family>& sheaf) {
  constexpr int D = Family::stalk_dimension;
  std::vector<Matrix<D>> r;
  for (Index a = 0; a < sheaf.graph().arc_count(); ++a) {
    Matrix<D> transport = sheafnn::math::multiply_tn(sheaf.map(a), sheaf.map(sheaf.graph().reverse(a)));
    if constexpr (!sheafnn::sheaf::is_orthogonal<Family>) {
      try {
        transport = sheafnn::rotation::nearest_rotation<double, D>(transport);
      } catch (const std::invalid_argument&) {
        transport.setIdentity();
      }
    }
    r.push_back(transport);
  }
  return r;
}

/// The change of basis G that brings true transports T nearest to learned ones L, as Gᵀ T G: in the plane, where only
/// reflections change them, T or its transpose; in space by Kabsch's algorithm on rotation vectors, then by ascent of
/// Σ tr(Lᵀ Gᵀ T G).
template <int D>
class Alignment {
 public:
  Alignment(const std::vector<Matrix<D>>& truth, const std::vector<Matrix<D>>& learned) {
    basis_.setIdentity();
    if constexpr (D == 2) {
      Alignment other = *this;
      other.basis_(1, 1) = -1;
      if (other.agreement(truth, learned) > agreement(truth, learned)) *this = other;
    } else {
      static_assert(D == 3);
      const auto log_of = [](const Matrix<D>& t) {
        const Eigen::AngleAxisd turn(t);
        return Eigen::Vector3d(turn.angle() * turn.axis());
      };
      Matrix<D> moments = Matrix<D>::Zero();
      for (std::size_t a = 0; a < truth.size(); ++a) moments += log_of(truth[a]) * log_of(learned[a]).transpose();
      try {
        basis_ = sheafnn::rotation::nearest_rotation<double, D>(moments);
        for (int step = 0; step < 50; ++step) {
          Matrix<D> slope = Matrix<D>::Zero();
          for (std::size_t a = 0; a < truth.size(); ++a) slope += truth[a] * basis_ * learned[a].transpose();
          Alignment next = *this;
          next.basis_ = sheafnn::rotation::nearest_rotation<double, D>(slope);
          if (next.agreement(truth, learned) <= agreement(truth, learned)) break;
          *this = next;
        }
      } catch (const std::invalid_argument&) {  // learned transports that are all the identity
      }
    }
  }

  [[nodiscard]] Matrix<D> operator()(const Matrix<D>& transport) const {
    return basis_.transpose() * transport * basis_;
  }
  [[nodiscard]] std::vector<Matrix<D>> operator()(std::vector<Matrix<D>> transports) const {
    for (Matrix<D>& transport : transports) transport = (*this)(transport);
    return transports;
  }

 private:
  [[nodiscard]] double agreement(const std::vector<Matrix<D>>& truth,
                                 const std::vector<Matrix<D>>& learned) const {
    double sum = 0;
    for (std::size_t a = 0; a < truth.size(); ++a) sum += learned[a].cwiseProduct((*this)(truth[a])).sum();
    return sum;
  }

  Matrix<D> basis_;
};

/// The arcs of a shortest cycle through an edge that is not longer than `most`; empty: there is none.
[[nodiscard]] inline std::vector<Index> short_cycle(const sheafnn::Graph& graph, Index edge, std::size_t most) {
  const auto [from, to] = graph.edge(edge);
  std::vector<std::pair<Index, Index>> found = {
      {-1, from}};  // arc into a node, and the node; in order of distance
  std::vector<std::size_t> before = {0};
  std::vector<char> seen(static_cast<std::size_t>(graph.node_count()), 0);
  seen[static_cast<std::size_t>(from)] = 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].second == to) {
      std::vector<Index> arcs;
      for (std::size_t k = i; k != 0; k = before[k]) arcs.push_back(found[k].first);
      std::reverse(arcs.begin(), arcs.end());
      arcs.push_back(graph.reverse(graph.forward_arc(edge)));
      return arcs.size() <= most ? arcs : std::vector<Index>();
    }
    for (Index a = graph.first_arc(found[i].second); a < graph.first_arc(found[i].second + 1); ++a) {
      const std::size_t v = static_cast<std::size_t>(graph.target(a));
      if (graph.edge_of(a) == edge || seen[v] != 0) continue;
      seen[v] = 1;
      found.push_back({a, graph.target(a)});
      before.push_back(i);
    }
  }
  return {};
}

/// Median difference, in degrees, between the angles by which learned and true transports turn around a short cycle: no
/// change of bases changes these angles.
template <int D>
[[nodiscard]] double holonomy_error(const sheafnn::Graph& graph, const std::vector<Matrix<D>>& truth,
                                    const std::vector<Matrix<D>>& learned) {
  std::vector<double> errors;
  const Index step = std::max<Index>(1, graph.edge_count() / 500);
  for (Index e = 0; e < graph.edge_count(); e += step) {
    const std::vector<Index> cycle = short_cycle(graph, e, 8);
    if (cycle.empty()) continue;
    Matrix<D> around = Matrix<D>::Identity(), true_around = around;
    for (const Index a : cycle) {
      around = around * learned[static_cast<std::size_t>(a)];
      true_around = true_around * truth[static_cast<std::size_t>(a)];
    }
    errors.push_back(std::abs(degrees<D>(around) - degrees<D>(true_around)));
  }
  return quantile(errors, 0.5);
}

/// Share of the diagonal transports' entries with the true sign, with the coordinates in the order that suits best, and each
/// up to a sign that all edges share: the weights of a layer make up for it.
template <class Family>
[[nodiscard]] double right_signs(const sheafnn::CellularSheaf<Family>& truth,
                                 const sheafnn::CellularSheaf<Family>& learned) {
  constexpr int D = Family::stalk_dimension;
  const sheafnn::Graph& graph = truth.graph();
  std::vector<int> order(D);
  std::iota(order.begin(), order.end(), 0);
  double most = 0;
  do {
    std::vector<double> right(D, 0.0);
    for (Index a = 0; a < graph.arc_count(); ++a) {
      const auto sign = [&](const sheafnn::CellularSheaf<Family>& sheaf, int k) {
        return sheaf.map(a).data()[k] * sheaf.map(graph.reverse(a)).data()[k] < 0;
      };
      for (int k = 0; k < D; ++k) {
        const std::size_t at = static_cast<std::size_t>(k);
        right[at] += sign(truth, k) == sign(learned, order[at]) ? 1 : 0;
      }
    }
    double sum = 0;
    for (const double r : right) sum += std::max(r, static_cast<double>(graph.arc_count()) - r);
    most = std::max(most, sum / static_cast<double>(D * graph.arc_count()));
  } while (std::next_permutation(order.begin(), order.end()));
  return most;
}

/// Share of the edges whose true transport, in the learned basis, is not further from the transport between the posterior's
/// means than 90 % of the posterior's draws; of 2000 edges with 200 draws each.
template <class Family>
[[nodiscard]] double coverage(const sheafnn::CellularSheaf<Family>& mean, const std::vector<double>& kappa,
                              const std::vector<Matrix<Family::stalk_dimension>>& learned,
                              const std::vector<Matrix<Family::stalk_dimension>>& truth) {
  constexpr int D = Family::stalk_dimension;
  const sheafnn::Graph& graph = mean.graph();
  const Index step = std::max<Index>(1, graph.edge_count() / 2000);
  constexpr std::uint32_t draws = 200;
  double inside = 0, edges = 0;
  for (Index e = 0; e < graph.edge_count(); e += step) {
    const Index a = graph.forward_arc(e), b = graph.reverse(a);
    const auto distribution = [&](Index arc) {
      return sheafnn::rotation::CayleyDistribution<D>(mean.map(arc), kappa[static_cast<std::size_t>(arc)]);
    };
    const auto of_a = distribution(a), of_b = distribution(b);
    const Matrix<D>& centre = learned[static_cast<std::size_t>(a)];
    const auto distance = [&](const Matrix<D>& transport) {
      return degrees<D>(sheafnn::math::multiply_tn(centre, transport));
    };
    std::vector<double> distances;
    for (std::uint32_t k = 0; k < draws; ++k) {
      const auto drawn = [&](const auto& q, Index arc) {
        return sheafnn::rotation::sample(q, sheafnn::Stream{1, sheafnn::Purpose::user, 0, k, 0},
                               static_cast<std::uint32_t>(arc));
      };
      distances.push_back(distance(sheafnn::math::multiply_tn(drawn(of_a, a), drawn(of_b, b))));
    }
    inside += distance(truth[static_cast<std::size_t>(a)]) <= quantile(distances, 0.9) ? 1 : 0;
    edges += 1;
  }
  return inside / edges;
}

}  // namespace planted
