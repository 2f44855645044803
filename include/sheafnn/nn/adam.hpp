/// \file
/// Adam (Kingma, Ba 2015) with L2 weight decay added to the gradient, one decay for each parameter group.
#pragma once

#include <cmath>
#include <cstdint>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/core/parallel.hpp"

namespace sheafnn {

/// Moments of every parameter, and the number of steps taken.
template <class S>
struct Adam {
  double learning_rate = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  Index step_count = 0;
  Buffer<S> first_moment;
  Buffer<S> second_moment;

  Adam() = default;
  Adam(Index parameters, double rate) : learning_rate(rate), first_moment(parameters), second_moment(parameters) {}

  /// Starts the next step; call update() for every range of parameters afterwards.
  void begin_step() noexcept { ++step_count; }

  /// Updates parameters [begin, end) of `value` by their gradient plus weight_decay · value.
  void update(int threads, Index begin, Index end, double weight_decay, const S* gradient, S* value) {
    const double t = static_cast<double>(step_count);
    const S rate = static_cast<S>(learning_rate / (1 - std::pow(beta1, t)));
    const S root_scale = static_cast<S>(1 / std::sqrt(1 - std::pow(beta2, t)));
    const S decay = static_cast<S>(weight_decay), eps = static_cast<S>(epsilon);
    const S keep1 = static_cast<S>(beta1), keep2 = static_cast<S>(beta2);
    const S take1 = static_cast<S>(1 - beta1), take2 = static_cast<S>(1 - beta2);
    S* m = first_moment.data();
    S* v = second_moment.data();
    parallel_for(threads, end - begin, 16384, [=](Index from, Index to) {
      for_tiles<S>(begin + from, begin + to, [=]<class T>(Index i) {
        using std::sqrt;
        const T g = load<T>(gradient + i) + T(decay) * load<T>(value + i);
        const T first = T(keep1) * load<T>(m + i) + T(take1) * g;
        const T second = T(keep2) * load<T>(v + i) + T(take2) * g * g;
        store(m + i, first);
        store(v + i, second);
        store(value + i, load<T>(value + i) - T(rate) * first / (sqrt(second) * T(root_scale) + T(eps)));
      });
    });
  }
};

}  // namespace sheafnn
