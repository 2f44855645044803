/// \file
/// Sums of numbers per node, pair, … in double precision: losses, KL terms, and what an evaluation reports.
/// Kernels add up rows until few are left; whoever needs the sums adds up those.
#pragma once

#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/execution.hpp"

namespace sheafnn::batch {

/// Rows that are left of a sum; those of a run lie `stride` numbers behind the last one's.
struct RowsLeft {
  const double* rows = nullptr;
  Index count = 0, stride = 0;

  /// Adds what a lane of a team of most_lanes finds in each of the `Width` columns, which are all there are.
  template <int Width>
  SHEAFNN_HD void add(Index run, int lane, double* sums) const {
    SHEAFNN_UNROLL_FOUR for (Index k = lane; k < count; k += most_lanes) {
      const double* row = rows + run * stride + k * Width;
      SHEAFNN_UNROLL for (int column = 0; column < Width; ++column) sums[column] += row[column];
    }
  }
};

/// Adds up `width` columns of values in double precision, 64 rows to one: item (row of the result, column). The
/// rows of a sum lie as far apart as there are results, so that neighbouring threads read neighbouring rows.
/// Applied again and again until few rows are left.
template <class T>
struct ColumnSums {
  static constexpr Index chunk = 64;
  const T* in;
  Index rows, width, in_run;
  double* out;
  Index out_run, out_rows;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index column = item % width;
    double sum = 0;
    for (Index row = item / width; row < rows; row += out_rows) {
      sum += static_cast<double>(in[run * in_run + row * width + column]);
    }
    out[run * out_run + item] = sum;
  }
};

/// A tree of ColumnSums: `rows` × `width` numbers per run become at most most_rows rows.
template <class Executor, class T>
class ColumnTree {
 public:
  static constexpr Index most_rows = 512;

  ColumnTree() = default;
  ColumnTree(Executor& executor, Index runs, Index rows, Index width)
      : rows_(rows), width_(width), runs_(runs), stride_(shrunk(rows) * width) {
    for (Array<Executor, double>& level : level_)
      level = Array<Executor, double>(executor, "sums", runs * stride_);
  }

  /// \param values  rows × width per run
  /// \param stay    the values stay as they are as long as left() is read: few of them need no sum
  void run(Executor& executor, const T* values, bool stay) {
    if constexpr (std::is_same_v<T, double>) {
      if (stay && rows_ <= most_rows) {
        left_ = {values, rows_, rows_ * width_};
        return;
      }
    }
    executor.launch_together(begin(values));
    finish(executor);
  }

  /// The first of the launches of run() by itself, to be followed by finish().
  [[nodiscard]] Items<ColumnSums<T>> begin(const T* values) {
    const Index rows = shrunk(rows_);
    return {rows * width_, runs_, {values, rows_, width_, rows_ * width_, level_[0].data(), stride_, rows}};
  }
  void finish(Executor& executor) {
    Index rows = shrunk(rows_);
    int from = 0;
    while (rows > most_rows) {
      const Index next = shrunk(rows);
      executor.launch(next * width_, runs_,
                      ColumnSums<double>{level_[from].data(), rows, width_, stride_, level_[1 - from].data(),
                                         stride_, next});
      from = 1 - from;
      rows = next;
    }
    left_ = {level_[from].data(), rows, stride_};
  }

  /// What is left after run(); nothing before.
  [[nodiscard]] const RowsLeft& left() const noexcept { return left_; }

 private:
  [[nodiscard]] static Index shrunk(Index rows) noexcept {
    return (rows + ColumnSums<T>::chunk - 1) / ColumnSums<T>::chunk;
  }

  Index rows_ = 0, width_ = 0, runs_ = 0, stride_ = 0;
  Array<Executor, double> level_[2];
  RowsLeft left_;
};

}  // namespace sheafnn::batch
