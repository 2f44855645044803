/// \file
/// What a training shows, as dictionaries.
#pragma once

#include <nanobind/nanobind.h>

#include <sheafnn/bsnn/epoch_report.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <vector>

namespace python {

/// Figures of the best epoch.
[[nodiscard]] nanobind::dict figures_of(const sheafnn::TrainResult& result, sheafnn::Index parameters,
                                        bool interrupted);
/// One array for each quantity of the epochs.
[[nodiscard]] nanobind::dict history_of(const std::vector<sheafnn::EpochReport>& history);

}  // namespace python
