/// \file
/// Distributions of rotations with derivatives, over arrays of matrices, for sheafnn.torch.rotations.
#pragma once

#include <nanobind/nanobind.h>

namespace python {

void bind_torch_rotations(nanobind::module_& module);

}  // namespace python
