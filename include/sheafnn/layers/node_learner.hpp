/// \file
/// NodeLearnerPair: two learners of node maps side by side, one of the maps T of a cooperative sheaf and one of S. Each
/// takes the features of the nodes, n × h, to the o values that the map of a node is made of:
///
///   - mlp: ReLU(X W₁ + b₁) W₂ + b₂;
///   - sage: convolutions with the mean over neighbours (sage_pair.hpp), between them GlobalNorm and ReLU;
///   - sage_projected: the same with projected neighbours, between them GELU and dropout.
///
/// Passes consist of rounds. A round computes one group of nodes after another. The data of a group stay in the cache,
/// and callers can do the steps before and after in the same walk:
///
///     begin(…);   for r in 0 … rounds − 1: { for all groups: forward_rows(r, …);  end_round(r); }
///
/// Source: math: "Learners of node maps".
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/tile.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/layers/global_norm.hpp"
#include "sheafnn/layers/linear_pair.hpp"
#include "sheafnn/layers/node_learner_options.hpp"
#include "sheafnn/layers/node_learner_workspace.hpp"
#include "sheafnn/layers/sage_pair.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"

namespace sheafnn::layers {

/// The learners of a pair on one graph. Rows of results are [row of T | row of S]. Unchecked: in functions on groups
/// of rows, indices of rows and rounds, and the sizes of arrays.
template <class S>
class NodeLearnerPair {
 public:
  using Workspace = detail::NodeLearnerWorkspace<S>;
  template <class T>
  using Weights = std::array<NodeLearnerWeights<T>, 2>;

  /// \param arcs       what it views must outlive the pair
  /// \param chunks     of backward passes, over arcs.nodes nodes
  /// \param workspace  of the same options and arcs.rows() nodes
  /// \throws std::invalid_argument  options out of range, chunks of another number of nodes, no workspace or one of other
  ///                                options or another number of nodes
  NodeLearnerPair(const ArcLists& arcs, const NodeLearnerOptions& options, const NodeChunks& chunks,
                  std::shared_ptr<Workspace> workspace)
      : options_((validate(options), check(arcs, options, chunks, workspace.get()), options)),
        chunks_(chunks),
        work_(std::move(workspace)),
        raw_(arcs.nodes * 2 * options.outputs) {
    const Index n = arcs.nodes, g = options.width;
    if (options.kind == NodeLearnerKind::mlp) {
      hidden_ = LinearPair<S>(options.inputs, g, true);
      output_ = LinearPair<S>(g, options.outputs, false);
      kept_.emplace_back(n * 2 * g);
      return;
    }
    convolutions_.reserve(static_cast<std::size_t>(options.layers));
    for (Index k = 0; k < options.layers; ++k) {
      const bool last = k + 1 == options.layers;
      convolutions_.emplace_back(arcs, k == 0 ? options.inputs : g, last ? options.outputs : g, k == 0,
                                 projected());
      if (last) break;
      kept_.emplace_back(n * 2 * g);
      z_.emplace_back(n * 2 * g);
      for (int side = 0; side < 2; ++side) {
        if (projected()) {
          masks_.emplace_back(n * g);
        } else {
          norms_.emplace_back(n, g, 2 * g, chunks.count, arcs.part);
        }
      }
    }
    dropouts_.resize(masks_.size());
  }

  /// The learners' predictions, n × 2o, after the last round.
  [[nodiscard]] MatrixView<const S> raw() const noexcept {
    return {raw_.data(), chunks_.nodes, 2 * options_.outputs};
  }
  /// Memory for their derivative, of the same shape; shared with other pairs.
  [[nodiscard]] MatrixView<S> raw_bar() noexcept {
    return {work_->raw_bar.data(), chunks_.nodes, 2 * options_.outputs};
  }

  /// Takes the weights and the dropouts of a pass.
  ///
  /// \param training    keep what backward passes read
  /// \param dropout_of  dropout_of(side, k): the dropout of the features between convolutions k and k + 1
  /// \param draw        called as draw(mask, dropout) for active dropouts
  /// \throws std::invalid_argument  weights of another shape or number
  template <class DropoutOf, class Draw>
  void begin(const Weights<const S>& weights, bool training, const DropoutOf& dropout_of, const Draw& draw) {
    check_count(weights);
    keep_ = training;
    const auto& [out, in] = weights;
    if (convolutions_.empty()) {
      hidden_.bind({out.hidden, in.hidden}, training);
      output_.bind({out.output, in.output}, training);
      return;
    }
    for (std::size_t k = 0; k < convolutions_.size(); ++k) {
      convolutions_[k].bind({out.convolutions[k], in.convolutions[k]}, training);
      if (k + 1 == convolutions_.size()) break;
      for (std::size_t side = 0; side < 2; ++side) {
        const std::size_t i = 2 * k + side;
        if (!projected()) {
          norms_[i].bind(weights[side].norms[k]);
          continue;
        }
        dropouts_[i] = dropout_of(static_cast<int>(side), static_cast<Index>(k));
        if (dropouts_[i].active()) draw(masks_[i], dropouts_[i]);
      }
    }
  }

