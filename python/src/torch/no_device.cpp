/// \file
/// In the place of the library for CUDA devices, in builds without it. sheafnn.torch has refused their tensors before.
#include <stdexcept>

#include "device.hpp"

namespace python {

std::string_view device_kind() { return ""; }

std::vector<std::string> device_networks() { return {}; }

std::shared_ptr<const Architecture> make_device_architecture(const Setting&) {
  throw std::logic_error("this build has no code for CUDA devices");
}

}  // namespace python
