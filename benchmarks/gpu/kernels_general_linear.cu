#include "gpu/kernels.hpp"

namespace benchmarks {

const MeasureFamily general_linear_kernels = measure_family<sheafnn::GeneralLinear<3>>;

}  // namespace benchmarks
