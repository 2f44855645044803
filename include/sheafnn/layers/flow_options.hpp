/// \file
/// The flow of a continuous-time sheaf network: its right-hand side, and how it is integrated from t = 0 to T.
/// Source: math: "Continuous-time diffusion" (3.31), (3.32).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"

namespace sheafnn::layers {

/// Memory for what backward passes read of the stages of a flow, by default: 64 MiB.
inline constexpr std::size_t flow_stage_memory = std::size_t{64} << 20;

/// Which parts the right-hand side has.
struct DiffusionFieldOptions {
  bool left = true;        ///< A, mixing stalk coordinates
  bool right = true;       ///< B, mixing channels
  bool activation = true;  ///< ELU
  /// ELU(−Δ …), as published code has it, instead of −ELU(Δ …): which of the two signs ELU bounds.
  bool negate_inside = false;
};

/// How a flow is integrated.
enum class FlowMethod {
  dormand_prince,  ///< order 5, with steps chosen by the error estimate of order 4 (Boost.Odeint)
  runge_kutta,     ///< the classical method of order 4, equal steps
  euler            ///< order 1, equal steps
};
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(FlowMethod) { return std::array{"dormand-prince", "runge-kutta", "euler"}; }

/// What a flow throws whose steps do not reach X(T).
class FlowError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A Dormand–Prince step of size h is accepted if every value x of the features has a small estimated error. It is at most
/// absolute_tolerance + relative_tolerance · (|x| + h |dx/dt|), both taken at the beginning of the step.
struct FlowIntegration {
  FlowMethod method = FlowMethod::dormand_prince;
  double time = 1;                   ///< T
  double absolute_tolerance = 1e-3;  ///< Dormand–Prince
  double relative_tolerance = 1e-3;  ///< Dormand–Prince; not both 0
  double first_step = 0.25;  ///< Dormand–Prince: size of the first step to be tried; T if that is smaller
  Index max_steps = 1000;    ///< Dormand–Prince: steps that may be tried, accepted or not
  Index fixed_steps = 8;     ///< of the other methods

  /// Size of a step of the other methods.
  [[nodiscard]] double equal_step() const noexcept { return time / static_cast<double>(fixed_steps); }
  /// Dormand–Prince: does a step of size h from time t end the flow? After a step that ends just before T, another step would be
  /// useless. Takes any numbers.
  [[nodiscard]] bool ends(double t, double h) const noexcept { return h >= 0.999 * (time - t); }
  /// The absolute tolerance, but not 0: the error of a value that is and stays 0 would be 0/0.
  template <class S>
  [[nodiscard]] S absolute() const noexcept {
    return std::max(static_cast<S>(absolute_tolerance), std::numeric_limits<S>::min());
  }
  friend bool operator==(const FlowIntegration&, const FlowIntegration&) = default;
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// Declares the options of structs that have the members of FlowIntegration: see core/option.hpp.
template <class Visit, class... Options>
void for_each_flow_option(const Visit& visit, Options&... options) {
  using Range = OptionRange;
  visit({"time", "time at which the flow ends", Range::above(0)}, options.time...);
  visit({.key = "method",
         .summary = "how the flow is integrated: in steps that tolerances choose (dormand-prince), or in a fixed "
                    "number of equal steps",
         .flag = "--flow-method"},
        options.method...);
  visit({"absolute_tolerance", "largest absolute error of a step of dormand-prince", Range::at_least(0)},
        options.absolute_tolerance...);
  visit({"relative_tolerance", "largest error of a step of dormand-prince, relative to the features",
         Range::at_least(0)},
        options.relative_tolerance...);
  visit({"first_step", "first step that dormand-prince tries", Range::above(0)}, options.first_step...);
  visit({"max_steps", "largest number of steps that dormand-prince tries", Range::between(1, 1'000'000)},
        options.max_steps...);
  visit({"fixed_steps", "number of steps of runge-kutta and euler", Range::between(1, 1'000'000)},
        options.fixed_steps...);
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Declares the options: see core/option.hpp. Takes any options.
template <class Visit, OptionsOf<FlowIntegration>... Options>
void for_each_option(const Visit& visit, Options&... options) {
  detail::for_each_flow_option(visit, options...);
}

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const FlowIntegration& options) {
  check_ranges(options);
  require(options.absolute_tolerance > 0 || options.relative_tolerance > 0, "absolute_tolerance",
          options.absolute_tolerance, "must be positive where relative_tolerance is 0");
}

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// The error of a flow that is at time t when max_steps steps have been tried. \param h  the next step
template <class S>
[[nodiscard]] FlowError too_many_steps(const FlowIntegration& options, double t, Index accepted, Index rejected,
                                       S h) {
  return FlowError(concat("the flow to time ", options.time, " needs more than max_steps = ", options.max_steps,
                          " steps. It is at ", t, " after ", accepted, " accepted and ", rejected,
                          " rejected steps; the next step would be ", h, ". absolute_tolerance is ",
                          options.absolute_tolerance, ", relative_tolerance ", options.relative_tolerance));
}

/// The options, if they fit numbers of type S.
///
/// \throws std::invalid_argument  an option out of range, as such or in S
template <class S>
[[nodiscard]] const FlowIntegration& checked_for(const FlowIntegration& options) {
  validate(options);
  const std::pair<std::string_view, double> numbers[] = {{"time", options.time},
                                                         {"first_step", options.first_step},
                                                         {"absolute_tolerance", options.absolute_tolerance},
                                                         {"relative_tolerance", options.relative_tolerance}};
  for (const auto& [name, value] : numbers) {
    require(value <= static_cast<double>(std::numeric_limits<S>::max()), name, value,
            "must be finite in the model's scalar type");
  }
  return options;
}

}  // namespace sheafnn::detail

namespace sheafnn {

using layers::FlowMethod;

}  // namespace sheafnn
