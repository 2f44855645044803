/// \file
/// Adam (Kingma, Ba 2015) with a weight decay and a learning rate for each parameter group.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::detail {

/// Adam's constants (math: "Optimiser").
struct AdamConstants {
  static constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;

  /// Factors of the two moments' means in step 1, 2, …: rate / (1 − β₁ᵗ) and 1 / √(1 − β₂ᵗ).
  [[nodiscard]] SHEAFNN_HD static double step_rate(double rate, double step) {
    using std::pow;
    return rate / (1 - pow(beta1, step));
  }
  [[nodiscard]] SHEAFNN_HD static double root_scale(double step) {
    using std::pow;
    using std::sqrt;
    return 1 / sqrt(1 - pow(beta2, step));
  }
};

/// One step for one parameter, or for a pack of parameters.
///
/// \param g           gradient, weight decay included
/// \param rate        AdamConstants::step_rate
/// \param root_scale  AdamConstants::root_scale
SHEAFNN_ANY_SIDE
template <class T>
SHEAFNN_HD SHEAFNN_INLINE void adam_step(const T& g, scalar_of_t<T> rate, scalar_of_t<T> root_scale, T& first,
                                         T& second, T& value) {
  using std::sqrt;
  using S = scalar_of_t<T>;
  using C = AdamConstants;
  first = T(S(C::beta1)) * first + T(S(1 - C::beta1)) * g;
  second = T(S(C::beta2)) * second + T(S(1 - C::beta2)) * g * g;
  value = value - T(rate) * first / (sqrt(second) * T(root_scale) + T(S(C::epsilon)));
}

/// A loop over parameters is cut in steps of this size.
inline constexpr Index adam_grain = 4096;

/// Rates that single precision can hold; 0: the sheaf learner has the rate of the other parameters.
///
/// \throws std::invalid_argument  others
inline void require_rates(double learning_rate, double sheaf_learning_rate) {
  constexpr double least = std::numeric_limits<float>::min();
  const auto check = [&](const char* name, double rate, const char* or_zero) {
    if (rate >= least && std::isfinite(rate)) return;
    throw_invalid_argument(name, rate, concat("must be finite and at least ", least, or_zero));
  };
  check("learning_rate", learning_rate, "");
  if (sheaf_learning_rate != 0) check("sheaf_learning_rate", sheaf_learning_rate, ", or 0");
}

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// How weight decay acts. As an L2 term, λ · value is added to the gradient. Decoupled from the gradient (AdamW; Loshchilov,
/// Hutter 2019), value −= rate · λ · value.
enum class WeightDecay : std::uint8_t { l2, decoupled };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(WeightDecay) { return std::array{"l2", "decoupled"}; }

/// Moments of every parameter, and the number of steps taken.
template <class S>
struct Adam {
  double learning_rate = 0.01;
  Index step_count = 0;
  Buffer<S> first_moment;
  Buffer<S> second_moment;
  double sheaf_learning_rate = 0;  ///< of the sheaf learner's weights; 0: learning_rate

  Adam() = default;
  /// \throws std::bad_alloc  as Buffer
  Adam(Index parameters, double rate) : learning_rate(rate), first_moment(parameters), second_moment(parameters) {}

  /// Starts the next step; call update() for every range of parameters afterwards.
  void begin_step() noexcept {
    const double t = static_cast<double>(++step_count);
    rate_ = static_cast<S>(detail::AdamConstants::step_rate(learning_rate, t));
    sheaf_rate_ = static_cast<S>(detail::AdamConstants::step_rate(group_rate(ParameterGroup::sheaf_learner), t));
    root_scale_ = static_cast<S>(detail::AdamConstants::root_scale(t));
  }

  /// One step for all parameters of a model.
  ///
  /// \param weight_decay, sheaf_decay  λ ≥ 0: sheaf_decay for the sheaf learner's weights, weight_decay for all others
  /// \returns whether the gradient and its square are finite
  /// \throws std::invalid_argument  sizes that differ, or a rate or decay out of range
  bool step(Execution execution, ParameterSet<S>& parameters, const Buffer<S>& gradient, double weight_decay = 0,
            double sheaf_decay = 0, WeightDecay kind = WeightDecay::l2);

