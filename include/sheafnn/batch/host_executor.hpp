/// \file
/// HostExecutor: runs kernels one item after another on the host (see execution.hpp).
///
/// The reference for DeviceExecutor: the same functors, sums of lanes in the same order, without a GPU. It is not a
/// fast way to train on the CPU; sheafnn::train is.
///
/// Unchecked: sizes, and pointers to memory of the executor; the engine knows them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sheafnn/batch/execution.hpp"

namespace sheafnn::batch {

/// Executor on the host, with the interface of DeviceExecutor.
class HostExecutor : public SingleLaunches<HostExecutor> {
 public:
  /// The order of items and groups; results do not depend on it.
  enum class Order { forward, backward };

  explicit HostExecutor(Order order = Order::forward) : order_(order) {}

  /// Memory for `bytes` bytes. \throws std::bad_alloc
  [[nodiscard]] void* allocate(std::string_view, std::size_t bytes) {
    return ::operator new (bytes, std::align_val_t{64});
  }
  void release(void* memory) noexcept { ::operator delete (memory, std::align_val_t{64}); }

  template <class T>
  void upload(const T* from, Index count, T* to) {
    std::copy_n(from, count, to);
  }
  /// \throws std::logic_error  within record(), where nothing runs
  template <class T>
  void download(const T* from, Index count, T* to) {
    if (recording_) throw std::logic_error("download: a recording has no results to read");
    std::copy_n(from, count, to);
  }
  /// to[0 … count) = 0. Part of a recording, as launches and products are.
  template <class T>
  void zero(T* to, Index count) {
    run([=] { std::fill_n(to, count, T{}); });
  }

  /// One launch of all parts, Items or Teams.
  template <class... Parts>
  void launch_together(const Parts&... parts) {
    run([=, order = order_] {
      if (order == Order::forward) {
        (run_part(order, parts), ...);
      } else {
        int unused = 0;
        static_cast<void>(((run_part(order, parts), unused) = ...));  // from the last to the first
      }
    });
  }

  template <class S>
  void multiply(const Product<S>& p) {
    run([=] {
      for (Index batch = 0; batch < p.batches; ++batch) {
        const S* a = p.a.data + batch * p.a.batch_stride;
        const S* b = p.b.data + batch * p.b.batch_stride;
        S* c = p.c + batch * p.c_batch_stride;
        for (Index i = 0; i < p.rows; ++i) {
          for (Index j = 0; j < p.columns; ++j) {
            S sum = p.add ? c[i * p.c_row_stride + j] : S(0);
            for (Index k = 0; k < p.inner; ++k) {
              sum += (p.a.transposed ? a[k * p.a.row_stride + i] : a[i * p.a.row_stride + k]) *
                     (p.b.transposed ? b[j * p.b.row_stride + k] : b[k * p.b.row_stride + j]);
            }
            c[i * p.c_row_stride + j] = sum;
          }
        }
      }
    });
  }

  /// Recorded pieces of work take turns, launch by launch: they must not touch each other's results.
  template <class First, class Second>
  void side_by_side(const First& first, const Second& second) {
    const std::size_t begin = recorded_.size();
    first();
    const std::size_t middle = recorded_.size();
    second();
    if (recording_) take_turns(begin, middle);
  }

  /// Runs `work`: here all is done in the order of the caller.
  template <class Work>
  void in_order_of(void*, const Work& work) {
    work();
  }

  /// Records the launches and products of `work` instead of running them; replay() runs them, any number of times.
  template <class Work>
  void record(const Work& work) {
    recorded_.clear();
    recording_ = true;
    try {
      work();
    } catch (...) {
      recording_ = false;
      forget();
      throw;
    }
    recording_ = false;
  }
  /// Drops the recording.
  void forget() noexcept { recorded_.clear(); }
  void replay() {
    for (const Action& action : recorded_) action.call(action.functor.data());
  }
  void synchronise() {}

