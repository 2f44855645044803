/// \file
/// What executors run: kernels, sums over lanes, and dense products. HostExecutor runs them on the host,
/// DeviceExecutor on a CUDA device; everything else in this directory is a template over the executor.
/// Unchecked in this directory: indices of items, runs, instances and lanes, and the sizes of the arrays of pointers and
/// views. BatchNetwork and BatchTrainer check their arguments.
///
/// A kernel is a named functor without state of its own: pointers, strides and `operator()(item, group)`. The operator
/// writes what belongs to one item (an entry, a node, an edge, …) of one group (a training, or one posterior
/// sample of it):
///
///     template <class S>
///     struct Scale {  // y = a x; item: element, group: run
///       S a;
///       const S* x;
///       S* y;
///       Index size;  // of a run
///       SHEAFNN_HD void operator()(Index i, Index run) const { y[run * size + i] = a * x[run * size + i]; }
///     };
///     executor.launch(size, runs, Scale<S>{a, x, y, size});
///
/// No item reads what another item of the same launch writes. So the order of execution does not matter and
/// results are the same on every run. Kernels that do not touch each other's results may share a launch: on small
/// graphs kernels are so short that each one saved counts. Kernels that sum over lanes: Teams; kernels with a
/// place(): detail::place_of().
///
/// Two pieces of work of which none reads or writes what the other one writes may run at the same time:
/// side_by_side(first, second). What comes before is done when they begin, and both are done when what comes after begins.
///
/// Unchecked: sizes, and pointers to memory of the executor; the engine knows them.
#pragma once

#include <type_traits>
#include <utility>

#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch {

/// Largest number of lanes of a team: a warp.
inline constexpr int max_lanes = 32;

/// One factor of a product: row-major; batch b begins at data + b · batch_stride.
template <class S>
struct Factor {
  const S* data = nullptr;
  Index row_stride = 0;
  Index batch_stride = 0;
  bool transposed = false;  ///< stored as its transpose
};

/// C = A B, or C += A B: `batches` products of rows × inner and inner × columns.
template <class S>
struct Product {
  Index rows = 0, columns = 0, inner = 0, batches = 1;
  Factor<S> a, b;
  S* c = nullptr;
  Index c_row_stride = 0, c_batch_stride = 0;
  bool add = false;
};

