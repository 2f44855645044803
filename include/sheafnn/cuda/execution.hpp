/// \file
/// What executors run: kernels, sums over lanes, and dense products. HostExecutor runs them on the host, DeviceExecutor on a
/// CUDA device; everything else in this room is a template over the executor.
///
/// A kernel is a named functor without state of its own: pointers, strides and `operator()(item, group)`, which writes
/// what belongs to one item (an entry, a node, an edge, …) of one group (a training, or one posterior sample of it). A
/// team kernel sums over lanes: `part(item, group, lane, sums)` gives a lane's contribution to `outputs` sums, and
/// `finish(item, group, sums)` takes the totals. No item reads what another item of the same launch writes, so that the
/// order of execution does not matter and results are the same on every run.
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

/// Two kernels that do not touch each other's results, as one launch: on small graphs starting a kernel takes longer than
/// running it.
template <class A, class B>
class Both {
 public:
  Both(Index a_items, Index a_groups, const A& a, Index b_items, Index b_groups, const B& b)
      : a_(a), b_(b), a_items_(a_items), a_groups_(a_groups), b_items_(b_items), b_groups_(b_groups) {}

  [[nodiscard]] Index items() const noexcept { return a_items_ + b_items_; }
  [[nodiscard]] Index groups() const noexcept { return a_groups_ > b_groups_ ? a_groups_ : b_groups_; }

  SHEAFNN_HD void operator()(Index item, Index group) const {
    if (item < a_items_) {
      if (group < a_groups_) a_(item, group);
    } else {
      if (group < b_groups_) b_(item - a_items_, group);
    }
  }

 private:
  A a_;
  B b_;
  Index a_items_, a_groups_, b_items_, b_groups_;
};

template <class Executor, class A, class B>
void launch_both(Executor& executor, Index a_items, Index a_groups, const A& a, Index b_items, Index b_groups,
                 const B& b) {
  const Both<A, B> both(a_items, a_groups, a, b_items, b_groups, b);
  executor.launch(both.items(), both.groups(), both);
}

}  // namespace sheafnn::cuda
