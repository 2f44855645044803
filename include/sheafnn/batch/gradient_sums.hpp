/// \file
/// Sums over nodes and edges that make weight gradients, in two steps without atomics. Partial sums over chunks of rows go
/// into one arena. One kernel at the end of the backward pass adds them up for all parameters.
///
/// The partition into chunks depends on the sizes only, so that results are the same on every run.
#pragma once

#include <cmath>
#include <vector>

#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/kernels/layer_end.hpp"

namespace sheafnn::batch::detail {

/// Rows in chunks, at most 4096: of 64 rows or more, of 16 where there are few rows. So no thread has to wait for a long
/// chunk.
struct RowChunks {
  Index rows = 0;

  [[nodiscard]] SHEAFNN_HD Index size() const noexcept {
    return rows <= 4096 ? 16 : rows < 4096 * 64 ? 64 : (rows + 4095) / 4096;
  }
  [[nodiscard]] SHEAFNN_HD Index count() const noexcept { return (rows + size() - 1) / size(); }
  [[nodiscard]] SHEAFNN_HD Index begin(Index chunk) const noexcept { return chunk * size(); }
  [[nodiscard]] SHEAFNN_HD Index end(Index chunk) const noexcept {
    const Index last = (chunk + 1) * size();
    return last < rows ? last : rows;
  }
};

/// Where the partial sums of a range of parameters are: element k is
/// factor · Σ_chunk Σ_{i < inner} arena[offset + chunk · chunk_stride + k · inner + i].
struct PartialSum {
  Index parameter = 0;  ///< offset of the range in the gradient
  Index size = 0;       ///< of the range
  Index offset = 0, chunks = 0, chunk_stride = 0;
  Divisor inner = 1;
  bool tanh_slope = false;  ///< times 1 − tanh²(parameter): the gains 1 + tanh ε
  double factor = 1;
  Index first_item = 0;  ///< sum of the sizes of earlier ranges
};

/// The layout of the partial sums, and which parameters they belong to; one arena per run of a batch.
class PartialSums {
 public:
  /// Reserves `chunks` · `chunk_stride` values; ranges of parameters are then assigned to parts of them.
  ///
  /// \throws std::invalid_argument  2³¹ values or more
  Index reserve(Index chunks, Index chunk_stride) {
    require_countable("partial sums of a gradient", chunks * chunk_stride);
    const Index offset = arena_;
    arena_ += chunks * chunk_stride;
    return offset;
  }
  /// Parameters [parameter, parameter + size) are summed from `offset` on; see PartialSum.
  void assign(Index parameter, Index size, Index offset, Index chunks, Index chunk_stride, Index inner = 1,
              bool tanh_slope = false, double factor = 1) {
    ranges_.push_back({parameter, size, offset, chunks, chunk_stride, inner, tanh_slope, factor, items_});
    items_ += size;
  }
  [[nodiscard]] Index arena() const noexcept { return arena_; }
  [[nodiscard]] Index items() const noexcept { return items_; }
  [[nodiscard]] const std::vector<PartialSum>& ranges() const noexcept { return ranges_; }

 private:
  Index arena_ = 0, items_ = 0;
  std::vector<PartialSum> ranges_;
};

/// What the parts of a network need of its parameters and their gradients: arrays of the first run, and the
/// distance to the next run's.
template <class S>
struct ParameterView {
  const S* value = nullptr;
  S* gradient = nullptr;
  Index stride = 0;    ///< of values and gradients
  S* arena = nullptr;  ///< partial sums
  Index arena_stride = 0;
};

/// Adds up partial sums: a team of max_lanes per parameter that has them; group: run.
template <class S>
struct SumGradients {
  using Scalar = S;
  static constexpr int outputs = 1;
  ParameterView<S> parameters;
  const PartialSum* ranges;
  int range_count;

  struct Place {
    Index run = 0, number = 0;  ///< of the range
    PartialSum range;
  };
  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index run) const {
    const PartialSum& range = range_of(item);
    return {run, item - range.first_item, range};
  }

