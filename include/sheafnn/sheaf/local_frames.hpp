/// \file
/// LocalFrames: orthonormal bases T_u, p × d, of the d directions in which the features vary around each node (local PCA),
///
///     X̂_u = [x_v − x_u : v ∈ members of u]  (p × N_u),   X̂_u = U Σ Vᵀ,   T_u = first d columns of U
///
/// Members are u's neighbours. While X̂_u has a rank below d, the nearest other node is appended to them. Where all nodes
/// together are not enough, e_1, e_2, … complete the basis. The gauge says which of all such bases it is.
/// T_u is kept as a combination of few vectors, X̂_u C_u plus columns of I. It is written out for one block of nodes at a
/// time.
/// Source: Sheaf Neural Networks with Connection Laplacians (Barbero et al.), section 3; math: "Connections".
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/leading_directions.hpp"

namespace sheafnn::sheaf {

/// Which basis of a tangent space is taken.
enum class FrameGauge : std::uint8_t {
  signs,  ///< singular vectors; of each the entry of largest modulus is positive
  pivots  ///< a basis that depends on the space alone, for data whose singular values repeat
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(FrameGauge) { return std::array{"signs", "pivots"}; }

}  // namespace sheafnn::sheaf

namespace sheafnn::detail {

/// The lowest index among the entries within 1e-8, relative, of the largest. Unchecked: there is at least one value,
/// and no value is negative.
template <class Sizes>
[[nodiscard]] Index first_largest(const Sizes& sizes) {
  const double bound = (1 - 1e-8) * sizes.maxCoeff();
  Index i = 0;
  while (!(sizes(i) >= bound)) ++i;
  return i;
}

/// The entry of largest modulus of every column becomes positive.
template <class Real>
void fix_signs(Eigen::MatrixX<Real>& frame) {
  for (Index k = 0; k < frame.cols(); ++k) {
    if (frame(first_largest(frame.col(k).cwiseAbs()), k) < 0) frame.col(k) = -frame.col(k);
  }
}

/// Columns become orthonormal, one after another. Unchecked: they nearly are.
template <class Real>
void orthonormalise_columns(Eigen::MatrixX<Real>& frame) {
  for (Index k = 0; k < frame.cols(); ++k) {
    for (Index j = 0; j < k; ++j) frame.col(k) -= frame.col(j).dot(frame.col(k)) * frame.col(j);
    frame.col(k).normalize();
  }
}

/// The pivoted Cholesky factor of P = T Tᵀ: c_k = P_{:,j} / √P_jj at the largest P_jj, P ← P − c_k c_kᵀ.
template <class Real>
void pivot_basis(Eigen::MatrixX<Real>& frame) {
  using Matrix = Eigen::MatrixX<Real>;
  using Vector = Eigen::VectorX<Real>;
  const Index d = frame.cols();
  Matrix left = Matrix::Identity(d, d), basis(frame.rows(), d);  // P = T left Tᵀ
  for (Index k = 0; k < d; ++k) {
    const Vector diagonal = (frame * left).cwiseProduct(frame).rowwise().sum().cwiseMax(Real(0));
    const Vector row = left * frame.row(first_largest(diagonal)).transpose();
    const double pivot = frame.row(first_largest(diagonal)).dot(row);
    basis.col(k) = frame * row / std::sqrt(pivot);
    left -= row * row.transpose() / pivot;
  }
  frame = std::move(basis);
  orthonormalise_columns(frame);
}

/// Completes orthonormal columns to `d` by e_1, e_2, …, of which those are left out that leave 1e-3 or less.
template <class Real>
void complete_frame(Eigen::MatrixX<Real>& frame, Index d) {
  using Vector = Eigen::VectorX<Real>;
  Index count = frame.cols();
  frame.conservativeResize(Eigen::NoChange, d);
  for (Index i = 0; i < frame.rows() && count < d; ++i) {
    Vector rest = Vector::Unit(frame.rows(), i);
    for (int pass = 0; pass < 2; ++pass) {
      for (Index k = 0; k < count; ++k) rest -= frame.col(k).dot(rest) * frame.col(k);
      if (pass == 0 && rest.norm() <= 1e-3) break;
    }
    if (rest.norm() > 1e-3) frame.col(count++) = rest.normalized();
  }
}

}  // namespace sheafnn::detail

namespace sheafnn::sheaf {

/// The frames of all nodes. Refers to the graph and the features, which must outlive it.
///
/// \tparam Real  double: of LocalFrames, below
template <class Real>
class BasicLocalFrames {
 public:
  /// \param d  1 … 8, at most the number of features
  /// \throws std::invalid_argument  features of another number of nodes, or with missing values; d out of range
  BasicLocalFrames(const Graph& graph, const NodeFeatures& features, Index d, FrameGauge gauge = FrameGauge::signs)
      : graph_(&graph), features_(&features), d_(d), gauge_(gauge) {
    require(features.rows() == graph.node_count(), "rows of the features", features.rows(),
            detail::concat("must equal the number of nodes, ", graph.node_count()));
    require_between("stalk dimension", d, 1, max_stalk_dimension);
    require(features.columns() >= d, "features", features.columns(),
            detail::concat("a connection of stalk dimension ", d, " needs at least as many columns"));
    if (!features.indicators().empty()) {
      throw_invalid_argument("features: a missing value in column", features.indicators().front(),
                             "a connection needs all numbers");
    }
    double largest = 0;
    for (const double value : features.values()) largest = std::max(largest, std::abs(value));
    if (largest > 0) scale_ = std::ldexp(1.0, -std::clamp(std::ilogb(largest), -1022, 1022));
  }