  /// Updates parameters [begin, end) of `value`, all of one group, with their gradient and weight decay.
  /// Unchecked: the range, and that begin_step() came before; step() checks what it is given.
  ///
  /// \returns whether the gradient and its square are finite, and with them the second moment v. The product 0 · v is 0 for
  ///          finite v and not a number otherwise, and so is the sum
  bool update(Execution execution, Index begin, Index end, double weight_decay, const S* gradient, S* value,
              WeightDecay kind = WeightDecay::l2, ParameterGroup group = ParameterGroup::network);

 private:
  [[nodiscard]] double group_rate(ParameterGroup group) const noexcept {
    return group == ParameterGroup::sheaf_learner && sheaf_learning_rate > 0 ? sheaf_learning_rate : learning_rate;
  }

  S rate_ = 0, sheaf_rate_ = 0, root_scale_ = 0;  ///< of the step
};

template <class S>
bool Adam<S>::step(Execution execution, ParameterSet<S>& parameters, const Buffer<S>& gradient,
                   double weight_decay, double sheaf_decay, WeightDecay kind) {
  const Index size = parameters.size();
  const std::pair<const char*, Index> arrays[] = {{"size of the gradient", gradient.size()},
                                                  {"size of Adam's first_moment", first_moment.size()},
                                                  {"size of Adam's second_moment", second_moment.size()},
                                                  {"number of values", parameters.values().size()}};
  for (const auto& [name, numbers] : arrays) {  // the text only where it is needed: steps allocate nothing
    if (numbers != size) {
      throw_invalid_argument(name, numbers, detail::concat("must be the number of parameters, ", size));
    }
  }
  detail::require_rates(learning_rate, sheaf_learning_rate);
  for (const auto& [name, decay] :
       {std::pair{"weight_decay", weight_decay}, std::pair{"sheaf_decay", sheaf_decay}}) {
    require(decay >= 0 && std::isfinite(decay), name, decay, "must be finite and at least 0");
  }
  begin_step();
  bool finite = true;
  for (const ParameterInfo& info : parameters.info()) {
    const double decay = info.group == ParameterGroup::sheaf_learner ? sheaf_decay : weight_decay;
    finite &= update(execution, info.offset, info.offset + info.size, decay, gradient.data(),
                     parameters.values().data(), kind, info.group);
  }
  return finite;
}

template <class S>
bool Adam<S>::update(Execution execution, Index begin, Index end, double weight_decay, const S* gradient, S* value,
                     WeightDecay kind, ParameterGroup group) {
  assert(step_count > 0 && rate_ > 0);
  const S rate = group == ParameterGroup::sheaf_learner ? sheaf_rate_ : rate_, root_scale = root_scale_;
  const S decay = static_cast<S>(kind == WeightDecay::l2 ? weight_decay : 0.0);
  const S shrink = static_cast<S>(kind == WeightDecay::l2 ? 1.0 : 1.0 - group_rate(group) * weight_decay);
  S* m = first_moment.data();
  S* v = second_moment.data();
  std::atomic<bool> finite = true;
  parallel_for(execution, end - begin, detail::adam_grain, [=, &finite](Index from, Index to) {
    using P = Pack<S, row_lanes<S>>;
    P zeros = P(S(0));
    detail::for_narrowing_tiles<S>(begin + from, begin + to, [=, &zeros]<class T>(auto i) {
      T first = i.load(m + i), second = i.load(v + i), x = i.load(value + i);
      const T g = i.load(gradient + i);
      const T g_decayed = g + T(decay) * x;
      x = T(shrink) * x;
      detail::adam_step<T>(g_decayed, rate, root_scale, first, second, x);
      i.store(m + i, first);
      i.store(v + i, second);
      i.store(value + i, x);
      if constexpr (std::is_same_v<T, P>) {
        zeros += T(S(0)) * second;
      } else {
        zeros += P(reduce_add(T(S(0)) * second));
      }
    });
    if (reduce_add(zeros) != S(0)) finite = false;
  });
  return finite;
}

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::WeightDecay;

}  // namespace sheafnn