 private:
  /// What was recorded: a copy of a functor, and how to call it.
  struct Action {
    void (*call)(const void* functor);
    std::vector<std::byte> functor;
  };
  /// Alternates the launches recorded from `begin` on and from `middle` on. The two sequences begin together; in the order
  /// backward they end together.
  void take_turns(std::size_t begin, std::size_t middle) {
    const auto split = recorded_.begin() + static_cast<std::ptrdiff_t>(middle);
    std::vector<Action> one(recorded_.begin() + static_cast<std::ptrdiff_t>(begin), split);
    std::vector<Action> other(split, recorded_.end());
    recorded_.resize(begin);
    std::size_t i = 0, j = 0;
    while (i < one.size() || j < other.size()) {
      const bool turn = order_ == Order::forward ? i <= j : one.size() - i > other.size() - j;
      const bool first = j == other.size() || (i < one.size() && turn);
      recorded_.push_back(first ? one[i++] : other[j++]);
    }
  }
  template <class Functor>
  void run(const Functor& functor) {
    static_assert(std::is_trivially_copyable_v<Functor> && alignof(Functor) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    run(&functor, sizeof functor, [](const void* f) { (*static_cast<const Functor*>(f))(); });
  }
  void run(const void* functor, std::size_t size, void (*call)(const void*)) {
    if (recording_) {
      const std::byte* first = static_cast<const std::byte*>(functor);
      recorded_.push_back({call, {first, first + size}});
    } else {
      call(functor);
    }
  }

  template <class Kernel>
  static void run_part(Order order, const Items<Kernel>& part) {
    const Index count = part.items * part.groups;
    for (Index i = 0; i < count; ++i) {
      const Index place = order == Order::forward ? i : count - 1 - i;
      detail::run_at(part.kernel, detail::place_of(part.kernel, place % part.items, place / part.items));
    }
  }
  template <class Kernel>
  static void run_part(Order order, const Teams<Kernel>& part) {
    using S = typename Kernel::Scalar;
    const int teams = detail::teams_of(part.kernel);
    S numbers[max_lanes][Kernel::outputs];  // of each team of a bundle
    const Index count = part.items * part.groups / teams;
    for (Index i = 0; i < count; ++i) {
      const Index bundle = order == Order::forward ? i : count - 1 - i;
      const auto place = [&](int team) {
        const Index item = bundle * teams + team;
        return detail::place_of(part.kernel, item % part.items, item / part.items);
      };
      for (int team = 0; team < teams; ++team) {
        const auto at = place(team);
        sum_lanes(part, numbers[team], [&](int lane, S* sums) { detail::part_at(part.kernel, at, lane, sums); });
        detail::finish_at(part.kernel, at, numbers[team]);
      }
      if constexpr (Teams<Kernel>::exchanges) {
        for (int team = 0; team < teams; ++team) {
          const auto at = place(team);
          S totals[Kernel::outputs];
          sum_lanes(part, totals, [&](int lane, S* sums) {
            for (int other = lane; other < teams; other += part.lanes) {
              part.kernel.part_of(at, other, numbers[other], sums);
            }
          });
          part.kernel.end(at, totals);
        }
      }
    }
  }
  /// Calls add(lane, sums) for each lane of a team, and adds the sums of all lanes.
  template <class Kernel, class S, class Add>
  static void sum_lanes(const Teams<Kernel>& part, S* totals, const Add& add) {
    S lane_sums[max_lanes][Kernel::outputs];
    for (int lane = 0; lane < part.lanes; ++lane) {
      std::fill_n(lane_sums[lane], Kernel::outputs, S(0));
      add(lane, lane_sums[lane]);
    }
    for (int half = part.lanes / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) {
        for (int k = 0; k < Kernel::outputs; ++k) lane_sums[lane][k] += lane_sums[lane + half][k];
      }
    }
    std::copy_n(lane_sums[0], Kernel::outputs, totals);
  }

  Order order_ = Order::forward;
  bool recording_ = false;
  std::vector<Action> recorded_;
};

}  // namespace sheafnn::batch
