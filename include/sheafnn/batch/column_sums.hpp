/// \file
/// Sums of values per node, pair, … in double precision: losses, KL terms, and what an evaluation reports.
/// Kernels add up rows until only a few are left; the kernel that needs the sums adds up these rows.
#pragma once

#include <type_traits>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Rows whose sum is the result; the rows of two runs lie `stride` values apart.
struct PartialRows {
  const double* rows = nullptr;
  Index count = 0, stride = 0;

  /// Adds what one lane of a team of max_lanes reads of each of the `Width` columns.
  template <int Width>
  SHEAFNN_HD void add(Index run, int lane, double* sums) const {
    SHEAFNN_UNROLL_FOUR for (Index k = lane; k < count; k += max_lanes) {
      const double* row = rows + run * stride + k * Width;
      SHEAFNN_UNROLL for (int column = 0; column < Width; ++column) sums[column] += row[column];
    }
  }
};

/// Adds up `width` columns of values in double precision, 256 rows to one: a team, lanes over rows, per item (row of the
/// result, column). Applied repeatedly until few rows are left.
template <class T>
struct ColumnSums {
  using Scalar = double;
  static constexpr Index chunk = 256;
  static constexpr int outputs = 1;
  const T* in;
  Index rows;
  Divisor width;
  Index in_run;
  double* out;
  Index out_run;

  SHEAFNN_HD void part(Index item, Index run, int lane, double* sums) const {
    const Index first = item / width * chunk, end = first + chunk < rows ? first + chunk : rows;
    const T* column = in + run * in_run + item % width;
    SHEAFNN_UNROLL_FOUR for (Index row = first + lane; row < end; row += max_lanes) {
      sums[0] += static_cast<double>(column[row * width]);
    }
  }
  SHEAFNN_HD void finish(Index item, Index run, const double* sums) const { out[run * out_run + item] = sums[0]; }
};

/// A tree of ColumnSums: `rows` × `width` values per run become at most max_rows rows.
template <class Executor, class T>
class ColumnTree {
 public:
  static constexpr Index max_rows = 512;

  ColumnTree() = default;
  ColumnTree(Executor& executor, Index runs, Index rows, Index width)
      : rows_(rows), width_(width), runs_(runs), stride_(shrunk(rows) * width) {
    for (Array<Executor, double>& level : level_)
      level = Array<Executor, double>(executor, "sums", runs * stride_);
  }

  /// \param values  rows × width per run
  /// \param stay    the values do not change while partial() is read, so that few of them need no copy
  void run(Executor& executor, const T* values, bool stay) {
    if constexpr (std::is_same_v<T, double>) {
      if (stay && rows_ <= max_rows) {
        partial_ = {values, rows_, rows_ * width_};
        return;
      }
    }
    executor.launch_together(begin(values));
    finish(executor);
  }

  /// The first launch of run() alone; finish() must follow.
  [[nodiscard]] Teams<ColumnSums<T>> begin(const T* values) {
    return {shrunk(rows_) * width_,
            runs_,
            max_lanes,
            {values, rows_, width_, rows_ * width_, level_[0].data(), stride_}};
  }
  void finish(Executor& executor) {
    Index rows = shrunk(rows_);
    int from = 0;
    while (rows > max_rows) {
      const Index next = shrunk(rows);
      executor.launch_teams(next * width_, runs_, max_lanes,
                            ColumnSums<double>{level_[from].data(), rows, width_, stride_, level_[1 - from].data(),
                                               stride_});
      from = 1 - from;
      rows = next;
    }
    partial_ = {level_[from].data(), rows, stride_};
  }

  /// The result of run(); empty before.
  [[nodiscard]] const PartialRows& partial() const noexcept { return partial_; }

 private:
  [[nodiscard]] static Index shrunk(Index rows) noexcept {
    return (rows + ColumnSums<T>::chunk - 1) / ColumnSums<T>::chunk;
  }

  Index rows_ = 0, width_ = 0, runs_ = 0, stride_ = 0;
  Array<Executor, double> level_[2];
  PartialRows partial_;
};

}  // namespace sheafnn::batch::detail
