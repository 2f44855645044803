/// \file
/// torch_entry(): what sheafnn.torch has of a model. The two networks of any model of the library. If the model learns maps per
/// incident pair, of a family that the user chooses, also the single layers.
#pragma once

#include <string_view>

#include "diffusion_pass.hpp"
#include "learner_pass.hpp"
#include "make_architecture.hpp"
#include "network_pass.hpp"

namespace python {

/// Where the CPU computes.
struct OnHost {
  template <class Model>
  using Network = NetworkArchitecture<Model>;
  template <class Family, class S>
  using Diffusion = HostDiffusionArchitecture<Family, S>;
  template <class Model>
  using Learner = HostLearnerArchitecture<Model>;
};

/// \param maps  what find_model() calls the maps
template <class Bayesian, class Deterministic>
[[nodiscard]] constexpr TorchEntry torch_entry(std::string_view maps) {
  return entry_of<Bayesian, Deterministic>(maps, make_of<OnHost, Bayesian, Deterministic>);
}

}  // namespace python