  [[nodiscard]] const Graph& graph() const noexcept { return *graph_; }
  [[nodiscard]] Index dimension() const noexcept { return d_; }
  /// p.
  [[nodiscard]] Index features() const noexcept { return features_->columns(); }

  /// T_u, p × d, with orthonormal columns. \throws std::invalid_argument  no such node
  [[nodiscard]] Eigen::MatrixX<Real> frame(Index u) const {
    require_between("node", u, 0, graph_->node_count() - 1);
    const Index p = features();
    std::vector<Index> members;
    for (Index a = graph_->first_arc(u); a < graph_->first_arc(u + 1); ++a) members.push_back(graph_->target(a));
    detail::Directions<Real> directions = directions_of(u, members);
    if (directions.rank() < d_) {
      bool current = true;
      for (const Index v : others_by_distance(u, members)) {
        members.push_back(v);
        current = adds_rank(u, v, directions);
        if (current) directions = directions_of(u, members);
        if (directions.rank() >= d_) break;
      }
      if (!current) directions = directions_of(u, members);
    }
    Eigen::MatrixX<Real> r = Eigen::MatrixX<Real>::Zero(p, std::min(d_, directions.rank()));
    for (Index k = 0; k < r.cols(); ++k) {
      for (std::size_t i = 0; i < directions.rows.size(); ++i)
        r(directions.rows[i], k) = directions.basis(static_cast<Index>(i), k);
    }
    detail::complete_frame(r, d_);
    if (gauge_ == FrameGauge::signs) {
      detail::fix_signs(r);
    } else {
      detail::pivot_basis(r);
    }
    return r;
  }

