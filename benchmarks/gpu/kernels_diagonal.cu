#include "gpu/kernels.hpp"

namespace benchmarks {

const MeasureFamily diagonal_kernels = measure_family<sheafnn::Diagonal<3>>;

}  // namespace benchmarks
