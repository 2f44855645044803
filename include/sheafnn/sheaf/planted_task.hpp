/// \file
/// Node classification tasks that need a sheaf: what the generators in planted.hpp and planted_geometric.hpp share.
///
/// Node u has a vector x_u ∈ R^D in a frame of its own. Of C fixed directions c_1 … c_C, its label is the one nearest to
///
///     s_u = Σ_{e = {u, v}} F_{u⊴e}ᵀ F_{v⊴e} x_v,
///
/// the sum of its neighbours' vectors, transported into its own frame: argmax_k ⟨c_k, s_u⟩. The maps F are the truth;
/// features hold columns from which they can be read, and x_u. With D = 1 a node may have several such vectors, which x_u
/// holds; then the directions have as many coordinates. Labels do not depend on a node's own vector, and graphs not
/// on labels. Every value is a pure function of the options.
///
/// With a neighbour share p, labels y_u are drawn uniformly instead, and c_k stands for class k in every node's own frame.
/// Node u's vector shows the class of one node t: with probability p a random neighbour, otherwise u itself:
///
///     x_u = F_{u⊴e}ᵀ F_{t⊴e} c_{y_t} with e = {u, t};  x_u = c_{y_u} for t = u.
///
/// Transported to a neighbour that it shows, x_u is the direction of the neighbour's class. The vector of a node that shows a
/// neighbour does not depend on the node's own class.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/memory.hpp"
#include "sheafnn/core/small_matrix.hpp"
#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/graph/splits.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/random/words.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/planted_options.hpp"

namespace sheafnn {

/// A task and the sheaf that it needs.
template <RestrictionMapFamily Family>
struct PlantedTask {
  Dataset data;
  CellularSheaf<Family> sheaf;        ///< the true map of every incident pair
  std::vector<double> concentration;  ///< of the unreliable task, κ_e of each of the m edges; otherwise empty
};

/// The C directions of R^D that labels stand for, unit vectors: in the plane at angles 2πk/C, otherwise the corners of a
/// regular simplex. C = 0: D + 1.
///
/// \throws std::invalid_argument  C outside 2 … D + 1, for D = 2 to 100
template <int D>
[[nodiscard]] std::vector<math::Column<double, D>> planted_directions(Index classes = 0) {
  detail::require_planted_classes(classes, D);
  if (classes == 0) classes = D + 1;
  std::vector<math::Column<double, D>> directions(static_cast<std::size_t>(classes), math::Column<double, D>::Zero());
  if constexpr (D == 2) {
    for (std::size_t c = 0; c < directions.size(); ++c) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(c) / static_cast<double>(classes);
      directions[c] << std::cos(angle), std::sin(angle);
    }
  } else {
    // Corner j leaves the plane of those before it; all later ones share what it has to balance.
    double left = 1;
    for (Index j = 0; j < classes - 1; ++j) {
      const double height = std::sqrt(left);
      const double share = height / static_cast<double>(classes - 1 - j);
      directions[static_cast<std::size_t>(j)](j) = height;
      for (std::size_t c = static_cast<std::size_t>(j) + 1; c < directions.size(); ++c) directions[c](j) = -share;
      left -= share * share;
    }
  }
  return directions;
}

namespace detail {

/// F_{u⊴e}ᵀ F_{v⊴e} x for the arc u→v.
template <RestrictionMapFamily Family>
[[nodiscard]] Column<double, Family::stalk_dimension> transported_along(
    const CellularSheaf<Family>& sheaf, Index arc, const Column<double, Family::stalk_dimension>& x) {
  const Column<double, Family::stalk_dimension> on_edge =
      multiply(sheaf.restriction_map(sheaf.graph().reverse(arc)), x);
  return multiply_tn(sheaf.restriction_map(arc), on_edge);
}

}  // namespace detail

/// s_u = Σ_{e = {u, v}} F_{u⊴e}ᵀ F_{v⊴e} x_v of every node.
///
/// \throws std::invalid_argument  not one vector per node
template <RestrictionMapFamily Family>
[[nodiscard]] std::vector<math::Column<double, Family::stalk_dimension>> transported_sums(
    const CellularSheaf<Family>& sheaf, std::span<const math::Column<double, Family::stalk_dimension>> vectors) {
  constexpr int D = Family::stalk_dimension;
  const Graph& graph = sheaf.graph();
  require(static_cast<Index>(vectors.size()) == graph.node_count(), "vectors", vectors.size(),
          detail::concat("expected one for each of ", graph.node_count(), " nodes"));
  std::vector<math::Column<double, D>> sums(vectors.size(), math::Column<double, D>::Zero());
  for (Index a = 0; a < graph.arc_count(); ++a) {
    sums[static_cast<std::size_t>(graph.source(a))] +=
        detail::transported_along<Family>(sheaf, a, vectors[static_cast<std::size_t>(graph.target(a))]);
  }
  return sums;
}

