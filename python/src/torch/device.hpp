/// \file
/// Layers and networks of sheafnn.torch on CUDA devices, in a shared library of their own. What nvcc makes of Eigen must not
/// meet what the C++ compiler makes of it. A build without it has no_device.cpp in its place.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pass.hpp"

#define SHEAFNN_TORCH_DEVICE __attribute__((visibility("default")))

namespace python {

/// What computes there: "cuda", "host" in tests, or nothing.
[[nodiscard]] SHEAFNN_TORCH_DEVICE std::string_view device_kind();
/// The networks that this build has, as checkpoints name them.
[[nodiscard]] SHEAFNN_TORCH_DEVICE std::vector<std::string> device_networks();
/// \param setting  of a device
/// \throws std::invalid_argument  not in this build, an option that devices do not have, or out of range
/// \throws std::runtime_error     the device cannot be used
[[nodiscard]] SHEAFNN_TORCH_DEVICE std::shared_ptr<const Architecture> make_device_architecture(
    const Setting& setting);

}  // namespace python
