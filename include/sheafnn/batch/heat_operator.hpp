/// \file
/// BatchHeat: the heat operator of a layer of bundle networks for a batch of runs, by a sum of powers (heat_kernels.hpp; for one
/// network layers/heat_operator.hpp).
///
/// Unchecked: numbers of items, runs, instances and lanes, and the sizes of arrays behind pointers and views.
/// BatchNetwork and BatchTrainer check their arguments.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/heat_kernels.hpp"
#include "sheafnn/layers/heat_weights.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::batch::detail {

/// l and r of Â_uv = l_u r_v, which all networks on a graph share.
template <class Executor, class S>
struct BatchAdjacency {
  BatchAdjacency(Executor& executor, const Graph& graph, const layers::HeatOptions& options)
      : BatchAdjacency(executor,
                       layers::NormalisedAdjacency<S>(graph, options.normalisation, options.self_loops)) {}

  Array<Executor, S> left, right;
  bool self_loops;

 private:
  BatchAdjacency(Executor& executor, const layers::NormalisedAdjacency<S>& of)
      : left(executor, "graph", numbers(of.left())),
        right(executor, "graph", numbers(of.right())),
        self_loops(of.self_loops()) {}
  [[nodiscard]] static std::span<const S> numbers(const Buffer<S>& of) {
    return {of.data(), static_cast<std::size_t>(of.size())};
  }
};

/// Arrays that the layers share, since one of them works at a time.
template <class Executor, class S>
struct HeatScratch {
  Array<Executor, S> term[2], scaled[2];  ///< of the present power and of the one before
  Array<Executor, S> segments;            ///< partial sums of high-degree nodes
  Array<Executor, double> products;       ///< of all terms, by run, k, chunk and bundle

  HeatScratch() = default;
  /// \param width  h
  HeatScratch(Executor& executor, const GraphView<S>& graph, Index width, Index bundles,
              const layers::HeatOptions& options, const BatchSize& batch) {
    const auto array = [&](Index rows) { return Array<Executor, S>(executor, "layers", rows * width); };
    for (int i = 0; i < 2; ++i) {
      term[i] = array(batch.instances() * graph.nodes);
      scaled[i] = array(batch.instances() * graph.nodes);
    }
    segments = array(batch.instances() * graph.segments);
    const Index sums = RowChunks{graph.nodes * batch.training_copies}.count() * bundles;
    require_countable("partial sums of times", (options.degree() + 1) * sums);
    products = Array<Executor, double>(executor, "layers", batch.runs * (options.degree() + 1) * sums);
  }
};

/// See the file comment.
template <class Executor, class S>
class BatchHeat {
 public:
  using Scratch = HeatScratch<Executor, S>;

  /// \param row  numbers of a bundle at a node
  BatchHeat(Executor& executor, const GraphView<S>& graph, const BatchAdjacency<Executor, S>& adjacency,
            const layers::HeatOptions& options, const layers::HeatWeights<layers::ParameterSlot>& at,
            const layers::ParameterSet<S>& parameters, Index bundles, Index row, const BatchSize& batch,
            PartialSums& sums)
      : graph_(graph),
        adjacency_(&adjacency),
        options_(options),
        time_(at.time >= 0 ? parameters.info(at.time).offset : Index{-1}),
        hops_(at.hops >= 0 ? parameters.info(at.hops).offset : Index{-1}),
        runs_(batch.runs),
        row_(row),
        shape_{graph.nodes, 1, bundles * row, {}} {
    view_.of_laplacian = options.of_laplacian();
    view_.degree = options.degree();
    view_.bundles = bundles;
    view_.fixed_time = options.time;
    std::copy(layers::hop_powers.begin(), layers::hop_powers.end(), view_.power);
    const Index numbers = batch.runs * bundles * (view_.degree + 1);
    value_ = Array<Executor, double>(executor, "layers", numbers);
    bar_ = Array<Executor, double>(executor, "layers", numbers);
    view_.value = value_.data();
    view_.bar = bar_.data();
    if (!learned()) return;
    const Index size = bundles * (hops_ >= 0 ? HeatView<S>::hop_count : 1);
    sums_ = sums.reserve(1, size);
    sums.assign(hops_ >= 0 ? hops_ : time_, size, sums_, 1, size);
  }

