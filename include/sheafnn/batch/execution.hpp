/// \file
/// What executors run: kernels, sums over lanes, and dense products. HostExecutor runs them on the host,
/// DeviceExecutor on a CUDA device; everything else in this directory is a template over the executor.
///
/// A kernel is a named functor without state of its own: pointers, strides and `operator()(item, group)`, which
/// writes what belongs to one item (an entry, a node, an edge, …) of one group (a training, or one posterior
/// sample of it). A team kernel sums over lanes: `part(item, group, lane, sums)` gives a lane's contribution to
/// `outputs` sums, and `finish(item, group, sums)` takes the totals. No item reads what another item of the same
/// launch writes, so that the order of execution does not matter and results are the same on every run. Kernels
/// that do not touch each other's results may share a launch: on small graphs a launch takes longer than the kernel.
///
/// Unchecked: sizes, and pointers to memory of the executor; the engine knows them.
#pragma once

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

/// A small product as a team kernel: a team per entry of C, lanes over the inner dimension; group: batch.
template <class S>
struct SmallProduct {
  using Scalar = S;
  static constexpr int outputs = 1;
  Product<S> product;
  int lanes;

  /// One lane where the sum is short.
  explicit SmallProduct(const Product<S>& p) : product(p), lanes(p.inner <= 16 ? 1 : team_lanes(p.inner)) {}
  [[nodiscard]] Index items() const noexcept { return product.rows * product.columns; }

  SHEAFNN_HD void part(Index item, Index batch, int lane, S* sums) const {
    const Factor<S>&a = product.a, &b = product.b;
    const Index a_step = a.transposed ? a.row_stride : 1, b_step = b.transposed ? 1 : b.row_stride;
    const S* row = a.data + batch * a.batch_stride + item / product.columns * (a.transposed ? 1 : a.row_stride);
    const S* column = b.data + batch * b.batch_stride + item % product.columns * (b.transposed ? b.row_stride : 1);
    SHEAFNN_UNROLL_FOUR for (Index k = lane; k < product.inner; k += lanes) {
      sums[0] += row[k * a_step] * column[k * b_step];
    }
  }
  SHEAFNN_HD void finish(Index item, Index batch, const S* sums) const {
    const Index index = item / product.columns * product.c_row_stride + item % product.columns;
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

/// Part of a launch: a team kernel for all items and groups.
template <class Kernel>
struct Teams {
  Index items = 0, groups = 0;
  int lanes = max_lanes;  ///< a power of two
  Kernel kernel;
};
template <class Kernel>
Teams(Index, Index, int, Kernel) -> Teams<Kernel>;

/// Launches of one kernel, for executors with launch_together(parts…).
template <class Executor>
class SingleLaunches {
 public:
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
