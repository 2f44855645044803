/// \file
/// Options of planted tasks (planted_task.hpp), and the tasks' names.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// The names of all planted tasks.
inline constexpr std::array<std::string_view, 6> planted_names = {"planted-frames",         "planted-geometric",
                                                                  "planted-unreliable",     "planted-diagonal",
                                                                  "planted-general-linear", "planted-signed"};

/// Takes any text.
[[nodiscard]] inline bool is_planted(std::string_view name) {
  return std::find(planted_names.begin(), planted_names.end(), name) != planted_names.end();
}

/// \throws std::invalid_argument  no planted task has this name: names the argument and all tasks
inline void require_planted(std::string_view name, std::string_view argument = "planted task") {
  if (is_planted(name)) return;
  std::string choice;
  for (std::size_t i = 0; i < planted_names.size(); ++i) {
    choice += i == 0 ? "choose " : i + 1 < planted_names.size() ? ", " : " or ";
    choice += planted_names[i];
  }
  throw_invalid_argument(argument, name, choice);
}

/// What a planted task is like. Where only some tasks use an option, it says so.
struct PlantedOptions {
  Index nodes = 2000;  ///< n, 12 … 2³¹ − 1, and at least 3 C
  Index classes = 0;   ///< C, 2 … D + 1, for D = 2 to 100, for signs 2 … 6; 0: D + 1, for signs 6
  double degree = 8;   ///< mean degree, 1 … n/4
  /// Standard deviation, in [0, 4], of a frame's parameters; logarithms of a diagonal's entries have half of it;
  /// frames, unreliable, general-linear, diagonal.
  double spread = 1;
  double curvature = 0;  ///< c, in [0, 4], of transports that are not flat; frames
  /// Probability, in [0, 1], that a node's vector is the direction of a random neighbour's class instead of its own class's,
  /// for labels that are drawn. 0: vectors are drawn, and labels follow from transported sums. For frames.
  double neighbour_share = 0;
  double noise = 0;  ///< standard deviation, in [0, 10], of what is added to entries of x_u in the features
  /// Columns, 0 … 1000, of a random smooth map through which the features show the frames; 0: the frames' own columns.
  Index hidden_columns = 0;
  double least_concentration = 0.2;  ///< least κ_e, from 0 to the largest one; unreliable
  double most_concentration = 0.99;  ///< largest κ_e, in [0, 1); unreliable
  Index splits = 10;                 ///< stratified splits of 48/32/20, 0 … 1000
  std::uint64_t seed = 0;            ///< same options and seed, same task
};

namespace detail {

/// \throws std::invalid_argument  C other than 0, 2 … D + 1 and, for D = 2, to 100
inline void require_planted_classes(Index classes, Index stalk_dimension) {
  if (classes != 0) require_between("classes", classes, 2, stalk_dimension == 2 ? 100 : stalk_dimension + 1);
}

}  // namespace detail

/// Checks the ranges above for stalks of dimension D (for signs 5), which is not checked.
///
/// \throws std::invalid_argument  naming the option, its value and the limit
inline void validate(const PlantedOptions& o, Index stalk_dimension) {
  require_between("nodes", o.nodes, 12, 2147483647);
  detail::require_planted_classes(o.classes, stalk_dimension);
  require(o.nodes >= 3 * o.classes, "nodes", o.nodes,
          detail::concat("must be at least three per class, ", 3 * o.classes));
  require(o.degree >= 1 && o.degree <= static_cast<double>(o.nodes) / 4, "degree", o.degree,
          detail::concat("must be between 1 and a quarter of the nodes, ", static_cast<double>(o.nodes) / 4));
  require(static_cast<double>(o.nodes) * o.degree / 2 < 1073741824.0, "degree", o.degree,
          "a graph must have less than 2^30 edges");
  require_between("spread", o.spread, 0, 4);
  require_between("curvature", o.curvature, 0, 4);
  require_between("neighbour_share", o.neighbour_share, 0, 1);
  require_between("noise", o.noise, 0, 10);
  require_between("hidden_columns", o.hidden_columns, 0, 1000);
  require(o.most_concentration >= 0 && o.most_concentration < 1, "most_concentration", o.most_concentration,
          "must be in [0, 1)");
  require_between("least_concentration", o.least_concentration, 0, o.most_concentration);
  require_between("splits", o.splits, 0, 1000);
}

}  // namespace sheafnn
