/// \file
/// make_of(): the architecture that a setting asks for, out of what a model has.
#pragma once

#include <memory>
#include <sheafnn/bsnn/options.hpp>
#include <sheafnn/core/errors.hpp>
#include <type_traits>

#include "network_architecture.hpp"
#include "pass.hpp"

namespace python {

/// \tparam Place  has Network<Model>, Diffusion<Family, S> and Learner<Model>, the architectures of what computes there
/// \throws std::invalid_argument  an option that it does not have, or out of range; a layer that identity maps do not have
template <class Place, class Bayesian, class Deterministic>
[[nodiscard]] std::shared_ptr<const Architecture> make_of(const Setting& setting) {
  if (setting.kind == Bayesian::kind) return std::make_shared<typename Place::template Network<Bayesian>>(setting);
  if (setting.kind == Deterministic::kind)
    return std::make_shared<typename Place::template Network<Deterministic>>(setting);
  using Family = typename Deterministic::Family;
  if constexpr (std::is_same_v<typename Deterministic::Options, sheafnn::ModelOptions> &&
                !programs::reads_given_sheaf<Deterministic>) {
    using S = typename Deterministic::Scalar;
    if (setting.kind == diffusion_kind)
      return std::make_shared<typename Place::template Diffusion<Family, S>>(setting);
    if constexpr (sheafnn::sheaf::is_learned<Family>) {
      if (setting.kind == learner_kind)
        return std::make_shared<typename Place::template Learner<Deterministic>>(setting);
    }
  }
  sheafnn::throw_invalid_argument("kind", setting.kind,
                                  sheafnn::detail::concat(Family::name, " maps have no such layer"));
}

}  // namespace python
