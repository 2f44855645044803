/// \file
/// BatchBundleLearner: a learner of the rotations of bundles for a batch of runs (for one network layers/bundle_learner.hpp,
/// which has the formulas).
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sheafnn/batch/bundle_kernels.hpp"
#include "sheafnn/batch/embedding_kernels.hpp"
#include "sheafnn/batch/feature_norm.hpp"
#include "sheafnn/batch/feed_forward.hpp"
#include "sheafnn/batch/sage.hpp"

namespace sheafnn::batch::detail {

/// Arrays that the learners of all layers share, since one of them works at a time.
template <class Executor, class S>
struct BundleLearnerScratch {
  Array<Executor, S> raw_bar, pair_bar, mean;
  Array<Executor, S> rows[3];  ///< derivatives, n × g
  SageScratch<Executor, S> sage;

  BundleLearnerScratch() = default;
  BundleLearnerScratch(Executor& executor, const layers::BundleLearnerOptions& options, const ArcViews<S>& arcs,
                       const BatchSize& batch) {
    const Index n = arcs.out.nodes, training = batch.training_instances() * n;
    const auto array = [&](Index size) { return Array<Executor, S>(executor, "learners", size); };
    raw_bar = array(training * options.outputs);
    for (Array<Executor, S>& one : rows) one = array(training * options.width);
    if (options.kind == BundleLearnerKind::mlp) return;
    const Index width = std::max({options.inputs, options.width, options.outputs});
    sage = SageScratch<Executor, S>(executor, arcs.segments(), width, batch.instances(), n,
                                    batch.training_instances());
    if (options.kind == BundleLearnerKind::sage) return;
    pair_bar = array(training * 2 * options.width);
    mean = array(batch.instances() * n * options.width);
  }
};

/// Buffers and passes of one learner of all runs, which reads n × h values of each instance of a pass.
template <class Executor, class S>
class BatchBundleLearner {
 public:
  using Scratch = BundleLearnerScratch<Executor, S>;

  BatchBundleLearner(Executor& executor, const ArcViews<S>& arcs,
                     const layers::BundleLearnerWeights<layers::ParameterSlot>& at,
                     const layers::BundleLearnerOptions& options, const layers::ParameterSet<S>& parameters,
                     const BatchSize& batch, PartialSums& sums)
      : arcs_(arcs), options_(options), shape_{arcs.out.nodes, 1, options.width, {}} {
    const Index n = arcs.out.nodes, g = options.width;
    if (options.kind == BundleLearnerKind::mlp) {
      forward_.emplace_back(executor, at.ends, parameters, n, options.inputs, g, options.outputs, batch, sums);
    } else if (options.kind == BundleLearnerKind::sage) {
      for (Index k = 0; k < options.layers; ++k) {
        const bool last = k + 1 == options.layers;
        convolutions_.emplace_back(executor, arcs, at.convolutions[static_cast<std::size_t>(k)], parameters,
                                   k == 0 ? options.inputs : g, last ? options.outputs : g, false, !last, batch,
                                   sums);
        if (!last) kept_.emplace_back(executor, "learners", batch.instances() * n * g);
      }
    } else {
      require_countable("features of a learner", 2 * shape_.size());
      require_countable("tiles of the sums of segments", arcs.segments() * shape_.tiles);
      first_.emplace(executor, at.ends.hidden, parameters, Activation::gelu, n, options.inputs, g, batch, sums);
      for (std::size_t k = 0; k < at.blocks.size(); ++k) {
        norms_.emplace_back(executor, at.norms[k], parameters, n, g, batch, sums);
        forward_.emplace_back(executor, at.blocks[k], parameters, n, 2 * g, g, g, batch, sums);
        kept_.emplace_back(executor, "learners", batch.instances() * n * 2 * g);
      }
      norms_.emplace_back(executor, at.norms.back(), parameters, n, g, batch, sums);
      last_.emplace(at.ends.output, parameters, batch.runs, batch.training_copies * n, g, options.outputs, sums);
      raw_ = Array<Executor, S>(executor, "learners", batch.instances() * n * options.outputs);
    }
  }

