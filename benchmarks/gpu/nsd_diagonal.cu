#include "gpu/model.hpp"

namespace benchmarks {

const GpuModel nsd_diagonal = prepare<sheafnn::Nsd<sheafnn::Diagonal<3>>>;

}  // namespace benchmarks