  /// y = p(𝓛) x. \param x, y  n × h per instance; they do not overlap
  void forward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
               const S* x, S* y) {
    view_.time = time_ >= 0 ? parameters.value + time_ : nullptr;
    view_.hops = hops_ >= 0 ? parameters.value + hops_ : nullptr;
    view_.parameter_stride = parameters.stride;
    executor.launch(view_.bundles, runs_, SetHeat<S>{view_});
    sum_powers(executor, pass, scratch, false, x, y, nullptr);
  }
  /// x_bar = p(𝓛)ᵀ y_bar, and partial sums of the gradients. \param x  of forward()
  void backward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
                const S* x, const S* y_bar, S* x_bar) {
    sum_powers(executor, pass, scratch, true, y_bar, x_bar, learned() ? x : nullptr);
    if (!learned()) return;
    const Index chunks = chunks_of(pass).count();
    const int lanes = team_lanes(chunks);
    executor.launch_teams((view_.degree + 1) * view_.bundles, runs_, lanes,
                          HeatSums<S>{view_, view_.bundles, chunks, scratch.products.data(), products_of_run(pass),
                                      lanes});
    executor.launch(view_.bundles, runs_,
                    HeatGradient<S>{view_, parameters.arena + sums_, parameters.arena_stride});
  }

 private:
  [[nodiscard]] bool learned() const noexcept { return time_ >= 0 || hops_ >= 0; }
  [[nodiscard]] RowChunks chunks_of(const Pass& pass) const noexcept { return {graph_.nodes * pass.copies}; }
  [[nodiscard]] Index products_of_run(const Pass& pass) const noexcept {
    return (view_.degree + 1) * chunks_of(pass).count() * view_.bundles;
  }
  /// to = Σ_k c_k M^k from, or with Mᵀ. \param with  also ⟨with, M^k from⟩ of every bundle; null: not
  void sum_powers(Executor& executor, const Pass& pass, Scratch& scratch, bool transposed, const S* from, S* to,
                  const S* with) {
    const S *left = adjacency_->left.data(), *right = adjacency_->right.data();
    if (transposed) std::swap(left, right);
    const auto term = [&](Index k) -> HeatTerm<S> {
      const bool last = k == view_.degree;
      return {view_,
              shape_,
              row_,
              pass.copies,
              right,
              k,
              options_.uses(k),
              scratch.term[k % 2].data(),
              last ? nullptr : scratch.scaled[k % 2].data(),
              to};
    };
    // The array has room for the chunks of a training pass.
    const Index sums_of_term = chunks_of(pass).count() * view_.bundles;
    const auto products = [&](Index k) -> Items<HeatProducts<S>> {
      const HeatProducts<S> sums{chunks_of(pass),
                                 view_.bundles,
                                 row_,
                                 scratch.term[k % 2].data(),
                                 with,
                                 pass.copies * shape_.size(),
                                 with == nullptr ? nullptr : scratch.products.data() + k * sums_of_term,
                                 products_of_run(pass)};
      return {with != nullptr && options_.uses(k) ? sums.items() : 0, pass.runs, sums};
    };
    executor.launch(shape_.items(), pass.instances(), FirstHeatTerm<S>{term(0), from});
    for (Index k = 1; k <= view_.degree; ++k) {
      const S *before = scratch.term[(k - 1) % 2].data(), *scaled = scratch.scaled[(k - 1) % 2].data();
      launch_diffusion(executor, pass.instances(),
                       NextHeatTerm<S>{{begin_sums(executor, pass.instances(), graph_, NoBlocks<1, S>{}, shape_,
                                                   scaled, scratch.segments.data())},
                                       term(k),
                                       left,
                                       adjacency_->self_loops,
                                       before,
                                       scaled},
                       products(k - 1));
    }
    executor.launch_together(products(view_.degree));
  }

  GraphView<S> graph_;
  const BatchAdjacency<Executor, S>* adjacency_;
  layers::HeatOptions options_;
  Index time_, hops_, runs_, row_;
  FeatureShape<S> shape_;
  HeatView<S> view_;
  Index sums_ = 0;
  Array<Executor, double> value_, bar_;
};

}  // namespace sheafnn::batch::detail