  /// Computes what raw() shows, without its bias.
  ///
  /// \param dropout_of  dropout_of(k): dropout k
  /// \param x           n × h per instance; stays in place until backward()
  template <class DropoutOf>
  void forward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
               const DropoutOf& dropout_of, const S* x) {
    if (options_.kind == BundleLearnerKind::mlp) {
      forward_[0].forward(executor, parameters, dropout_of(0), x);
    } else if (options_.kind == BundleLearnerKind::sage) {
      for (std::size_t k = 0; k < convolutions_.size(); ++k) {
        convolutions_[k].forward(executor, parameters, pass, scratch.sage, x);
        if (k == kept_.size()) break;
        S* out = kept_[k].data();
        executor.launch(pass.instances() * shape_.size(), 1,
                        Activate<S>{Activation::gelu, convolutions_[k].output(), out});
        executor.launch_together(dropout_of(static_cast<Index>(k)).of(out, shape_.size()));
        x = out;
      }
    } else {
      residual_forward(executor, parameters, pass, scratch, dropout_of, x);
    }
  }
  /// What kernels see of what the learner predicts.
  ///
  /// \param bundles  B
  /// \param copies   of a run
  [[nodiscard]] RawBundle<S> raw(const ParameterView<S>& parameters, Index bundles, Index copies,
                                 Scratch& scratch) {
    RawBundle<S> r{.count = arcs_.out.nodes * bundles,
                   .bundles = bundles,
                   .each = static_cast<int>(options_.outputs / bundles),
                   .copies = copies,
                   .parameter_stride = parameters.stride,
                   .bar = scratch.raw_bar.data()};
    if (options_.kind == BundleLearnerKind::mlp) {
      r.raw = forward_[0].output();
      r.bias = forward_[0].bias(parameters);
    } else if (options_.kind == BundleLearnerKind::sage) {
      r.raw = convolutions_.back().output();
      r.bias = convolutions_.back().bias(parameters);
    } else {
      r.raw = raw_.data();
      r.bias = last_->bias(parameters);
    }
    return r;
  }
  /// x_bar += the derivative of x, and partial sums of the gradients, from the derivative of raw() in the scratch.
  template <class DropoutOf>
  void backward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
                const DropoutOf& dropout_of, S* x_bar) {
    const S* bar = scratch.raw_bar.data();
    if (options_.kind == BundleLearnerKind::mlp) {
      forward_[0].backward(executor, parameters, dropout_of(0), bar, scratch.rows[0].data(), x_bar, true);
    } else if (options_.kind == BundleLearnerKind::sage) {
      for (std::size_t k = convolutions_.size(); k-- > 1;) {
        S* to = scratch.rows[k % 2].data();
        convolutions_[k].backward(executor, parameters, pass, scratch.sage, bar, to, false);
        executor.launch_together(dropout_of(static_cast<Index>(k) - 1).of(to, shape_.size()));
        executor.launch(pass.instances() * shape_.size(), 1,
                        ActivationSlopes<S>{Activation::gelu, convolutions_[k - 1].output(), to});
        bar = to;
      }
      convolutions_.front().backward(executor, parameters, pass, scratch.sage, bar, x_bar, true);
    } else {
      residual_backward(executor, parameters, pass, scratch, dropout_of, x_bar);
    }
  }

 private:
  /// E before block k.
  [[nodiscard]] S* before(std::size_t k) noexcept { return k == 0 ? first_->output() : forward_[k - 1].output(); }
  /// out = the sum over neighbours. A node has the same neighbours by leaving and by entering arcs
  void sum_neighbours(Executor& executor, const Pass& pass, Scratch& scratch, const S* in, S* out) {
    launch_diffusion(executor, pass.instances(),
                     StoreSum<S>{{begin_sums(executor, pass.instances(), arcs_.out, NoBlocks<1, S>{}, shape_, in,
                                             scratch.sage.segments.data())},
                                 out});
  }
  /// out = in divided by the number of neighbours.
  void share(Executor& executor, const Pass& pass, const S* in, S* out) {
    executor.launch(shape_.size(), pass.instances(),
                    ShareRows<S>{arcs_.out.degree, options_.width, shape_.size(), in, out});
  }

  template <class DropoutOf>
  void residual_forward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
                        const DropoutOf& dropout_of, const S* x) {
    const Index rows = pass.copies * arcs_.out.nodes, size = shape_.size(), g = options_.width;
    first_->forward(executor, parameters, rows, x);
    executor.launch_together(first_->activate(parameters, rows));
    executor.launch_together(dropout_of(0).of(first_->output(), size));
    for (std::size_t k = 0; k < forward_.size(); ++k) {
      const Index number = 2 * static_cast<Index>(k);
      norms_[k].forward(executor, nullptr, pass, parameters, before(k), 0, nullptr);
      sum_neighbours(executor, pass, scratch, norms_[k].output(), scratch.sage.product.data());
      share(executor, pass, scratch.sage.product.data(), scratch.mean.data());
      executor.launch(2 * size, pass.instances(),
                      JoinRows<S>{g, size, norms_[k].output(), scratch.mean.data(), kept_[k].data()});
      forward_[k].forward(executor, parameters, dropout_of(number + 1), kept_[k].data());
      executor.launch_together(forward_[k].add_bias(parameters, pass));
      executor.launch_together(dropout_of(number + 2).of(forward_[k].output(), size));
      executor.launch(size, pass.instances(), AddFeatures<S>{before(k), size, forward_[k].output()});
    }
    norms_.back().forward(executor, nullptr, pass, parameters, before(forward_.size()), 0, nullptr);
    last_->forward(executor, parameters, rows, norms_.back().output(), raw_.data());
  }
  template <class DropoutOf>
  void residual_backward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass,
                         Scratch& scratch, const DropoutOf& dropout_of, S* x_bar) {
    const Index rows = pass.copies * arcs_.out.nodes, size = shape_.size(), g = options_.width;
    S *e_bar = scratch.rows[0].data(), *one = scratch.rows[1].data(), *other = scratch.rows[2].data();
    S *shared = scratch.sage.shared.data(), *through = scratch.sage.product_bar.data();
    const S* raw_bar = scratch.raw_bar.data();
    last_->backward(executor, parameters, rows, raw_bar, e_bar);
    executor.launch_together(last_->weight_products(parameters, rows, norms_.back().output(), raw_bar));
    norms_.back().backward(executor, pass, parameters, e_bar);
    for (std::size_t k = forward_.size(); k-- > 0;) {
      const Index number = 2 * static_cast<Index>(k);
      executor.launch(size, pass.instances(), CopyToInstances<S>{e_bar, size, 1, one});
      executor.launch_together(dropout_of(number + 2).of(one, size));
      forward_[k].backward(executor, parameters, dropout_of(number + 1), one, other, scratch.pair_bar.data(),
                           false);
      executor.launch(2 * size, pass.instances(), SplitRows<S>{g, size, scratch.pair_bar.data(), one, other});
      share(executor, pass, other, shared);
      sum_neighbours(executor, pass, scratch, shared, through);
      executor.launch(size, pass.instances(), AddFeatures<S>{through, size, one});
      norms_[k].backward(executor, pass, parameters, one);
      executor.launch(size, pass.instances(), AddFeatures<S>{one, size, e_bar});
    }
    executor.launch_together(dropout_of(0).of(e_bar, size));
    executor.launch_together(first_->slopes(rows, e_bar));
    executor.launch_together(first_->weight_products(parameters, rows, e_bar));
    first_->linear().backward(executor, parameters, rows, e_bar, x_bar, true);
  }

  ArcViews<S> arcs_;
  layers::BundleLearnerOptions options_;
  FeatureShape<S> shape_;  ///< n × 1 × g
  std::vector<BatchFeedForward<Executor, S>>
      forward_;  ///< of mlp, or of the blocks; E after a block is in its output
  std::vector<BatchSage<Executor, S>> convolutions_;
  std::optional<BatchActivatedLinear<Executor, S>> first_;  ///< of sage_residual
  std::optional<BatchLinear<S>> last_;
  std::vector<BatchFeatureNorm<Executor, S>> norms_;
  std::vector<Array<Executor, S>> kept_;  ///< GELU after each convolution but the last; [N ‖ mean of N] of blocks
  Array<Executor, S> raw_;
};

}  // namespace sheafnn::batch::detail
