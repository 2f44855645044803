/// \file
/// Heat operators of a batch that project features: on eigenvectors of a graph's Laplacian, or on its kernel (for one network, with
/// the formulas: layers/heat_spectrum.hpp, heat_limit.hpp). All networks on a graph share what is computed here of it. Rows as in
/// heat_kernels.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/execution.hpp"
#include "sheafnn/batch/heat_kernels.hpp"
#include "sheafnn/layers/heat_limit.hpp"
#include "sheafnn/layers/heat_spectrum.hpp"

namespace sheafnn::batch::detail {

/// The coefficients e^{−tλ_j}. item: (bundle, j), group: run.
template <class S>
struct SetSpectrum {
  HeatView<S> heat;
  Divisor pairs;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    const Index bundle = item / pairs, j = item % pairs;
    heat.value[heat.of_bundle(run, bundle) + j] =
        kernels::spectral_coefficient(heat.eigenvalue[j], heat.time_of(run, bundle));
  }
};
/// Multiplies component j of every bundle with its coefficient. item: (j, column), group: instance.
template <class S>
struct DampPairs {
  HeatView<S> heat;
  Divisor width, row, copies;
  Index size;  ///< of an instance
  S* projected;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index first = heat.of_bundle(instance / copies, item % width / row);
    projected[instance * size + item] *= static_cast<S>(heat.value[first + item / width]);
  }
};
/// c̄_j = ⟨(inᵀ X)_j, (outᵀ Ȳ)_j⟩_b over the copies of a run. item: (j, bundle), group: run.
template <class S>
struct PairProducts {
  HeatView<S> heat;
  Divisor bundles;
  Index row, size, copies;
  const S *projected, *projected_bar;

  SHEAFNN_HD void operator()(Index item, Index run) const {
    double sum = 0;
    for (Index copy = 0; copy < copies; ++copy) {
      const Index first = (run * copies + copy) * size + item * row;
      for (Index at = first; at < first + row; ++at)
        sum += static_cast<double>(projected[at]) * static_cast<double>(projected_bar[at]);
    }
    heat.bar[heat.of_bundle(run, item % bundles) + item / bundles] = sum;
  }
};

/// Eigenpairs in the memory of an executor.
template <class Executor, class S>
struct BatchSpectrum {
  /// \throws std::runtime_error  as layers::HeatSpectrum
  BatchSpectrum(Executor& executor, const Graph& graph, const layers::HeatOptions& options)
      : BatchSpectrum(executor, layers::HeatSpectrum<S>(Execution(), graph, options, options.terms)) {}

  Index pairs;
  Array<Executor, double> values;
  Array<Executor, S> in, out;  ///< n × K

 private:
  BatchSpectrum(Executor& executor, const layers::HeatSpectrum<S>& of)
      : pairs(static_cast<Index>(of.values.size())),
        values(executor, "graph", of.values),
        in(executor, "graph", of.in.view()),
        out(executor, "graph", of.out.view()) {}
};

/// The components of a graph, their nodes one after another, in segments of at most `most` nodes of one component.
template <class S>
struct ComponentView {
  static constexpr std::int32_t most = 64;
  Index nodes = 0, segments = 0, components = 0;
  const std::int32_t* node = nullptr;           ///< by component
  const std::int32_t* segment = nullptr;        ///< places in `node` where they begin and end
  const std::int32_t* first_segment = nullptr;  ///< of every component, and the end
  const std::int32_t* component = nullptr;      ///< of every node
  const S *own = nullptr, *other = nullptr;     ///< a and b
};
/// Σ b_v x_v over a segment. item: (segment, column), group: instance.
template <class S>
struct SumSegment {
  ComponentView<S> graph;
  Divisor width;
  const S* x;
  S* out;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index segment = item / width;
    const S* column = x + instance * graph.nodes * width + item % width;
    S sum = S(0);
    for (std::int32_t k = graph.segment[segment]; k < graph.segment[segment + 1]; ++k) {
      const Index v = graph.node[k];
      sum += graph.other[v] * column[v * width];
    }
    out[instance * graph.segments * width + item] = sum;
  }
};
/// The sum over a component. A team of max_lanes per (component, column); group: instance.
template <class S>
struct SumComponent {
  using Scalar = S;
  static constexpr int outputs = 1;
  ComponentView<S> graph;
  Divisor width;
  const S* in;  ///< of SumSegment
  S* out;