 private:
  struct Row {
    const std::int32_t* column;
    const double* value;
    Index size;
  };
  [[nodiscard]] Row row(Index u) const {
    const Index first = features_->offsets()[static_cast<std::size_t>(u)];
    return {features_->column_of().data() + first, features_->values().data() + first,
            features_->offsets()[static_cast<std::size_t>(u) + 1] - first};
  }
  /// use(column, s x_u, s x_v) for the columns where one of two rows has an entry, increasing. The scale s is a power of 2
  /// with which the largest feature is near 1, so that squares neither vanish nor overflow. Frames do not depend on it.
  template <class Use>
  void merge(const Row& a, const Row& b, const Use& use) const {
    Index i = 0, j = 0;
    while (i < a.size || j < b.size) {
      const bool left = j == b.size || (i < a.size && a.column[i] <= b.column[j]);
      const bool right = i == a.size || (j < b.size && b.column[j] <= a.column[i]);
      use(left ? a.column[i] : b.column[j], left ? scale_ * a.value[i] : 0.0, right ? scale_ * b.value[j] : 0.0);
      i += left ? 1 : 0;
      j += right ? 1 : 0;
    }
  }

  /// The leading directions of X̂_u, on the rows where a member or u has an entry.
  [[nodiscard]] detail::Directions<Real> directions_of(Index u, const std::vector<Index>& members) const {
    detail::Directions<Real> r;
    const auto add = [&](Index v) {
      const Row of = row(v);
      r.rows.insert(r.rows.end(), of.column, of.column + of.size);
    };
    add(u);
    for (const Index v : members) add(v);
    std::sort(r.rows.begin(), r.rows.end());
    r.rows.erase(std::unique(r.rows.begin(), r.rows.end()), r.rows.end());
    Eigen::MatrixX<Real> differences =
        Eigen::MatrixX<Real>::Zero(static_cast<Index>(r.rows.size()), static_cast<Index>(members.size()));
    for (std::size_t k = 0; k < members.size(); ++k) {
      Index at = 0;
      merge(row(u), row(members[k]), [&](std::int32_t column, double own, double other) {
        while (r.rows[static_cast<std::size_t>(at)] < column) ++at;
        differences(at, static_cast<Index>(k)) = other - own;
      });
    }
    r.basis = detail::leading_directions(differences, d_);
    return r;
  }
  /// Is x_v − x_u, of v appended to the members, outside of the span of the directions?
  [[nodiscard]] bool adds_rank(Index u, Index v, const detail::Directions<Real>& directions) const {
    Eigen::VectorX<Real> difference = Eigen::VectorX<Real>::Zero(features());
    merge(row(u), row(v),
          [&](std::int32_t column, double own, double other) { difference(column) = other - own; });
    const double length = difference.norm();
    for (int pass = 0; pass < 2; ++pass) {
      for (Index k = 0; k < directions.rank(); ++k) {
        double product = 0;
        for (std::size_t i = 0; i < directions.rows.size(); ++i) {
          product += directions.basis(static_cast<Index>(i), k) * difference(directions.rows[i]);
        }
        for (std::size_t i = 0; i < directions.rows.size(); ++i) {
          difference(directions.rows[i]) -= product * directions.basis(static_cast<Index>(i), k);
        }
      }
    }
    return difference.norm() > 1e-13 * length;
  }
  /// The nodes that are neither u nor members, by distance from u, then by index.
  [[nodiscard]] std::vector<Index> others_by_distance(Index u, const std::vector<Index>& members) const {
    std::vector<std::pair<double, Index>> others;
    auto next = members.begin();
    for (Index v = 0; v < graph_->node_count(); ++v) {
      if (next != members.end() && *next == v) {
        ++next;
        continue;
      }
      if (v == u) continue;
      double square = 0;
      merge(row(u), row(v),
            [&](std::int32_t, double own, double other) { square += (other - own) * (other - own); });
      others.emplace_back(square, v);
    }
    std::sort(others.begin(), others.end());
    std::vector<Index> r;
    for (const auto& [square, v] : others) r.push_back(v);
    return r;
  }

  const Graph* graph_;
  const NodeFeatures* features_;
  Index d_;
  FrameGauge gauge_;
  double scale_ = 1;
};

/// The frames in double precision.
using LocalFrames = BasicLocalFrames<double>;

}  // namespace sheafnn::sheaf

namespace sheafnn {

using sheaf::FrameGauge;

}  // namespace sheafnn
