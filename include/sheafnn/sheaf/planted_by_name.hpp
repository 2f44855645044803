/// \file
/// Planted tasks by name and stalk dimension, for programs that choose them at run time.
#pragma once

#include <string_view>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/sheaf/planted.hpp"
#include "sheafnn/sheaf/planted_geometric.hpp"
#include "sheafnn/sheaf/planted_options.hpp"

namespace sheafnn {

/// Generates a task and calls `use` with it, a PlantedTask, whose result it returns. `use` must return the same type for
/// every family and dimension.
///
/// \param name             one of planted_names
/// \param stalk_dimension  D, 2 … 5, for planted-diagonal 1 … 5; planted-geometric has 2, planted-signed 1, whatever it is
/// \throws std::invalid_argument  another name or dimension, or as the generator
template <class Use>
auto with_planted_task(std::string_view name, Index stalk_dimension, const PlantedOptions& options,
                       const Use& use) {
  require_planted(name);
  if (name == "planted-geometric") return use(planted_geometric(options));
  if (name == "planted-signed") return use(planted_signed(options));
  const auto of_dimension = [&](auto dimension) {
    constexpr int D = decltype(dimension)::value;
    if (name == "planted-frames") return use(planted_frames<D>(options));
    if (name == "planted-unreliable") return use(planted_unreliable<D>(options));
    if (name == "planted-diagonal") return use(planted_diagonal<D>(options));
    return use(planted_general_linear<D>(options));
  };
  if (name == "planted-diagonal" && stalk_dimension == 1) return use(planted_diagonal<1>(options));
  require_between("stalk_dimension", stalk_dimension, name == "planted-diagonal" ? 1 : 2, 5);
  if (stalk_dimension == 2) return of_dimension(std::integral_constant<int, 2>{});
  if (stalk_dimension == 3) return of_dimension(std::integral_constant<int, 3>{});
  if (stalk_dimension == 4) return of_dimension(std::integral_constant<int, 4>{});
  return of_dimension(std::integral_constant<int, 5>{});
}

}  // namespace sheafnn