  SHEAFNN_HD void part(Index item, Index instance, int lane, S* sums) const {
    const Index component = item / width, end = graph.first_segment[component + 1];
    const S* column = in + instance * graph.segments * width + item % width;
    for (Index k = graph.first_segment[component] + lane; k < end; k += max_lanes) sums[0] += column[k * width];
  }
  SHEAFNN_HD void finish(Index item, Index instance, const S* sums) const {
    out[instance * graph.components * width + item] = sums[0];
  }
};
/// y_u = a_u times the sum of its component. item: (node, column), group: instance.
template <class S>
struct SpreadComponent {
  ComponentView<S> graph;
  Divisor width;
  const S* in;  ///< of SumComponent
  S* y;

  SHEAFNN_HD void operator()(Index item, Index instance) const {
    const Index u = item / width, component = graph.component[u];
    y[instance * graph.nodes * width + item] =
        graph.own[u] * in[(instance * graph.components + component) * width + item % width];
  }
};

/// The projection on the kernel of a graph's Laplacian in the memory of an executor.
template <class Executor, class S>
class BatchLimit {
 public:
  BatchLimit(Executor& executor, const Graph& graph, const layers::NormalisedAdjacency<S>& adjacency,
             layers::AdjacencyNormalisation normalisation)
      : BatchLimit(executor, layers::HeatLimit<S>(graph, adjacency, normalisation)) {}

  /// The view of one operator, with b in place of a for its transpose.
  [[nodiscard]] ComponentView<S> view(bool transposed) const noexcept {
    ComponentView<S> r{component_.size(), segment_.size() - 1, first_segment_.size() - 1,
                       node_.data(),      segment_.data(),     first_segment_.data(),
                       component_.data(), own_.data(),         other_.data()};
    if (transposed) std::swap(r.own, r.other);
    return r;
  }

 private:
  struct Lists {
    explicit Lists(const layers::HeatLimit<S>& of) {
      std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(of.components()));
      for (Index u = 0; u < of.component().size(); ++u)
        members[static_cast<std::size_t>(of.component()[u])].push_back(static_cast<std::int32_t>(u));
      for (const std::vector<std::int32_t>& nodes : members) {
        first_segment.push_back(static_cast<std::int32_t>(segment.size()));
        for (std::size_t k = 0; k < nodes.size(); ++k) {
          if (k % ComponentView<S>::most == 0) segment.push_back(static_cast<std::int32_t>(node.size()));
          node.push_back(nodes[k]);
        }
      }
      first_segment.push_back(static_cast<std::int32_t>(segment.size()));
      segment.push_back(static_cast<std::int32_t>(node.size()));
    }
    std::vector<std::int32_t> node, segment, first_segment;
  };
  BatchLimit(Executor& executor, const layers::HeatLimit<S>& of) : BatchLimit(executor, of, Lists(of)) {}
  BatchLimit(Executor& executor, const layers::HeatLimit<S>& of, const Lists& lists)
      : node_(executor, "graph", lists.node),
        segment_(executor, "graph", lists.segment),
        first_segment_(executor, "graph", lists.first_segment),
        component_(executor, "graph", of.component().view()),
        own_(executor, "graph", of.own().view()),
        other_(executor, "graph", of.other().view()) {}

  Array<Executor, std::int32_t> node_, segment_, first_segment_, component_;
  Array<Executor, S> own_, other_;
};

}  // namespace sheafnn::batch::detail
