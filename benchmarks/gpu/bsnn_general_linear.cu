#include "gpu/model.hpp"

namespace benchmarks {

const GpuModel bsnn_general_linear = prepare<sheafnn::Bsnn<sheafnn::GeneralLinear<3>>>;

}  // namespace benchmarks