  /// Calls use(side, k, mask) for the masks between convolutions k and k + 1.
  template <class Use>
  void for_masks(const Use& use) {
    for (std::size_t i = 0; i < masks_.size(); ++i)
      use(static_cast<int>(i % 2), static_cast<Index>(i / 2), masks_[i]);
  }

  [[nodiscard]] Index rounds() const noexcept {
    const Index k = static_cast<Index>(convolutions_.size());
    return k == 0 ? 1 : projected() ? k + 1 : 2 * k;
  }
  /// Round r at a group of nodes.
  ///
  /// \param first  a multiple of row_group; count: at most that many
  /// \param x      the rows of these nodes, one after the other
  void forward_rows(Index r, Index first, Index count, const S* x) {
    if (convolutions_.empty()) {
      mlp_rows(first, count, x);
    } else if (projected()) {
      if (r > 0) finish(r - 1, first, count);
      if (r > 0 && r < rounds() - 1) activate(r - 1, first, count);
      if (r < rounds() - 1) start(r, first, count, x);
    } else if (r % 2 == 0) {
      if (r > 0) normalise(r / 2 - 1, first, count);
      start(r / 2, first, count, x);
    } else {
      finish(r / 2, first, count);
      if (r + 1 < rounds()) {
        for_norms(r / 2, [&](GlobalNorm<S>& norm, Index column) {
          norm.add_rows(first, count, z(r / 2) + first * row() + column);
        });
      }
    }
  }
  /// To be called between two rounds. On a part of a graph it exchanges what the next one reads at neighbours.
  void end_round(Index r) {
    if (!convolutions_.empty() && (projected() || r % 2 == 0)) {
      const Index k = projected() ? r : r / 2;
      convolutions_[static_cast<std::size_t>(k)].fetch(work_->product[k % 2].data());
    }
    if (convolutions_.empty() || projected() || r % 2 == 0 || r + 1 == rounds()) return;
    for_norms(r / 2, [](GlobalNorm<S>& norm, Index) { norm.finish_statistics(); });
  }

