/// \file
/// Sparse node features and the networks' first layer, y = x Wᵀ + b, for a batch of runs.
///
/// Features are stored by node (forward) and by column (weight gradient). The entries of long rows and of columns are cut
/// into segments, so that no thread spends long on one of them.
#pragma once

#include <algorithm>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/bsnn/seen_features.hpp"
#include "sheafnn/bsnn/type_options.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/graph/feature_treatment.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/graph/graph_of.hpp"

namespace sheafnn::batch::detail {

/// What the model does to features before it reads them.
///
/// \throws std::invalid_argument  features that do not fit the model or the graph, or a graph that is a part of a larger one
template <class Model>
[[nodiscard]] FeaturePlan fitting_plan(const Model& model, const GraphOf<Model>& graph,
                                       const NodeFeatures& features) {
  require(sheafnn::detail::part_of(graph) == nullptr, "graph", "a part of a larger one",
          "the batch engine exchanges no rows with other parts: it needs a whole graph");
  sheafnn::detail::refuse_types(model.options(), "the batch engine, on the CPU or a device, has no types");
  return sheafnn::detail::plan_of(model.options(), graph, features);
}

/// How many features of the graph's arcs a model reads.
///
/// \throws std::invalid_argument  the arcs have another number of features
template <class Model>
[[nodiscard]] Index arc_features_of(const Model& model, const Graph& graph) {
  const Index count = model.options().edge_features;
  require(count == 0 || graph.arc_feature_count() == count, "arc features of the graph", graph.arc_feature_count(),
          sheafnn::detail::concat("the sheaf learner reads ", count));
  return count;
}

/// The arrays of InputFeatures as kernels see them.
template <class S>
struct InputView {
  Index rows, columns, entries, segments;
  const Index* row_offset;                 ///< rows + 1
  const std::int32_t* column;              ///< by node
  const S* value;                          ///< by node
  const Index* column_entry;               ///< by column: index of the entry in the order by node
  const std::int32_t* column_row;          ///< by column: its node
  const Index* segment_offset;             ///< segments + 1, into the order by column
  const Index* column_segment_offset;      ///< columns + 1, into the segments
  Index row_segments;                      ///< of long rows
  const Index* row_segment_entry;          ///< row_segments: first entry
  const Index* row_segment_end;            ///< row_segments: past the last entry
  const std::int32_t* row_segment_offset;  ///< rows + 1, into the row segments; short rows have no segments

