// What programs without models for CUDA devices are linked with.
#include "models/device_registry.hpp"

namespace programs {

bool has_device_models() { return false; }

const DeviceModelEntry& find_device_model(std::string_view /*model*/, std::string_view /*maps*/,
                                          int /*stalk_dimension*/) {
  sheafnn::throw_invalid_argument("--device", "cuda", "this program was built without CUDA");
}

}  // namespace programs