namespace detail {

/// The sums of vectors of R^Size, where D = 1 of each coordinate.
template <int Size, RestrictionMapFamily Family>
[[nodiscard]] std::vector<Column<double, Size>> sums_of_columns(const CellularSheaf<Family>& sheaf,
                                                                const std::vector<Column<double, Size>>& vectors) {
  if constexpr (Size == Family::stalk_dimension) {
    return transported_sums<Family>(sheaf, vectors);
  } else {
    static_assert(Family::stalk_dimension == 1);
    std::vector<Column<double, Size>> sums(vectors.size());
    for (int k = 0; k < Size; ++k) {
      std::vector<Column<double, 1>> column;
      column.reserve(vectors.size());
      for (const Column<double, Size>& x : vectors) column.emplace_back(x(k));
      const std::vector<Column<double, 1>> of_column = transported_sums<Family>(sheaf, column);
      for (std::size_t u = 0; u < sums.size(); ++u) sums[u](k) = of_column[u](0);
    }
    return sums;
  }
}

/// One vector per node: uniform on the unit sphere, for D = 1 an N(0, 1) value.
template <int D>
[[nodiscard]] std::vector<Column<double, D>> planted_vectors(const PlantedOptions& o) {
  const Stream stream = generator_stream(o.seed, GeneratorPart::vectors);
  std::vector<Column<double, D>> vectors(static_cast<std::size_t>(o.nodes));
  for (std::size_t u = 0; u < vectors.size(); ++u) {
    fill_normals<D, double>(vectors[u].data(), stream, static_cast<std::uint32_t>(u));
    if constexpr (D > 1) vectors[u] /= std::sqrt(inner_product(vectors[u], vectors[u]));
  }
  return vectors;
}

/// The vectors of all nodes, and their labels; −1: no label.
template <int Size>
struct LabelledVectors {
  std::vector<Column<double, Size>> vectors;
  std::vector<std::int32_t> labels;
};

/// Vectors that are drawn, and the labels of their sums. A node without neighbours has no label.
template <int Size, RestrictionMapFamily Family>
[[nodiscard]] LabelledVectors<Size> vectors_of_sums(const PlantedOptions& o, const CellularSheaf<Family>& sheaf) {
  LabelledVectors<Size> r{planted_vectors<Size>(o), {}};
  const std::vector<Column<double, Size>> directions = planted_directions<Size>(o.classes);
  const std::vector<Column<double, Size>> sums = sums_of_columns<Size, Family>(sheaf, r.vectors);
  r.labels.resize(sums.size());
  for (std::size_t u = 0; u < sums.size(); ++u) {
    const auto nearer = [&](const Column<double, Size>& a, const Column<double, Size>& b) {
      return inner_product(a, sums[u]) < inner_product(b, sums[u]);
    };
    const auto nearest = std::max_element(directions.begin(), directions.end(), nearer);
    const bool lonely = sheaf.graph().degree(static_cast<Index>(u)) == 0;
    r.labels[u] = lonely ? -1 : static_cast<std::int32_t>(nearest - directions.begin());
  }
  return r;
}

/// Labels that are drawn, and vectors that show a neighbour's class or the node's own.
///
/// Unchecked: that every node has a neighbour, and that maps are rotations.
template <RestrictionMapFamily Family>
[[nodiscard]] LabelledVectors<Family::stalk_dimension> vectors_of_labels(const PlantedOptions& o,
                                                                         const CellularSheaf<Family>& sheaf) {
  constexpr int D = Family::stalk_dimension;
  const std::vector<Column<double, D>> directions = planted_directions<D>(o.classes);
  const Stream stream = generator_stream(o.seed, GeneratorPart::labels);
  LabelledVectors<D> r;
  for (Index u = 0; u < o.nodes; ++u) {
    const std::uint32_t word = stream.words(static_cast<std::uint32_t>(u), 0).word[0];
    r.labels.push_back(static_cast<std::int32_t>(below(word, static_cast<Index>(directions.size()))));
  }
  const Graph& graph = sheaf.graph();
  const auto direction = [&](Index u) {
    return directions[static_cast<std::size_t>(r.labels[static_cast<std::size_t>(u)])];
  };
  for (Index u = 0; u < o.nodes; ++u) {
    const auto choice = stream.words(static_cast<std::uint32_t>(u), 0);
    const Index arc = graph.first_arc(u) + below(choice.word[1], graph.degree(u));
    const bool neighbour = uniform_from_word<double>(choice.word[2]) < o.neighbour_share;
    r.vectors.push_back(neighbour ? transported_along<Family>(sheaf, arc, direction(graph.target(arc)))
                                  : direction(u));
  }
  return r;
}

/// tanh(A r_u + b) of columns r_u, n × p, in their place, n × hidden_columns: A r_u and 2b have entries of variance 1.
inline void hide_columns(std::vector<double>& columns, Index& p, const PlantedOptions& o) {
  if (o.hidden_columns == 0) return;
  double squares = 0;
  for (const double r : columns) squares += r * r;
  const double scale = squares == 0 ? 0 : std::sqrt(static_cast<double>(o.nodes) / squares);
  const Stream stream = generator_stream(o.seed, GeneratorPart::hidden_map);
  const std::size_t hidden = static_cast<std::size_t>(o.hidden_columns), shown = static_cast<std::size_t>(p);
  std::vector<double> weights(hidden * (shown + 1));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    fill_normals<1, double>(&weights[i], stream, static_cast<std::uint32_t>(i));
  }
  std::vector<double> r(static_cast<std::size_t>(o.nodes) * hidden);
  for (std::size_t u = 0; u < static_cast<std::size_t>(o.nodes); ++u) {
    for (std::size_t k = 0; k < hidden; ++k) {
      const double* const row = weights.data() + k * (shown + 1);
      double sum = 0.5 * row[shown];
      for (std::size_t j = 0; j < shown; ++j) sum += scale * row[j] * columns[u * shown + j];
      r[u * hidden + k] = std::tanh(sum);
    }
  }
  columns = std::move(r);
  p = o.hidden_columns;
}

