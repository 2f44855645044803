/// \file
/// The kinds of restriction maps that the tests' independent references know, and the kind of a family.
#pragma once

#include "sheafnn/sheaf/families.hpp"

namespace test {

enum class MapKind { fixed, diagonal, rotation, dense };

template <class Family>
inline constexpr MapKind kind_of = MapKind::dense;
template <int D>
inline constexpr MapKind kind_of<sheafnn::Identity<D>> = MapKind::fixed;
template <int D>
inline constexpr MapKind kind_of<sheafnn::Diagonal<D>> = MapKind::diagonal;
template <int D>
inline constexpr MapKind kind_of<sheafnn::SpecialOrthogonal<D>> = MapKind::rotation;

}  // namespace test
