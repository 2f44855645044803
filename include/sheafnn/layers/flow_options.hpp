/// \file
/// The flow of a continuous-time sheaf network: its right-hand side, and how it is integrated from t = 0 to T.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

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
/// Its texts, in the order of the enumeration.
inline constexpr std::array<std::string_view, 3> flow_method_names = {"dormand-prince", "runge-kutta", "euler"};
/// Its text.
[[nodiscard]] constexpr std::string_view to_string(FlowMethod method) {
  return flow_method_names[static_cast<std::size_t>(method)];
}

/// What a flow throws whose steps do not reach X(T).
class FlowError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A Dormand–Prince step of size h is accepted if the estimated error of every number x of the features is at most
/// absolute_tolerance + relative_tolerance · (|x| + h |dx/dt|), both taken at the beginning of the step.
struct FlowIntegration {
  FlowMethod method = FlowMethod::dormand_prince;
  double time = 1;                   ///< T > 0
  double absolute_tolerance = 1e-3;  ///< Dormand–Prince: ≥ 0
  double relative_tolerance = 1e-3;  ///< Dormand–Prince: ≥ 0; not both 0
  double first_step = 0.25;  ///< Dormand–Prince: size of the first step to be tried, > 0; T if that is smaller
  Index max_steps = 1000;    ///< Dormand–Prince: steps that may be tried, accepted or not, 1 … 10⁶
  Index fixed_steps = 8;     ///< of the other methods, 1 … 10⁶

  friend bool operator==(const FlowIntegration&, const FlowIntegration&) = default;
};

/// \throws std::invalid_argument  naming the option, its value and its limit
inline void validate(const FlowIntegration& options) {
  const auto positive = [](std::string_view name, double value) {
    require(value > 0 && std::isfinite(value), name, value, "must be positive and finite");
  };
  const auto tolerance = [](std::string_view name, double value) {
    require(value >= 0 && std::isfinite(value), name, value, "must be at least 0 and finite");
  };
  positive("time", options.time);
  tolerance("absolute_tolerance", options.absolute_tolerance);
  tolerance("relative_tolerance", options.relative_tolerance);
  require(options.absolute_tolerance > 0 || options.relative_tolerance > 0, "absolute_tolerance",
          options.absolute_tolerance, "must be positive where relative_tolerance is 0");
  positive("first_step", options.first_step);
  require_between("max_steps", options.max_steps, 1, 1000000);
  require_between("fixed_steps", options.fixed_steps, 1, 1000000);
}

}  // namespace sheafnn
