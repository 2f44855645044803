/// \file
/// What samples say about nodes, as a dictionary of arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <sheafnn/uncertainty/sampling.hpp>

namespace python {

/// \param classes  C
[[nodiscard]] nanobind::dict prediction_of(const sheafnn::uncertainty::SampledPrediction& p, std::size_t classes);

}  // namespace python
