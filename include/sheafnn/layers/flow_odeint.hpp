/// \file
/// Arrays of features as states of Boost.Odeint, whose Dormand–Prince steps with error control FlowLayer takes. The
/// arithmetic runs on packs and on threads; results do not depend on their number. On a part of a graph, states belong
/// to its owned nodes. Norms are taken over all parts together, so all parts take the same steps.
#pragma once

#include <algorithm>
#include <array>
#include <boost/numeric/odeint/algebra/default_operations.hpp>
#include <boost/numeric/odeint/stepper/controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/runge_kutta_dopri5.hpp>
#include <boost/numeric/odeint/util/is_resizeable.hpp>
#include <boost/numeric/odeint/util/resize.hpp>
#include <boost/numeric/odeint/util/same_size.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/graph_part.hpp"

namespace sheafnn::detail {

/// A state, or its derivative: an array of its own type, for which Odeint's traits can be given.
template <class S>
struct FlowState : Buffer<S> {
  using Buffer<S>::Buffer;
};

/// What Odeint calls an algebra: operations on the values of states. Operations are called with packs.
template <class S>
struct FlowAlgebra {
  Execution execution = {};
  Index count = 0;            ///< size of a state: the first values of its array, for owned nodes
  GraphPart* part = nullptr;  ///< null: of a whole graph

  /// Shall operations wait until the right-hand side reads what they compute? It then runs them, with run_deferred(), for
  /// each group of nodes just before it reads their rows.
  bool defers = false;

  template <class Operation, class... In>
  void apply(FlowState<S>& out, Operation operation, const In&... in) {
    const auto range = [operation, to = out.data(), ... from = in.data()](Index begin, Index end) {
      for_tiles<S>(begin, end, [&]<class T>(auto i) {
        T value = i.load(to + i);
        operation(value, i.load(from + i)...);
        i.store(to + i, value);
      });
    };
    if (defers) {
      deferred_.set(range);
    } else {
      parallel_for(execution, count, 2048, range);
    }
  }
  /// Runs the waiting operation, if there is one, for elements [begin, end). Unchecked: the range.
  void run_deferred(Index begin, Index end) const { deferred_.run(begin, end); }
  void end_deferred() noexcept { deferred_ = {}; }
  // The functions for_each… of Odeint that the method calls.
  template <class A, class B, class C, class Operation>
  void for_each3(A& a, B& b, C& c, Operation operation) {
    apply(a, operation, b, c);
  }
  template <class A, class B, class C, class D, class Operation>
  void for_each4(A& a, B& b, C& c, D& d, Operation operation) {
    apply(a, operation, b, c, d);
  }
  template <class A, class B, class C, class D, class E, class Operation>
  void for_each5(A& a, B& b, C& c, D& d, E& e, Operation operation) {
    apply(a, operation, b, c, d, e);
  }
  template <class A, class B, class C, class D, class E, class F, class Operation>
  void for_each6(A& a, B& b, C& c, D& d, E& e, F& f, Operation operation) {
    apply(a, operation, b, c, d, e, f);
  }
  template <class A, class B, class C, class D, class E, class F, class G, class Operation>
  void for_each7(A& a, B& b, C& c, D& d, E& e, F& f, G& g, Operation operation) {
    apply(a, operation, b, c, d, e, f, g);
  }
  /// The largest absolute value, of all parts; infinity if a value is not finite.
  [[nodiscard]] S norm_inf(const FlowState<S>& x) const {
    constexpr Index grain = 4096, most = 64;
    const Index chunks = std::clamp<Index>(count / grain, 1, most);
    std::array<S, most> largest{};
    parallel_for(execution, chunks, 1, [&](Index from, Index to) {
      for (Index chunk = from; chunk < to; ++chunk) {
        largest[static_cast<std::size_t>(chunk)] =
            largest_of(x.data(), count * chunk / chunks, count * (chunk + 1) / chunks);
      }
    });
    S r = S(0);
    for (const S found : largest) r = larger(found, r);
    return part == nullptr ? r : static_cast<S>(part->largest(static_cast<double>(r)));
  }

 private:
  /// A function object of this size at most, in place: a pass allocates nothing.
  class Deferred {
   public:
    template <class F>
    void set(const F& f) {
      static_assert(sizeof(F) <= sizeof(storage_) && std::is_trivially_copyable_v<F>);
      std::memcpy(storage_, &f, sizeof(F));
      call_ = [](const std::byte* storage, Index begin, Index end) {
        (*std::launder(reinterpret_cast<const F*>(storage)))(begin, end);
      };
    }
    void run(Index begin, Index end) const {
      if (call_ != nullptr) call_(storage_, begin, end);
    }

   private:
    alignas(std::max_align_t) std::byte storage_[192];
    void (*call_)(const std::byte*, Index, Index) = nullptr;
  };
  Deferred deferred_;

  [[nodiscard]] static S largest_of(const S* x, Index begin, Index end) {
    using P = Pack<S, row_lanes<S>>;
    P wide = P(S(0)), finite = P(S(0));  // x − x is 0 where x is finite, and NaN elsewhere
    for (; begin + row_lanes<S> <= end; begin += row_lanes<S>) {
      const P value = load<P>(x + begin);
      wide = max(wide, abs(value));
      finite += value - value;
    }
    S lanes[row_lanes<S>], r = reduce_add(finite) == S(0) ? S(0) : std::numeric_limits<S>::infinity();
    store(lanes, wide);
    for (const S lane : lanes) r = larger(lane, r);
    for (; begin < end; ++begin) r = larger(std::abs(x[begin]), r);
    return r;
  }
  [[nodiscard]] static S larger(S value, S found) {
    return value <= found ? found : value > found ? value : std::numeric_limits<S>::infinity();
  }
};

/// Odeint's step with error control.
template <class S>
using DormandPrince = boost::numeric::odeint::runge_kutta_dopri5<FlowState<S>, S, FlowState<S>, S, FlowAlgebra<S>,
                                                                 boost::numeric::odeint::default_operations>;
template <class S>
using ControlledDormandPrince = boost::numeric::odeint::controlled_runge_kutta<DormandPrince<S>>;
template <class S>
using FlowErrorChecker =
    boost::numeric::odeint::default_error_checker<S, FlowAlgebra<S>, boost::numeric::odeint::default_operations>;

}  // namespace sheafnn::detail

namespace boost::numeric::odeint {

template <class S>
struct is_resizeable<sheafnn::detail::FlowState<S>> {
  using type = boost::true_type;
  static const bool value = true;
};
template <class S>
struct same_size_impl<sheafnn::detail::FlowState<S>, sheafnn::detail::FlowState<S>> {
  static bool same_size(const sheafnn::detail::FlowState<S>& a, const sheafnn::detail::FlowState<S>& b) {
    return a.size() == b.size();
  }
};
template <class S>
struct resize_impl<sheafnn::detail::FlowState<S>, sheafnn::detail::FlowState<S>> {
  static void resize(sheafnn::detail::FlowState<S>& a, const sheafnn::detail::FlowState<S>& b) {
    a.resize(b.size());
  }
};

}  // namespace boost::numeric::odeint