  /// The rounds of a backward pass, which starts from raw_bar(). Round 0 is called before raw_bar() of the neighbours is
  /// complete, so only mlp works in it.
  [[nodiscard]] Index backward_rounds() const noexcept { return rounds(); }
  /// Number of sums of a chunk.
  [[nodiscard]] Index partial_size() const noexcept {
    return convolutions_.empty() ? hidden_.partial_size() + output_.partial_size()
                                 : partial_of(convolutions_.size());
  }
  void begin_backward() {
    for (GlobalNorm<S>& norm : norms_) {
      for (Index chunk = 0; chunk < chunks_.count; ++chunk) norm.begin_chunk(chunk);
    }
  }
  /// Backward round r at a group of nodes of a chunk; the last one adds to x_bar, or overwrites it.
  ///
  /// \param x, x_bar  the rows of these nodes, one after the other
  /// \param partial   partial_size() values of the chunk: the share in the derivatives of the weights is added
  void backward_rows(Index r, Index chunk, Index first, Index count, const S* x, S* x_bar, bool accumulate,
                     S* partial) {
    if (convolutions_.empty()) {
      mlp_backward_rows(first, count, x, x_bar, accumulate, partial);
      return;
    }
    if (r == 0) return;
    const Index last = static_cast<Index>(convolutions_.size()) - 1;
    const Index k = last - (projected() ? r - 1 : r / 2);  // the convolution, or the one before this norm
    if (!projected() && r % 2 == 0) {
      for_norms(k, [&](GlobalNorm<S>& norm, Index column) {
        const Index at = first * row() + column;
        norm.backward_rows(count, z(k) + at, z_bar(k) + at);
      });
      return;
    }
    S* sums = partial + partial_of(static_cast<std::size_t>(k));
    const SagePair<S>& convolution = convolutions_[static_cast<std::size_t>(k)];
    if (k == 0) {
      convolution.backward_rows(first, count, x, options_.inputs, z_bar(0), x_bar, accumulate, sums);
      return;
    }
    S* bar = z_bar(k - 1) + first * row();
    convolution.backward_rows(first, count, activated(k - 1) + first * row(), row(), z_bar(k), bar, false, sums);
    if (projected()) {
      const S* derivative = z(k - 1) + first * row();
      detail::for_tiles<S>(0, count * row(),
                           [&]<class T>(auto i) { i.store(bar + i, i.load(bar + i) * i.load(derivative + i)); });
      return;
    }
    sums += convolution.partial_size();
    for_norms(k - 1, [&](GlobalNorm<S>& norm, Index column) {
      const Index at = first * row() + column;
      norm.gate_rows(chunk, count, z(k - 1) + at, activated(k - 1) + at, bar + column, sums);
      sums += norm.partial_size();
    });
  }
  /// As end_round().
  void end_backward_round(Index r) {
    if (!convolutions_.empty() && (projected() || r % 2 == 0)) {
      const Index k = static_cast<Index>(convolutions_.size()) - 1 - (projected() ? r : r / 2);
      convolutions_[static_cast<std::size_t>(k)].fetch(z_bar(k));
    }
    if (convolutions_.empty() || projected() || r % 2 == 0 || r + 1 == backward_rounds()) return;
    for_norms(static_cast<Index>(convolutions_.size()) - 2 - r / 2,
              [&](GlobalNorm<S>& norm, Index) { norm.finish_gates(chunks_.count); });
  }
  /// Adds sums of backward_rows() to derivatives. \throws std::invalid_argument  weights of another shape or number
  void add_partial(const S* partial, const Weights<S>& weights_bar) const {
    check_count(weights_bar);
    const auto& [out, in] = weights_bar;
    if (convolutions_.empty()) {
      hidden_.add_partial(partial, {out.hidden, in.hidden});
      output_.add_partial(partial + hidden_.partial_size(), {out.output, in.output});
      return;
    }
    for (std::size_t k = 0; k < convolutions_.size(); ++k) {
      const S* sums = partial + partial_of(k);
      convolutions_[k].add_partial(sums, {out.convolutions[k], in.convolutions[k]});
      if (k == 0 || projected()) continue;
      sums += convolutions_[k].partial_size();
      for (std::size_t side = 0; side < 2; ++side) {
        const GlobalNorm<S>& norm = norms_[2 * (k - 1) + side];
        norm.add_partial(sums, weights_bar[side].norms[k - 1]);
        sums += norm.partial_size();
      }
    }
  }

 private:
  static void check(const ArcLists& arcs, const NodeLearnerOptions& options, const NodeChunks& chunks,
                    const Workspace* workspace) {
    require(chunks.nodes == arcs.nodes, "nodes of chunks", chunks.nodes,
            detail::concat("the graph has ", arcs.nodes));
    require(workspace != nullptr, "workspace", "null", "the learners need a workspace");
    require(workspace->nodes == arcs.rows(), "nodes of workspace", workspace->nodes,
            detail::concat("the graph has ", arcs.rows(), " rows"));
    require(workspace->options == options, "workspace", "of other options",
            "must have the options of the learners");
  }
  [[nodiscard]] bool projected() const noexcept { return options_.kind == NodeLearnerKind::sage_projected; }
  template <class T>
  void check_count(const Weights<T>& weights) const {
    for (const NodeLearnerWeights<T>& one : weights) {
      require_size(std::span(one.convolutions), static_cast<Index>(convolutions_.size()), "convolutions");
      if (!projected() && !convolutions_.empty()) {
        require_size(std::span(one.norms), static_cast<Index>(convolutions_.size()) - 1, "norms");
      }
    }
  }
  /// Values per row between two layers.
  [[nodiscard]] Index row() const noexcept { return 2 * options_.width; }
  [[nodiscard]] bool is_last(Index k) const noexcept { return k + 1 == static_cast<Index>(convolutions_.size()); }
  /// Z of convolution k. After the backward pass, Z of a projected convolution holds the derivative of the input of the
  /// next step.
  [[nodiscard]] S* z(Index k) noexcept {
    return is_last(k) ? raw_.data() : keep_ ? z_[static_cast<std::size_t>(k)].data() : work_->z.data();
  }
  /// What convolution k + 1 reads.
  [[nodiscard]] S* activated(Index k) noexcept {
    return keep_ ? kept_[static_cast<std::size_t>(k)].data() : work_->activated.data();
  }
  [[nodiscard]] S* z_bar(Index k) noexcept {
    return is_last(k) ? work_->raw_bar.data() : work_->z_bar[k % 2].data();
  }
  /// Where the sums of convolution k begin; the sums of the norms before it follow.
  [[nodiscard]] Index partial_of(std::size_t k) const noexcept {
    Index r = 0;
    for (std::size_t i = 0; i < k; ++i) {
      r += convolutions_[i].partial_size();
      if (i > 0 && !projected()) r += norms_[2 * (i - 1)].partial_size() + norms_[2 * (i - 1) + 1].partial_size();
    }
    return r;
  }
  /// Calls body(norm, its first column) for both norms after convolution k.
  template <class Body>
  void for_norms(Index k, const Body& body) {
    for (Index side = 0; side < 2; ++side)
      body(norms_[static_cast<std::size_t>(2 * k + side)], side * options_.width);
  }

