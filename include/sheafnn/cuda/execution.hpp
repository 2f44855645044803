/// \file
/// What executors run: kernels, sums over lanes, and dense products. HostExecutor runs them on the host, DeviceExecutor on a
/// CUDA device; everything else in this room is a template over the executor.
///
/// A kernel is a named functor without state of its own: pointers, strides and `operator()(item, group)`, which writes
/// what belongs to one item (an entry, a node, an edge, …) of one group (a training, or one posterior sample of it). A
/// team kernel sums over lanes: `part(item, group, lane, sums)` gives a lane's contribution to `outputs` sums, and
/// `finish(item, group, sums)` takes the totals. No item reads what another item of the same launch writes, so that the
/// order of execution does not matter and results are the same on every run. Kernels that do not touch each other's
/// results may share a launch: on small graphs starting one takes longer than running it.
#pragma once

#include "sheafnn/core/config.hpp"

namespace sheafnn::cuda {

/// Largest number of lanes of a team: a warp.
inline constexpr int most_lanes = 32;

/// Lanes for a loop of `count` steps: the least power of two that covers it, 8 … 32.
[[nodiscard]] constexpr int team_lanes(Index count) noexcept { return count <= 8 ? 8 : count <= 16 ? 16 : 32; }

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
  int lanes = most_lanes;  ///< a power of two
  Kernel kernel;
};
template <class Kernel>
Teams(Index, Index, int, Kernel) -> Teams<Kernel>;

}  // namespace sheafnn::cuda
