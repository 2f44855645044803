#include "gpu/model.hpp"

namespace benchmarks {

const GpuModel bsnn_special_orthogonal = prepare<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>>;

}  // namespace benchmarks