/// Bytes that a task takes at least.
///
/// \param columns  of the features
template <RestrictionMapFamily Family>
[[nodiscard]] double planted_bytes(const PlantedOptions& o, Index columns) {
  const double n = static_cast<double>(o.nodes), edges = n * o.degree / 2;
  const double node = sizeof(std::int32_t) * static_cast<double>(2 + o.splits) + sizeof(Index);
  return n * (node + static_cast<double>(columns) * (sizeof(double) + sizeof(std::int32_t))) +
         edges * static_cast<double>(2 * (sizeof(Edge) + 8 * sizeof(std::int32_t)) +
                                     2 * sizeof(double) * Family::map_size);
}

/// Checks the options, and that a task fits into memory.
///
/// \param readable  columns from which the maps can be read
/// \tparam Size     length of a node's vector
/// \throws std::invalid_argument  naming the option, its value and the limit
template <RestrictionMapFamily Family, int Size = Family::stalk_dimension>
void check_planted(const PlantedOptions& o, Index readable) {
  validate(o, Size);
  const Index shown = o.hidden_columns == 0 ? readable : o.hidden_columns;
  require_memory("nodes", o.nodes, planted_bytes<Family>(o, shown + Size));
}

/// The task of a sheaf with given vectors and labels.
///
/// \param readable  n × p values, from which the maps can be read
/// \tparam Size     length of a node's vector: D, or, where D = 1, any
template <RestrictionMapFamily Family, int Size>
[[nodiscard]] PlantedTask<Family> planted_task(std::string_view name, const PlantedOptions& o,
                                               CellularSheaf<Family> sheaf, LabelledVectors<Size> nodes,
                                               std::vector<double> readable,
                                               std::vector<double> concentration = {}) {
  PlantedTask<Family> task{{}, std::move(sheaf), std::move(concentration)};
  Dataset& data = task.data;
  data.name = name;
  data.graph = task.sheaf.graph();
  data.class_count = static_cast<Index>(planted_directions<Size>(o.classes).size());
  data.labels = std::move(nodes.labels);

  Index p = static_cast<Index>(readable.size()) / o.nodes;
  hide_columns(readable, p, o);
  const Stream stream = generator_stream(o.seed, GeneratorPart::noise);
  std::vector<double> features;
  features.reserve(nodes.vectors.size() * static_cast<std::size_t>(p + Size));
  for (std::size_t u = 0; u < nodes.vectors.size(); ++u) {
    const auto row = readable.begin() + static_cast<Index>(u) * p;
    features.insert(features.end(), row, row + p);
    double noise[Size];
    fill_normals<Size, double>(noise, stream, static_cast<std::uint32_t>(u));
    for (int i = 0; i < Size; ++i) features.push_back(nodes.vectors[u](i) + o.noise * noise[i]);
  }
  data.features = NodeFeatures::from_dense(features, o.nodes, p + Size);
  data.splits = make_splits(data.labels, data.class_count, o.splits, {}, o.seed);
  return task;
}

/// The task of a sheaf whose labels follow from transported sums.
template <RestrictionMapFamily Family, int Size = Family::stalk_dimension>
[[nodiscard]] PlantedTask<Family> planted_task(std::string_view name, const PlantedOptions& o,
                                               CellularSheaf<Family> sheaf, std::vector<double> readable,
                                               std::vector<double> concentration = {}) {
  LabelledVectors<Size> nodes = vectors_of_sums<Size, Family>(o, sheaf);
  return planted_task(name, o, std::move(sheaf), std::move(nodes), std::move(readable), std::move(concentration));
}

}  // namespace detail

}  // namespace sheafnn
