/// \file
/// Kernels of NetworkOperator: parameters and gradients from and to arrays of the caller, the record of its run, the KL term.
///
/// Unchecked: sizes of arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "sheafnn/batch/column_sums.hpp"
#include "sheafnn/batch/divisor.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::batch::detail {

/// A parameter in the user-visible shape (out × in), and where it lies among all of them.
template <class S>
struct VisibleParameter {
  S* visible = nullptr;
  Index offset = 0, size = 0;
  Divisor columns = 1;  ///< in
  Index rows = 0;       ///< out; 0: not transposed

  VisibleParameter() = default;
  VisibleParameter(S* values, const layers::ParameterInfo& info)
      : visible(values), offset(info.offset), size(info.size) {
    if (!info.transposed) return;
    rows = info.shape.front();
    columns = info.size / rows;
  }
  /// Where a number of `visible` is stored.
  [[nodiscard]] SHEAFNN_HD Index stored(Index item) const noexcept {
    return offset + (rows > 0 ? item % columns * rows + item / columns : item);
  }
};

/// Copies parameters between arrays of the caller and `all`. item: element of a parameter; group: parameter.
template <class S>
struct CopyParameters {
  static constexpr Index most = 16;  ///< parameters of a launch, which takes them by value
  VisibleParameter<S> parameters[most];
  S* all;
  bool out;  ///< to the caller

  SHEAFNN_HD void operator()(Index item, Index group) const {
    const VisibleParameter<S>& own = parameters[group];
    if (item >= own.size) return;
    S &visible = own.visible[item], &stored = all[own.stored(item)];
    if (out) {
      visible = stored;
    } else {
      stored = visible;
    }
  }
};
/// Enqueues the copies in as few launches as possible.
template <class Executor, class S>
void copy_parameters(Executor& executor, const std::vector<VisibleParameter<S>>& parameters, S* all, bool out) {
  for (std::size_t first = 0; first < parameters.size(); first += CopyParameters<S>::most) {
    CopyParameters<S> kernel{{}, all, out};
    const std::size_t last = std::min<std::size_t>(parameters.size(), first + CopyParameters<S>::most);
    Index largest = 0;
    for (std::size_t i = first; i < last; ++i) {
      kernel.parameters[i - first] = parameters[i];
      largest = std::max(largest, parameters[i].size);
    }
    executor.launch(largest, static_cast<Index>(last - first), kernel);
  }
}

/// Arrays of a caller: of the parameters that the next pass reads, and of gradients that are wanted.
template <class S>
class CallerArrays {
 public:
  explicit CallerArrays(const std::vector<layers::ParameterInfo>& info) : info_(info) {}

  /// Unchecked: the id.
  void set(layers::ParameterId id, const S* values) {
    given_.push_back({const_cast<S*>(values), info_[static_cast<std::size_t>(id)]});  // which is read only
  }
  void add_gradient(layers::ParameterId id, S* values) {
    wanted_.push_back({values, info_[static_cast<std::size_t>(id)]});
  }
  /// Enqueues the copies of the parameters to `all`, and forgets the arrays.
  template <class Executor>
  void load(Executor& executor, S* all) {
    copy_parameters(executor, std::exchange(given_, {}), all, false);
  }
  /// Enqueues the copies of the gradients.
  template <class Executor>
  void store(Executor& executor, S* all) {
    copy_parameters(executor, std::exchange(wanted_, {}), all, true);
  }

 private:
  std::vector<layers::ParameterInfo> info_;
  std::vector<VisibleParameter<S>> given_, wanted_;
};

/// The record of a pass.
struct SetRun {
  Run run;
  Run* at;
  SHEAFNN_HD void operator()(Index, Index) const { *at = run; }
};
/// λ of a backward pass. \tparam S  of the number
template <class S>
struct SetKlWeight {
  const S* weight;  ///< null: 0
  Run* at;
  SHEAFNN_HD void operator()(Index, Index) const {
    at->kl_weight = weight != nullptr ? static_cast<double>(*weight) : 0.0;
  }
};

/// The KL term per incident pair, plus the layers' own. A team of max_lanes for one item.
template <class S>
struct KlTerm {
  using Scalar = double;
  static constexpr int outputs = 2;
  PartialRows of_pairs, of_layers;
  Index pairs;  ///< 2m
  S* out;

  SHEAFNN_HD void part(Index, Index run, int lane, double* sums) const {
    of_pairs.add<1>(run, lane, sums);
    of_layers.add<1>(run, lane, sums + 1);
  }
  SHEAFNN_HD void finish(Index, Index, const double* sums) const {
    *out = static_cast<S>((pairs > 0 ? sums[0] / static_cast<double>(pairs) : 0.0) + sums[1]);
  }
};

}  // namespace sheafnn::batch::detail
