#include "gpu/model.hpp"

namespace benchmarks {

const GpuModel nsd_special_orthogonal = prepare<sheafnn::Nsd<sheafnn::SpecialOrthogonal<3>>>;

}  // namespace benchmarks
