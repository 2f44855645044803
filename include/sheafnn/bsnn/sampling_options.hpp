/// \file
/// SamplingOptions: how train_on_samples() draws neighbours (sampled_training.hpp).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/graph/neighbour_sample.hpp"

namespace sheafnn {

/// How train_on_samples() draws.
struct SamplingOptions {
  /// Number of neighbours that are drawn for a node at distance 0, 1, … of the targets; 0: all (validate_fan_outs()).
  std::vector<Index> fan_outs = {10, 10};
  Index steps = 0;      ///< of an epoch, at most; 0: as many as all training nodes need
  Index evaluated = 0;  ///< validation nodes to predict, and test nodes, at most, drawn once; 0: all
};

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<SamplingOptions>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  constexpr Index many = std::numeric_limits<std::int32_t>::max();
  visit({.key = "steps",
         .summary = "largest number of steps in an epoch",
         .range = Range::between(0, many, " (0: as many as all training nodes need)"),
         .since = "0.3"},
        options.steps...);
  visit({.key = "evaluated",
         .summary = "largest number of validation nodes, and of test nodes, to predict after an epoch",
         .range = Range::between(0, many, " (0: all)"),
         .since = "0.3"},
        options.evaluated...);
}

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const SamplingOptions& options) {
  validate_fan_outs(options.fan_outs);
  check_ranges(options);
}

}  // namespace sheafnn
