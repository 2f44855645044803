/// \file
/// EdgeLoss: Classification or Regression over pairs of nodes. The K logits of a pair are the scores of a PairHead. Two
/// classes have one score s, with logits 0 and s, so that p(1) = 1/(1 + e^{−s}).
///
///     const sheafnn::EdgeTargets links = sheafnn::split_links(data.graph, {.seed = 1});
///     const auto loss = sheafnn::link_loss(links, sheafnn::PairScore::energy);
///     const auto result = sheafnn::train(model, links.graph, data.features, loss, links.split, options);
///
/// Links: binary cross-entropy on edges and on pairs without one. Labels of edges, signs among them: cross-entropy; targets of
/// edges: −log N. math: "Links" (10.4).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/bsnn/pair_head.hpp"
#include "sheafnn/core/buffer.hpp"
#include "sheafnn/graph/edge_split.hpp"

namespace sheafnn {

namespace detail {

/// Turns the scores of pairs into logits, T × columns: the scores themselves, or 0 and the score.
///
/// \param row_of  of each pair
template <class S>
void copy_logits(const MatrixView<const S>& scores, std::span<const std::int32_t> row_of,
                 const MatrixView<S>& logits) {
  const Index skip = logits.columns() - scores.columns();
  for (std::size_t t = 0; t < row_of.size(); ++t) {
    S* to = logits.row(static_cast<Index>(t)).data();
    std::fill_n(to, skip, S(0));
    std::copy_n(scores.row(row_of[t]).data(), scores.columns(), to + skip);
  }
}

}  // namespace detail

/// A loss with targets of its own (loss_parts.hpp). Holds views of the targets, which must outlive it.
///
/// \tparam Inner  Classification or Regression, over targets in place of nodes
template <class Inner>
class EdgeLoss {
 public:
  static constexpr std::string_view name = Inner::name;

  /// \param columns  logits per pair: classes, or targets of a regression
  /// \throws std::invalid_argument  targets that do not fit each other, or the loss
  EdgeLoss(const EdgeTargets& targets, const Inner& inner, Index columns, PairScore score)
      : targets_(&targets), inner_(inner), columns_(columns), head_(head_of(columns, score)) {
    sheafnn::validate(targets);
    inner.validate(targets.count(), columns);
  }
  EdgeLoss(const EdgeTargets&&, const Inner&, Index, PairScore) = delete;  // they would dangle

  [[nodiscard]] const PairHeadOptions& head() const noexcept { return head_; }
  [[nodiscard]] Index target_count() const noexcept { return targets_->count(); }
  [[nodiscard]] Index prediction_columns() const noexcept { return columns_; }
  /// Unchecked: 0 ≤ target < target_count().
  [[nodiscard]] bool known(Index target) const noexcept { return inner_.known(target); }
  /// The labels of the targets; only a Classification has them.
  [[nodiscard]] auto labels() const requires requires(const Inner& inner) { inner.labels(); }
  { return inner_.labels(); }
  /// The class weights; only a Classification has them.
  [[nodiscard]] auto class_weights() const requires requires(const Inner& inner) { inner.class_weights(); }
  { return inner_.class_weights(); }

  /// \throws std::invalid_argument  a graph of another size, or a score that does not fit the model
  template <class Model>
  void validate(const Model& model, Index node_count) const {
    require(targets_->graph.node_count() == node_count, "nodes of the targets", targets_->graph.node_count(),
            detail::concat("the graph has ", node_count));
    static_cast<void>(detail::pair_score_options(model, head_));
  }
  /// \throws std::invalid_argument  as add_pair_head()
  template <class Model>
  void prepare(Model& model, std::uint64_t seed) const {
    add_pair_head(model, head_, seed);
  }

