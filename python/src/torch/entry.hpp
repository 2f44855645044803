/// \file
/// torch_entry(): what sheafnn.torch has of a model. The two networks of any model of the library. If the model learns maps per
/// incident pair, of a family that the user chooses, also the single layers.
#pragma once

#include <memory>
#include <sheafnn/bsnn/options.hpp>
#include <string_view>
#include <type_traits>

#include "diffusion_pass.hpp"
#include "learner_pass.hpp"
#include "network_pass.hpp"

namespace python {

/// \throws std::invalid_argument  an option that it does not have, or out of range; a layer that identity maps do not have
template <class Bayesian, class Deterministic>
[[nodiscard]] std::shared_ptr<const Architecture> make_of(const Setting& setting) {
  if (setting.kind == Bayesian::kind) return std::make_shared<NetworkArchitecture<Bayesian>>(setting);
  if (setting.kind == Deterministic::kind) return std::make_shared<NetworkArchitecture<Deterministic>>(setting);
  using Family = typename Deterministic::Family;
  if constexpr (std::is_same_v<typename Deterministic::Options, sheafnn::ModelOptions> &&
                !programs::reads_given_sheaf<Deterministic>) {
    using S = typename Deterministic::Scalar;
    if (setting.kind == diffusion_kind) return std::make_shared<DiffusionArchitecture<Family, S>>(setting);
    if constexpr (sheafnn::sheaf::is_learned<Family>) {
      if (setting.kind == learner_kind) return std::make_shared<LearnerArchitecture<Deterministic>>(setting);
    }
  }
  sheafnn::throw_invalid_argument("kind", setting.kind,
                                  sheafnn::detail::concat(Family::name, " maps have no such layer"));
}

/// \param maps  what find_model() calls the maps
template <class Bayesian, class Deterministic>
[[nodiscard]] constexpr TorchEntry torch_entry(std::string_view maps) {
  return entry_of<Bayesian, Deterministic>(maps, make_of<Bayesian, Deterministic>);
}

}  // namespace python
