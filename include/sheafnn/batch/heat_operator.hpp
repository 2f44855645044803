/// \file
/// BatchHeat: the heat operator of a layer of bundle networks for a batch of runs. It takes a sum of powers
/// (heat_kernels.hpp), eigenpairs or the kernel of a Laplacian (heat_projection.hpp). For one network:
/// layers/heat_operator.hpp.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/heat_kernels.hpp"
#include "sheafnn/batch/heat_projection.hpp"
#include "sheafnn/layers/heat_weights.hpp"
#include "sheafnn/layers/normalised_adjacency.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::batch::detail {

/// l and r of Â_uv = l_u r_v, and what 𝓛 = I − Â is decomposed into; all networks on a graph share it.
template <class Executor, class S>
struct BatchAdjacency {
  /// \throws std::runtime_error  eigenpairs that do not converge
  BatchAdjacency(Executor& executor, const Graph& graph, const layers::HeatOptions& options)
      : BatchAdjacency(executor, graph, options,
                       layers::NormalisedAdjacency<S>(graph, options.normalisation, options.self_loops)) {}

  Array<Executor, S> left, right;
  bool self_loops;
  std::optional<BatchSpectrum<Executor, S>> spectrum;
  std::optional<BatchLimit<Executor, S>> limit;

  /// The highest power of a sum, or the number of eigenpairs minus one.
  [[nodiscard]] Index degree(const layers::HeatOptions& options) const noexcept {
    return spectrum ? spectrum->pairs - 1 : limit ? 0 : options.degree();
  }

 private:
  BatchAdjacency(Executor& executor, const Graph& graph, const layers::HeatOptions& options,
                 const layers::NormalisedAdjacency<S>& of)
      : left(executor, "graph", of.left().view()),
        right(executor, "graph", of.right().view()),
        self_loops(of.self_loops()) {
    if (options.expansion == HeatExpansion::spectral) spectrum.emplace(executor, graph, options);
    if (options.expansion == HeatExpansion::limit) limit.emplace(executor, graph, of, options.normalisation);
  }
};

/// Arrays that the layers share, since one of them works at a time.
template <class Executor, class S>
struct HeatScratch {
  Array<Executor, S> term[2], scaled[2];  ///< of the current and the previous power
  Array<Executor, S> segments;            ///< partial sums of high-degree nodes
  Array<Executor, double> products;       ///< of all terms, by run, k, chunk and bundle
  Array<Executor, S> projected[2];        ///< inᵀ X and outᵀ Ȳ, or sums of segments and of components

  HeatScratch() = default;
  /// \param width  h
  HeatScratch(Executor& executor, const GraphView<S>& graph, const BatchAdjacency<Executor, S>& adjacency,
              Index width, Index bundles, const layers::HeatOptions& options, const BatchSize& batch) {
    const auto array = [&](Index rows) { return Array<Executor, S>(executor, "layers", rows * width); };
    if (adjacency.spectrum) {
      require_countable("features of eigenvectors", adjacency.spectrum->pairs * width);
      projected[0] = array(batch.instances() * adjacency.spectrum->pairs);
      projected[1] = array(batch.training_instances() * adjacency.spectrum->pairs);
      return;
    }
    if (adjacency.limit) {
      const ComponentView<S> components = adjacency.limit->view(false);
      projected[0] = array(batch.instances() * components.segments);
      projected[1] = array(batch.instances() * components.components);
      return;
    }
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

  /// \param row  values of a bundle per node
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
    view_.degree = adjacency.degree(options);
    if (adjacency.spectrum) view_.eigenvalue = adjacency.spectrum->values.data();
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
    if (adjacency_->limit) return project_on_kernel(executor, pass, scratch, false, x, y);
    if (adjacency_->spectrum) {
      const Index pairs = view_.degree + 1;
      executor.launch(pairs * view_.bundles, runs_, SetSpectrum<S>{view_, pairs});
      return expand(executor, pass, scratch, false, x, y, nullptr);
    }
    executor.launch(view_.bundles, runs_, SetHeat<S>{view_});
    sum_powers(executor, pass, scratch, false, x, y, nullptr);
  }
  /// x_bar = p(𝓛)ᵀ y_bar, and partial sums of the gradients. \param x  of forward()
  void backward(Executor& executor, const ParameterView<S>& parameters, const Pass& pass, Scratch& scratch,
                const S* x, const S* y_bar, S* x_bar) {
    if (adjacency_->limit) return project_on_kernel(executor, pass, scratch, true, y_bar, x_bar);
    const S* with = learned() ? x : nullptr;
    if (adjacency_->spectrum) {
      expand(executor, pass, scratch, true, y_bar, x_bar, with);
    } else {
      sum_powers(executor, pass, scratch, true, y_bar, x_bar, with);
    }
    if (!learned()) return;
    if (!adjacency_->spectrum) {
      const Index chunks = chunks_of(pass).count();
      const int lanes = team_lanes(chunks);
      executor.launch_teams((view_.degree + 1) * view_.bundles, runs_, lanes,
                            HeatSums<S>{view_, view_.bundles, chunks, scratch.products.data(),
                                        products_of_run(pass), lanes});
    }
    executor.launch(view_.bundles, runs_,
                    HeatGradient<S>{view_, parameters.arena + sums_, parameters.arena_stride});
  }

