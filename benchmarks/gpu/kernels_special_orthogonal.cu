#include "gpu/kernels.hpp"

namespace benchmarks {

const MeasureFamily special_orthogonal_kernels = measure_family<sheafnn::SpecialOrthogonal<3>>;

}  // namespace benchmarks
