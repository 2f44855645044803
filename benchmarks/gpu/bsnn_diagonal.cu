#include "gpu/model.hpp"

namespace benchmarks {

const GpuModel bsnn_diagonal = prepare<sheafnn::Bsnn<sheafnn::Diagonal<3>>>;

}  // namespace benchmarks