  /// A row with more entries is summed in segments.
  static constexpr Index long_row = 32;
};

/// Features of a graph, in the memory of an executor.
template <class Executor, class S>
class InputFeatures {
 public:
  /// Largest number of entries in a segment of a column, and of a long row. It is small where there are few entries in all,
  /// and enough threads.
  [[nodiscard]] static Index column_segment(Index entries) noexcept {
    return entries < 100'000 ? 8 : entries < 1'000'000 ? 32 : 256;
  }
  [[nodiscard]] static Index row_segment(Index entries) noexcept { return entries < 100'000 ? 8 : 32; }

  InputFeatures(Executor& executor, const NodeFeatures& features)
      : rows_(features.rows()),
        columns_(features.columns()),
        row_offset_(executor, "features", features.offsets()),
        column_(executor, "features", features.column_of()) {
    sheafnn::detail::require_finite_as<S>(features);
    const std::vector<S> values(features.values().begin(), features.values().end());
    value_ = Array<Executor, S>(executor, "features", values);
    std::vector<Index> offset(static_cast<std::size_t>(columns_) + 1);
    for (const std::int32_t j : features.column_of()) ++offset[static_cast<std::size_t>(j) + 1];
    for (std::size_t j = 1; j < offset.size(); ++j) offset[j] += offset[j - 1];
    std::vector<Index> next = offset, entry(values.size());
    std::vector<std::int32_t> row(values.size());
    for (Index u = 0; u < rows_; ++u) {
      for (Index k = features.offsets()[static_cast<std::size_t>(u)];
           k < features.offsets()[static_cast<std::size_t>(u) + 1]; ++k) {
        const std::size_t j = static_cast<std::size_t>(features.column_of()[static_cast<std::size_t>(k)]);
        const std::size_t index = static_cast<std::size_t>(next[j]++);
        entry[index] = k;
        row[index] = static_cast<std::int32_t>(u);
      }
    }
    const Index segment = column_segment(features.entries()), piece = row_segment(features.entries());
    std::vector<Index> segments = {0}, of_column = {0};
    for (std::size_t j = 0; j + 1 < offset.size(); ++j) {
      for (Index k = offset[j]; k < offset[j + 1]; k += segment) {
        segments.push_back(std::min(k + segment, offset[j + 1]));
      }
      of_column.push_back(static_cast<Index>(segments.size()) - 1);
    }
    std::vector<Index> row_entry, row_end;
    std::vector<std::int32_t> of_row = {0};
    for (std::size_t u = 0; u < static_cast<std::size_t>(rows_); ++u) {
      const Index begin = features.offsets()[u], end = features.offsets()[u + 1];
      for (Index k = begin; end - begin > InputView<S>::long_row && k < end; k += piece) {
        row_entry.push_back(k);
        row_end.push_back(std::min(k + piece, end));
      }
      of_row.push_back(static_cast<std::int32_t>(row_entry.size()));
    }
    row_segment_entry_ = Array<Executor, Index>(executor, "features", row_entry);
    row_segment_end_ = Array<Executor, Index>(executor, "features", row_end);
    row_segment_offset_ = Array<Executor, std::int32_t>(executor, "features", of_row);
    column_entry_ = Array<Executor, Index>(executor, "features", entry);
    column_row_ = Array<Executor, std::int32_t>(executor, "features", row);
    segment_offset_ = Array<Executor, Index>(executor, "features", segments);
    column_segment_offset_ = Array<Executor, Index>(executor, "features", of_column);
  }

  [[nodiscard]] InputView<S> view() const noexcept {
    return {rows_,
            columns_,
            value_.size(),
            segment_offset_.size() - 1,
            row_offset_.data(),
            column_.data(),
            value_.data(),
            column_entry_.data(),
            column_row_.data(),
            segment_offset_.data(),
            column_segment_offset_.data(),
            row_segment_entry_.size(),
            row_segment_entry_.data(),
            row_segment_end_.data(),
            row_segment_offset_.data()};
  }

 private:
  Index rows_, columns_;
  Array<Executor, Index> row_offset_;
  Array<Executor, std::int32_t> column_;
  Array<Executor, S> value_;
  Array<Executor, Index> column_entry_;
  Array<Executor, std::int32_t> column_row_;
  Array<Executor, Index> segment_offset_, column_segment_offset_, row_segment_entry_, row_segment_end_;
  Array<Executor, std::int32_t> row_segment_offset_;
};

/// Stored features after dropout; item: a Philox block of entries, group: run.
template <class S>
struct DropEntries {
  const Run* runs;
  const S* value;
  Index entries;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const ElementDropout<S> dropout(runs[run].stream(Purpose::input_dropout), runs[run].input_dropout);
    S* to = out + run * entries;
    dropout.for_block(item, entries, value, [=](Index entry, S kept) { to[entry] = kept; });
  }
};

/// Σ over entries [first, last) of a node: value × weight row, at one output.
template <class S>
[[nodiscard]] SHEAFNN_HD SHEAFNN_INLINE S sum_entries(const InputView<S>& input, const S* values, const S* weight,
                                                      Index width, Index first, Index last) {
  S sum = S(0);
  SHEAFNN_UNROLL_FOUR for (Index k = first; k < last; ++k) sum += values[k] * weight[input.column[k] * width];
  return sum;
}

/// Partial sums of the weight gradient, over one segment of a column: item (segment, c), group: run.
template <class S>
struct SegmentProducts {
  InputView<S> input;
  const S* value;   ///< entries by node, dropout applied
  Index value_run;  ///< 0: the same entries for all runs
  const S* out_bar;
  Divisor width;
  S* partial;  ///< segments × width per run

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index segment = item / width, c = item % width;
    const S* values = value + run * value_run;
    const S* bar = out_bar + run * input.rows * width + c;
    S sum = S(0);
    const Index end = input.segment_offset[segment + 1];
    SHEAFNN_UNROLL_FOUR for (Index k = input.segment_offset[segment]; k < end; ++k) {
      sum += values[input.column_entry[k]] * bar[input.column_row[k] * width];
    }
    partial[run * input.segments * width + item] = sum;
  }
};

/// The weight gradient: item (column, c), group: run.
template <class S>
struct SegmentSums {
  InputView<S> input;
  const S* partial;
  Divisor width;
  S* weight_bar;
  Index parameter_stride;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index column = item / width, c = item % width;
    const S* in = partial + run * input.segments * width + c;
    S sum = S(0);
    const Index end = input.column_segment_offset[column + 1];
    SHEAFNN_UNROLL_FOUR for (Index s = input.column_segment_offset[column]; s < end; ++s) { sum += in[s * width]; }
    weight_bar[run * parameter_stride + item] = sum;
  }
};

}  // namespace sheafnn::batch::detail