  SHEAFNN_HD void part(const Place& at, int lane, S* sums) const {
    const Divisor inner = at.range.inner;
    const S* in =
        parameters.arena + at.run * parameters.arena_stride + at.range.offset + at.number * at.range.inner;
    const Index count = at.range.chunks * inner, stride = at.range.chunk_stride;
    SHEAFNN_UNROLL_FOUR for (Index k = lane; k < count; k += max_lanes) {
      sums[0] += in[k / inner * stride + k % inner];
    }
  }
  SHEAFNN_HD void finish(const Place& at, const S* sums) const {
    using std::tanh;
    const Index index = at.run * parameters.stride + at.range.parameter + at.number;
    const S tangent = at.range.tanh_slope ? tanh(parameters.value[index]) : S(0);
    parameters.gradient[index] = sums[0] * (static_cast<S>(at.range.factor) * kernels::gain_slope(tangent));
  }

 private:
  [[nodiscard]] SHEAFNN_HD const PartialSum& range_of(Index item) const {
    int low = 0, high = range_count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (ranges[middle].first_item <= item ? low : high) = middle;
    }
    return ranges[low];
  }
};

/// The sums of all ranges, a part of a launch. \param ranges  the layout's, where kernels read them
template <class S>
[[nodiscard]] Teams<SumGradients<S>> sum_gradients(const PartialSums& layout, Index runs,
                                                   const ParameterView<S>& parameters, const PartialSum* ranges) {
  return {layout.items(), runs, max_lanes, {parameters, ranges, static_cast<int>(layout.ranges().size())}};
}

/// Partial sums of AᵀB, followed, if `ones`, by partial sums of 1ᵀB: item (chunk, i, j) is Σ_rows a_i b_j over a chunk.
/// A is rows × a_columns, B rows × b_columns, of one run each.
template <class S>
struct RowProducts {
  const S* a;
  Index a_columns, a_stride, a_run;
  const S* b;
  Divisor b_columns;
  Index b_stride, b_run;
  RowChunks chunks;
  bool ones;
  S* out;
  Index out_run;
  bool add = false;  ///< to the existing values
  Divisor chunk_stride = (a_columns + (ones ? 1 : 0)) * b_columns;

  [[nodiscard]] Index items() const noexcept { return chunks.count() * chunk_stride; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / chunk_stride, k = item % chunk_stride;
    const Index i = k / b_columns, j = k % b_columns;
    const S* left = a + run * a_run + i;
    const S* right = b + run * b_run + j;
    const Index end = chunks.end(chunk);
    S sum = S(0);
    if (i == a_columns) {
      for (Index row = chunks.begin(chunk); row < end; ++row) sum += right[row * b_stride];
    } else {
      SHEAFNN_UNROLL_FOUR for (Index row = chunks.begin(chunk); row < end; ++row) {
        sum += left[row * a_stride] * right[row * b_stride];
      }
    }
    S& to = out[run * out_run + item];
    to = add ? to + sum : sum;
  }
};

/// Partial sums of Σ_u a_u[i, c] b_u[j, c] for nodes of d' × f features: item (chunk, i, j, c), or (chunk, i, c)
/// with i = j only when `diagonal`. SumGradients adds up the channels c.
template <class S>
struct CoordinateProducts {
  const S* a;
  const S* b;
  Index run_stride;  ///< of a and b
  Divisor coordinates, channels;
  RowChunks chunks;  ///< of nodes
  bool diagonal;
  S* out;
  Index out_run;
  bool add = false;  ///< to the existing values
  Divisor chunk_stride = (diagonal ? Index{1} : Index{coordinates}) * coordinates * channels;
  Index stride = channels;  ///< from one coordinate to the next

  [[nodiscard]] Index items() const noexcept { return chunks.count() * chunk_stride; }

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index chunk = item / chunk_stride, k = item % chunk_stride;
    const Index c = k % channels, pair = k / channels;
    const Index i = diagonal ? pair : pair / coordinates, j = pair % coordinates;
    const S* left = a + run * run_stride + i * stride + c;
    const S* right = b + run * run_stride + j * stride + c;
    const Index row = coordinates * stride, end = chunks.end(chunk);
    S sum = S(0);
    SHEAFNN_UNROLL_FOUR for (Index u = chunks.begin(chunk); u < end; ++u) sum += left[u * row] * right[u * row];
    S& to = out[run * out_run + item];
    to = add ? to + sum : sum;
  }
};

}  // namespace sheafnn::batch::detail