namespace detail {

/// Lanes for a loop of `count` steps: the smallest power of two that covers it, 8 … 32.
[[nodiscard]] constexpr int team_lanes(Index count) noexcept { return count <= 8 ? 8 : count <= 16 ? 16 : 32; }
/// Lanes for the draws of each of some distributions: a power of two up to max_lanes; one where the distributions alone are
/// enough threads.
[[nodiscard]] constexpr int lanes_of_draws(Index distributions, Index draws) noexcept {
  int lanes = 1;
  while (distributions < 100'000 && lanes < draws && lanes < max_lanes) lanes *= 2;
  return lanes;
}
/// k of lanes = 2^k.
[[nodiscard]] constexpr int exponent_of(int lanes) noexcept {
  int k = 0;
  while (1 << k < lanes) ++k;
  return k;
}

/// The place of an item whose kernel has no place() of its own.
struct ItemOfGroup {
  Index item = 0, group = 0;
};
/// A kernel may have `place(item, group)`, which reads no result of another kernel: indices of an item, and what
/// the arrays of the graph say. Its other functions then get the place instead of the item and the group. A device
/// finds the place while the kernel before still runs. Of kernels that are called with a place of their `shape`, or of the `shape` of
/// their `mixing` or `maps`, it is that.
template <class Kernel>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE auto place_of(const Kernel& kernel, Index item, Index group) {
  if constexpr (requires { kernel.place(item, group); }) {
    return kernel.place(item, group);
  } else if constexpr (requires { kernel(kernel.shape.place(item, group)); }) {
    return kernel.shape.place(item, group);
  } else if constexpr (requires { kernel(kernel.mixing.shape.place(item, group)); }) {
    return kernel.mixing.shape.place(item, group);
  } else if constexpr (requires { kernel(kernel.maps.shape.place(item, group)); }) {
    return kernel.maps.shape.place(item, group);
  } else {
    return ItemOfGroup{item, group};
  }
}
template <class Kernel>
using PlaceOf = decltype(place_of(std::declval<const Kernel&>(), Index{}, Index{}));

/// A kernel, or a team kernel's functions, at a place.
template <class Kernel, class Place>
SHEAFNN_HD SHEAFNN_INLINE void run_at(const Kernel& kernel, const Place& place) {
  if constexpr (std::is_same_v<Place, ItemOfGroup>) {
    kernel(place.item, place.group);
  } else {
    kernel(place);
  }
}
template <class Kernel, class Place, class S>
SHEAFNN_HD SHEAFNN_INLINE void part_at(const Kernel& kernel, const Place& place, int lane, S* sums) {
  if constexpr (std::is_same_v<Place, ItemOfGroup>) {
    kernel.part(place.item, place.group, lane, sums);
  } else {
    kernel.part(place, lane, sums);
  }
}
template <class Kernel, class Place, class S>
SHEAFNN_HD SHEAFNN_INLINE void finish_at(const Kernel& kernel, const Place& place, S* sums) {
  if constexpr (std::is_same_v<Place, ItemOfGroup>) {
    kernel.finish(place.item, place.group, sums);
  } else {
    kernel.finish(place, sums);
  }
}

/// Does a team kernel have a second sum, by a member `teams`? The teams of that many consecutive items are a bundle:
/// a power of two, and all their lanes are at most a warp. finish() then leaves `outputs` values in its sums.
/// part_of(place, team, numbers, sums) gives what the values of one team of the bundle add to `outputs` sums of
/// its own team. end(place, sums) takes the totals. Items are whole bundles, and the kernel has place().
template <class Kernel>
inline constexpr bool has_second_sum = requires(const Kernel& kernel) {
  kernel.teams;
};
/// Teams of a bundle; 1 without a second sum.
template <class Kernel>
[[nodiscard]] SHEAFNN_HD constexpr int teams_of(const Kernel& kernel) noexcept {
  if constexpr (has_second_sum<Kernel>) {
    return kernel.teams;
  } else {
    return 1;
  }
}

/// A small product as a team kernel: a team per entry of C, lanes over the inner dimension; group: batch.
template <class S>
struct SmallProduct {
  using Scalar = S;
  static constexpr int outputs = 1;
  Product<S> product;
  Divisor columns;
  int lanes;

  /// One lane where the sum is short.
  explicit SmallProduct(const Product<S>& p)
      : product(p), columns(p.columns), lanes(p.inner <= 16 ? 1 : team_lanes(p.inner)) {}
  [[nodiscard]] Index items() const noexcept { return product.rows * product.columns; }

  SHEAFNN_HD void part(Index item, Index batch, int lane, S* sums) const {
    const Factor<S>&a = product.a, &b = product.b;
    const Index a_step = a.transposed ? a.row_stride : 1, b_step = b.transposed ? 1 : b.row_stride;
    const S* row = a.data + batch * a.batch_stride + item / columns * (a.transposed ? 1 : a.row_stride);
    const S* column = b.data + batch * b.batch_stride + item % columns * (b.transposed ? b.row_stride : 1);
    const int inner = static_cast<int>(product.inner);  // of a small product
    SHEAFNN_UNROLL_FOUR for (int k = lane; k < inner; k += lanes) {
      sums[0] += row[k * a_step] * column[k * b_step];
    }
  }
  SHEAFNN_HD void finish(Index item, Index batch, const S* sums) const {
    const Index index = item / columns * product.c_row_stride + item % columns;
    S& c = product.c[batch * product.c_batch_stride + index];
    c = product.add ? c + sums[0] : sums[0];
  }
};

}  // namespace detail

/// Part of a launch: kernel(item, group) for all items and groups.
template <class Kernel>
struct Items {
  Index items = 0, groups = 0;
  Kernel kernel;
};
template <class Kernel>
Items(Index, Index, Kernel) -> Items<Kernel>;

/// Part of a launch: a team kernel for all items and groups. It sums over lanes: `part(item, group, lane, sums)`
/// gives a lane's contribution to `outputs` sums, and `finish(item, group, sums)` takes the totals.
template <class Kernel>
struct Teams {
  Index items = 0, groups = 0;
  int lanes = max_lanes;  ///< a power of two
  Kernel kernel;
  int exponent = detail::exponent_of(lanes);

  static constexpr bool exchanges = detail::has_second_sum<Kernel>;  ///< values between lanes, in both directions
};
template <class Kernel>
Teams(Index, Index, int, Kernel) -> Teams<Kernel>;

/// Launches of one kernel, for executors with launch_together(parts…).
template <class Executor>
class SingleLaunches {
 public:
  /// May a kernel with a second sum take the place of two launches? Results agree up to rounding.
  bool exchanges = true;

  /// kernel(item, group) for all items and groups.
  template <class Kernel>
  void launch(Index items, Index groups, const Kernel& kernel) {
    static_cast<Executor&>(*this).launch_together(Items{items, groups, kernel});
  }
  /// A team kernel with `lanes` lanes, a power of two, for all items and groups.
  template <class Kernel>
  void launch_teams(Index items, Index groups, int lanes, const Kernel& kernel) {
    static_cast<Executor&>(*this).launch_together(Teams{items, groups, lanes, kernel});
  }
};

}  // namespace sheafnn::batch
