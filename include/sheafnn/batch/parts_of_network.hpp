/// \file
/// PartsOfNetwork: what the parts of every BatchNetwork have in common.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "sheafnn/batch/common_arrays.hpp"
#include "sheafnn/batch/output.hpp"
#include "sheafnn/core/config.hpp"

namespace sheafnn::batch::detail {

/// Neither copied nor moved: recordings hold addresses of its arrays.
///
/// \tparam CommonType  CommonArrays, or derived from it
template <class Executor, class S, class CommonType>
struct PartsOfNetwork {
  using Common = CommonType;

  /// Unchecked: the size of the batch.
  template <class Model>
  PartsOfNetwork(const Model& model, std::shared_ptr<Common> shared, const BatchSize& size)
      : common(std::move(shared)), batch(size), parameter_count(model.parameters().size()) {}
  PartsOfNetwork(const PartsOfNetwork&) = delete;
  PartsOfNetwork& operator=(const PartsOfNetwork&) = delete;

  [[nodiscard]] const Run* runs() const noexcept { return common->runs.data(); }
  /// KL of all distributions, or empty, and how many the KL term is the mean over.
  [[nodiscard]] const ColumnTree<Executor, S>& kl_sums() const noexcept { return kl_tree; }
  [[nodiscard]] Index pairs() const noexcept { return kl_count; }

  /// Part of a launch: from partial sums to the gradients of all runs.
  [[nodiscard]] Teams<SumGradients<S>> partial_sums() const {
    return sum_gradients(sums, batch.runs, view, ranges.data());
  }

  std::shared_ptr<Common> common;
  BatchSize batch;
  Index parameter_count;
  PartialSums sums;
  std::optional<BatchOutput<Executor, S>> output;
  Index kl_count = 0;               ///< distributions of a run
  ColumnTree<Executor, S> kl_tree;  ///< empty of models that do not sample
  Array<Executor, S> x_bar;         ///< the derivative of X_l
  Array<Executor, S> arena;
  Array<Executor, PartialSum> ranges;
  ParameterView<S> view;

 protected:
  /// `count` distributions of a run have a KL term.
  void count_kl(Executor& executor, Index count) {
    kl_count = count;
    kl_tree = ColumnTree<Executor, S>(executor, batch.runs, count, 1);
  }
  /// After all layers have reserved their partial sums.
  void end(Executor& executor) {
    arena = Array<Executor, S>(executor, "partial sums", batch.trains() ? batch.runs * sums.arena() : 0);
    ranges = Array<Executor, PartialSum>(executor, "partial sums", sums.ranges());
    view = {common->parameters.data(), common->gradient.data(), parameter_count, arena.data(), sums.arena()};
  }
};

}  // namespace sheafnn::batch::detail