 private:
  [[nodiscard]] bool learned() const noexcept { return time_ >= 0 || hops_ >= 0; }
  [[nodiscard]] RowChunks chunks_of(const Pass& pass) const noexcept { return {graph_.nodes * pass.copies}; }
  [[nodiscard]] Index products_of_run(const Pass& pass) const noexcept {
    return (view_.degree + 1) * chunks_of(pass).count() * view_.bundles;
  }
  /// to = Σ_j c_j out_j in_jᵀ from, or its transpose. \param with  also the derivatives c̄_j for this x; null: not
  void expand(Executor& executor, const Pass& pass, Scratch& scratch, bool transposed, const S* from, S* to,
              const S* with) {
    const BatchSpectrum<Executor, S>& spectrum = *adjacency_->spectrum;
    const S *in = spectrum.in.data(), *out = spectrum.out.data();
    if (transposed) std::swap(in, out);
    const Index pairs = spectrum.pairs, width = shape_.channels, size = pairs * width;
    const auto project = [&](const S* basis, const S* x, S* result) {
      executor.multiply(Product<S>{pairs,
                                   width,
                                   graph_.nodes,
                                   pass.instances(),
                                   {basis, pairs, 0, true},
                                   {x, width, graph_.nodes * width},
                                   result,
                                   width,
                                   size});
    };
    S* projected = scratch.projected[transposed ? 1 : 0].data();
    project(in, from, projected);
    if (with != nullptr) {
      S* of_input = scratch.projected[0].data();
      project(out, with, of_input);
      executor.launch(pairs * view_.bundles, pass.runs,
                      PairProducts<S>{view_, view_.bundles, row_, size, pass.copies, of_input, projected});
    }
    executor.launch(size, pass.instances(), DampPairs<S>{view_, width, row_, pass.copies, size, projected});
    executor.multiply(Product<S>{graph_.nodes,
                                 width,
                                 pairs,
                                 pass.instances(),
                                 {out, pairs, 0},
                                 {projected, width, size},
                                 to,
                                 width,
                                 graph_.nodes * width});
  }
  /// to = P from, or Pᵀ from.
  void project_on_kernel(Executor& executor, const Pass& pass, Scratch& scratch, bool transposed, const S* from,
                         S* to) {
    const ComponentView<S> graph = adjacency_->limit->view(transposed);
    const Index width = shape_.channels, instances = pass.instances();
    S *segments = scratch.projected[0].data(), *components = scratch.projected[1].data();
    executor.launch(graph.segments * width, instances, SumSegment<S>{graph, width, from, segments});
    executor.launch_teams(graph.components * width, instances, max_lanes,
                          SumComponent<S>{graph, width, segments, components});
    executor.launch(graph.nodes * width, instances, SpreadComponent<S>{graph, width, components, to});
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