  void start(Index k, Index first, Index count, const S* x) {
    const bool from_features = k == 0;
    convolutions_[static_cast<std::size_t>(k)].start_rows(first, count,
                                                          from_features ? x : activated(k - 1) + first * row(),
                                                          from_features ? options_.inputs : row(),
                                                          work_->product[k % 2].data(), z(k), keep_);
  }
  void finish(Index k, Index first, Index count) {
    convolutions_[static_cast<std::size_t>(k)].finish_rows(first, count, work_->product[k % 2].data(), z(k));
  }
  void normalise(Index k, Index first, Index count) {
    for_norms(k, [&](GlobalNorm<S>& norm, Index column) {
      const Index at = first * row() + column;
      norm.forward_rows(count, z(k) + at, activated(k) + at);
    });
  }
  /// dropout(GELU(z)); in training z becomes the derivative of that.
  void activate(Index k, Index first, Index count) {
    const Index g = options_.width;
    for (Index side = 0; side < 2; ++side) {
      const std::size_t i = static_cast<std::size_t>(2 * k + side);
      const bool drops = dropouts_[i].active();
      const std::uint8_t* mask = masks_[i].bits();
      const S factor = static_cast<S>(dropouts_[i].scale());
      for (Index u = first; u < first + count; ++u) {
        S* in = z(k) + u * row() + side * g;
        S* out = activated(k) + u * row() + side * g;
        detail::for_tiles<S>(0, g, [&]<class T>(auto c) {
          T slope, value = activate_with_slope<Activation::gelu>(c.load(in + c), slope);
          if (drops) {
            value = detail::dropped(value, mask, u * g + c, factor);
            slope = detail::dropped(slope, mask, u * g + c, factor);
          }
          c.store(out + c, value);
          if (keep_) c.store(in + c, slope);
        });
      }
    }
  }

  void mlp_rows(Index first, Index count, const S* x) {
    S scratch[detail::row_scratch];
    const Index step = detail::scratch_rows(row(), count);
    for (Index begin = 0; begin < count; begin += step) {
      const Index rows = std::min(step, count - begin), u = first + begin;
      S* hidden = keep_ ? kept_[0].data() + u * row() : scratch;
      hidden_.forward_rows(rows, x + begin * options_.inputs, options_.inputs, hidden);
      detail::keep_positive(rows * row(), hidden);
      output_.forward_rows(rows, hidden, row(), raw_.data() + u * output_.outputs());
    }
  }
  void mlp_backward_rows(Index first, Index count, const S* x, S* x_bar, bool accumulate, S* partial) const {
    S hidden_bar[detail::row_scratch];
    const Index step = detail::scratch_rows(row(), count), h = options_.inputs;
    for (Index begin = 0; begin < count; begin += step, x += step * h, x_bar += step * h) {
      const Index rows = std::min(step, count - begin), u = first + begin;
      const S* hidden = kept_[0].data() + u * row();
      const S* bar = work_->raw_bar.data() + u * output_.outputs();
      output_.weight_rows(rows, hidden, row(), bar, partial + hidden_.partial_size());
      output_.input_rows(rows, bar, hidden_bar, row(), false);
      detail::keep_where_positive(rows * row(), hidden, hidden_bar);
      hidden_.weight_rows(rows, x, h, hidden_bar, partial);
      hidden_.input_rows(rows, hidden_bar, x_bar, h, accumulate);
    }
  }

  NodeLearnerOptions options_;
  NodeChunks chunks_;
  std::shared_ptr<Workspace> work_;
  bool keep_ = false;
  LinearPair<S> hidden_, output_;  ///< of mlp
  std::vector<SagePair<S>> convolutions_;
  std::vector<GlobalNorm<S>> norms_;  ///< two after each convolution but the last
  std::vector<DropoutMask> masks_;    ///< likewise
  std::vector<Dropout> dropouts_;
  std::vector<Buffer<S>> z_, kept_;  ///< after each: Z and what follows it, ReLU(X W₁ + b₁) of mlp; n × 2g
  Buffer<S> raw_;
};

}  // namespace sheafnn::layers