  /// The pairs and scores of a pass, which begin() prepares.
  template <class Model>
  struct Work {
    PairScorer<Model> scorer;
    Buffer<typename Model::Scalar> logits, logits_bar;
  };
  /// \param targets  empty: all \throws std::invalid_argument  as PairScorer::begin()
  template <class Model>
  void begin(Network<Model>& network, std::span<const std::int32_t> targets, Work<Model>& work) const {
    const std::uint32_t epoch = network.pass().epoch;
    std::vector<Edge> pairs;
    for_targets(targets, [&](Index t) { pairs.push_back(targets_->pair(t, epoch)); });
    work.logits.resize(static_cast<Index>(pairs.size()) * columns_);
    work.logits_bar.resize(work.logits.size());
    work.scorer.begin(network, head_, std::move(pairs));
  }
  /// Unchecked: begin() was called with these targets, here and below.
  template <class Model, class S>
  double value_and_derivative(Network<Model>& network, const MatrixView<S>& outputs,
                              std::span<const std::int32_t> targets, double share,
                              const MatrixView<S>& outputs_bar, Work<Model>& work) const {
    const MatrixView<S> logits = logits_of(network, outputs, work);
    const MatrixView<S> bar(work.logits_bar.data(), logits.rows(), columns_);
    const double value =
        inner_.value_and_derivative(network.execution(), logits, NodeSelection(targets), targets, share, bar);
    const MatrixView<S> scores_bar = work.scorer.scores_bar();
    detail::fill_zero(scores_bar);
    const Index skip = columns_ - scores_bar.columns();
    for (std::size_t t = 0; t < targets.size(); ++t) {
      S* to = scores_bar.row(work.scorer.row_of()[t]).data();
      for (Index k = 0; k < scores_bar.columns(); ++k) to[k] += bar(static_cast<Index>(t), skip + k);
    }
    work.scorer.backward(network, outputs, outputs_bar);
    return value;
  }
  /// Unchecked: as above.
  template <class Model, class S>
  void predict(Network<Model>& network, const MatrixView<S>& outputs, std::span<const std::int32_t> targets,
               const MatrixView<double>& predictions, Work<Model>& work) const {
    const MatrixView<S> logits = logits_of(network, outputs, work);
    const NodeSelection rows = targets.empty() ? NodeSelection(target_count()) : NodeSelection(targets);
    inner_.predict(network.execution(), logits, rows, predictions);
  }
  /// Unchecked: `predictions` has all targets, and the target indices are in range.
  [[nodiscard]] Score score(const MatrixView<const double>& predictions,
                            std::span<const std::int32_t> targets) const {
    return inner_.score(predictions, targets);
  }

 private:
  [[nodiscard]] static PairHeadOptions head_of(Index columns, PairScore score) {
    return std::is_same_v<Inner, Classification> ? class_head(score, columns) : value_head(score, columns);
  }
  template <class Body>
  void for_targets(std::span<const std::int32_t> targets, const Body& body) const {
    if (targets.empty()) {
      for (Index t = 0; t < target_count(); ++t) body(t);
    } else {
      for (const Index t : targets) body(t);
    }
  }
  template <class Model, class S>
  [[nodiscard]] MatrixView<S> logits_of(Network<Model>& network, const MatrixView<S>& outputs,
                                        Work<Model>& work) const {
    const MatrixView<S> logits(work.logits.data(), work.logits.size() / columns_, columns_);
    detail::copy_logits(work.scorer.scores(network, outputs), work.scorer.row_of(), logits);
    return logits;
  }

  const EdgeTargets* targets_;
  Inner inner_;
  Index columns_;
  PairHeadOptions head_;
};

/// Binary cross-entropy of links: targets of split_links(), or others with labels 1 and 0.
///
/// \throws std::invalid_argument  as EdgeLoss
[[nodiscard]] inline EdgeLoss<Classification> link_loss(const EdgeTargets& targets,
                                                        PairScore score = PairScore::bilinear) {
  return {targets, Classification(targets.labels), 2, score};
}
/// Cross-entropy of the labels of edges, as split_edges() gives them; signed links have two labels, 0 and 1.
///
/// \throws std::invalid_argument  as EdgeLoss
[[nodiscard]] inline EdgeLoss<Classification> edge_class_loss(const EdgeTargets& targets, Index class_count,
                                                              PairScore score = PairScore::bilinear) {
  return {targets, Classification(targets.labels), class_count, score};
}
/// −log N(y; s, σ²) of the targets of edges.
///
/// \param values  T × k, NaN where unknown; must outlive the loss
/// \throws std::invalid_argument  as EdgeLoss and Regression
[[nodiscard]] inline EdgeLoss<Regression> edge_regression_loss(const EdgeTargets& targets,
                                                               const MatrixView<const double>& values,
                                                               PairScore score = PairScore::bilinear,
                                                               double deviation = 1) {
  return {targets, Regression(values, deviation), values.columns(), score};
}

}  // namespace sheafnn
