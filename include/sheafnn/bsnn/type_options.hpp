/// \file
/// Checks of options with types of edges and nodes. Source: math: "Types of nodes and edges".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::detail {

/// \throws std::invalid_argument  a name that is empty, or there twice
SHEAFNN_NOINLINE inline void check_type_names(std::string_view option, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
    require(!names[i].empty() && std::find(names.begin(), before, names[i]) == before, option,
            concat('\'', names[i], '\''), "types need names that differ");
  }
}

/// Checks names of types and the dimensions of their stalks.
///
/// \param D  largest stalk dimension
/// \throws std::invalid_argument  naming the option
template <class Options>
SHEAFNN_NOINLINE void check_types(const Options& options, int D) {
  check_type_names("edge_types", options.edge_types);
  check_type_names("node_types", options.node_types);
  const auto check = [&](std::string_view name, const std::vector<Index>& dimensions, std::string_view types,
                         std::size_t count) {
    require(dimensions.size() == count, name, dimensions.size(),
            concat("expected one for each of the ", count, " ", types));
    for (const Index d : dimensions) require_between(name, d, 1, D);
  };
  check("stalks", options.stalks, "node_types", options.node_types.size());
  if (!options.edge_stalks.empty())
    check("edge_stalks", options.edge_stalks, "edge_types", options.edge_types.size());
}

/// Does a stalk have a dimension other than D? Takes any options.
template <class Options>
[[nodiscard]] bool has_own_stalks(const Options& options, int D) {
  if constexpr (requires { options.edge_stalks; }) {
    const auto own = [&](Index d) { return d != D; };
    return std::any_of(options.stalks.begin(), options.stalks.end(), own) ||
           std::any_of(options.edge_stalks.begin(), options.edge_stalks.end(), own);
  } else {
    return false;
  }
}

/// Refuses what networks with stalks of their own dimensions do not have. Unchecked: options.layer and
/// options.sheaf_activation are resolved, or the activation has its default.
///
/// \param entries  do all entries of the maps, or of their diagonals, come from the chart one by one?
/// \throws std::invalid_argument  naming the option
template <class Options>
SHEAFNN_NOINLINE void check_own_stalks(const Options& options, bool entries, std::string_view family) {
  const std::string_view name = options.stalks.empty() ? "edge_stalks" : "stalks";
  const auto refuse = [&](std::string_view why) {
    throw_invalid_argument(name, "a dimension below the stalk dimension", why);
  };
  if (!entries) {
    refuse(concat("blocks of ", family, " maps are no such maps: use diagonal or general linear maps"));
  }
  using Form = std::remove_cvref_t<decltype(*options.layer)>;
  if (*options.layer != Form::diffusion)
    refuse(concat("layers of the form ", to_string(*options.layer), " have none"));
  if (options.layer_norm) refuse("layer_norm would count absent coordinates");
  using Normalisation = std::remove_cvref_t<decltype(options.normalisation)>;
  // Its derivative at a block D_u of constant rank would need the directions of the null space.
  if (options.normalisation == Normalisation::block)
    refuse("blocks D_u have no full rank: use normalisation augmented");
  using Activation = std::remove_cvref_t<decltype(*options.sheaf_activation)>;
  const auto activation = options.sheaf_activation.value_or(Activation::tanh);
  if (activation == Activation::attention || activation == Activation::exponential) {
    refuse(concat("with the sheaf activation ", to_string(activation),
                  ", entries of a map depend on absent entries"));
  }
}

/// Refuses networks with types where they cannot run. Takes any options.
///
/// \throws std::invalid_argument  naming the option
template <class Options>
void refuse_types(const Options& options, std::string_view why) {
  if constexpr (requires { options.edge_types; }) {
    require(options.edge_types.size() <= 1, "edge_types", options.edge_types.size(), why);
    require(options.stalks.empty(), "stalks", options.stalks.size(), why);
    require(options.edge_stalks.empty(), "edge_stalks", options.edge_stalks.size(), why);
  }
}

}  // namespace sheafnn::detail
