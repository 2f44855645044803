#include "gpu/model.hpp"

namespace benchmarks {

const GpuModel nsd_general_linear = prepare<sheafnn::Nsd<sheafnn::GeneralLinear<3>>>;

}  // namespace benchmarks
