/// \file
/// DefaultPosterior: the posterior that Bsnn<Family> has: Cayley distributions of rotations, normal distributions
/// of the coordinates of other families.
#pragma once

#include "sheafnn/posterior/cayley.hpp"
#include "sheafnn/posterior/conformal.hpp"
#include "sheafnn/posterior/normal.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace sheafnn {

namespace detail {

/// The default posterior of a family, as `type`.
template <class Family>
struct DefaultPosterior {
  using type = NormalPosterior<Family>;
};
template <int D>
struct DefaultPosterior<SpecialOrthogonal<D>> {
  using type = CayleyPosterior<SpecialOrthogonal<D>>;
};
template <int D>
struct DefaultPosterior<Orthogonal<D>> {
  using type = CayleyPosterior<Orthogonal<D>>;
};
template <int D>
struct DefaultPosterior<Conformal<D>> {
  using type = ConformalPosterior<Conformal<D>>;
};

}  // namespace detail

/// Specialise detail::DefaultPosterior, or name another posterior in SheafModel<Family, Posterior>.
template <class Family>
using DefaultPosterior = typename detail::DefaultPosterior<Family>::type;

}  // namespace sheafnn
