/// \file
/// DirectedPhases: the phases e^{iφ_a} of the arcs of directed layers, with φ_a = 2π q θ_a for θ_a =
/// direction_of(graph, a), and the random phases of the option `random`. For every edge {u, v}, u < v, φ is drawn from
/// a wrapped Cauchy distribution C_2(R(2π q θ), κ). Its concentration κ belongs to the layer. −φ is the angle of the
/// reverse arc. The KL term is KL(C_2 ‖ uniform), the same for every edge. On a part of a graph φ belongs to the arc from
/// the node with the smaller index in the whole graph. The KL term is the part's share. Source: math: "Directed sheaves"
/// (3.52, 3.57); the posterior is posterior/phase.hpp.
///
/// Unchecked: sizes of arrays, that a draw came before its backward pass.
#pragma once

#include <cmath>
#include <numbers>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/graph/directed_arcs.hpp"
#include "sheafnn/graph/graph.hpp"
#include "sheafnn/layers/layer_form.hpp"
#include "sheafnn/layers/node_chunks.hpp"
#include "sheafnn/layers/noise.hpp"
#include "sheafnn/posterior/phase.hpp"

namespace sheafnn::layers {

/// Buffers of one layer on one graph.
template <class S>
class DirectedPhases {
  using Posterior = PhasePosterior<S>;

 public:
  /// Values of explicit noise per arc: a uniform rotation of the plane, row by row. Arcs to smaller nodes do not
  /// read theirs.
  static constexpr Index noise_size = Posterior::noise_size;

  /// `graph` must outlive the phases.
  DirectedPhases(const Graph& graph, const DirectedOptions& options)
      : graph_(&graph),
        random_(options.random),
        phase_(2 * graph.arc_count()),
        angle_bar_(random_ ? graph.edge_count() : 0),
        chunks_(detail::chunks_of_groups(graph.edge_count())),
        partial_(random_ ? chunks_.count : 0) {
    for (Index a = 0; a < graph.arc_count(); ++a) {
      const double angle = 2 * std::numbers::pi * options.charge * direction_of(graph, a);
      phase_[2 * a] = static_cast<S>(std::cos(angle));
      phase_[2 * a + 1] = static_cast<S>(std::sin(angle));
    }
    if (random_) centre_ = phase_;
  }

  [[nodiscard]] bool random() const noexcept { return random_; }
  /// Cosine and sine of the phase of an arc.
  [[nodiscard]] SHEAFNN_INLINE S cosine(Index arc) const { return phase_[2 * arc]; }
  [[nodiscard]] SHEAFNN_INLINE S sine(Index arc) const { return phase_[2 * arc + 1]; }

  /// Draws all phases, where they are random. \param raw  κ before its activation
  void draw(Execution execution, S raw, const Noise<S>& noise) {
    concentration_ = Posterior::concentration(raw);
    parallel_for(execution, graph_->edge_count(), 64, [&](Index begin, Index end) {
      for (Index e = begin; e < end; ++e) {
        const Index arc = drawn_arc(e), reverse = graph_->reverse(arc);
        S uniform[Posterior::noise_size], phase[2];
        if (noise.values != nullptr) {
          const S* const row = noise.values + arc * noise_size;
          for (int k = 0; k < Posterior::noise_size; ++k) uniform[k] = row[Posterior::noise_index(k)];
        } else {
          Stream stream = noise.stream;
          stream.upper = static_cast<std::uint32_t>(address(arc) >> 32);
          posterior_.draw_noise(stream, static_cast<std::uint32_t>(address(arc)), uniform);
        }
        posterior_.sample({centre_[2 * arc], centre_[2 * arc + 1]}, concentration_.kappa, uniform, phase);
        phase_[2 * arc] = phase_[2 * reverse] = phase[0];
        phase_[2 * arc + 1] = phase[1];
        phase_[2 * reverse + 1] = -phase[1];
      }
    });
  }
  /// KL of the distribution and the uniform one.
  [[nodiscard]] double kl() const {
    if (!random_) return 0;
    return own_share() * static_cast<double>(posterior_.kl(concentration_.kappa));
  }
  /// The derivative of every edge's φ, which the layer's backward pass writes; null where phases are not random.
  [[nodiscard]] S* angle_bar() noexcept { return random_ ? angle_bar_.data() : nullptr; }
  /// The derivative of κ before its activation, from angle_bar(). \param kl_weight  factor of kl() in the loss
  [[nodiscard]] S backward(Execution execution, double kl_weight) {
    if (graph_->part() != nullptr) {  // both parts have the whole derivative of a cut edge
      for (const std::int32_t e : graph_->part()->numbers().cut) angle_bar_[e] *= S(0.5);
    }
    chunks_.for_each(execution, [&](Index chunk, Index begin, Index end) {
      S sum = S(0);
      for (Index e = begin; e < end; ++e) {
        const Index arc = drawn_arc(e);
        const S sign = arc == graph_->forward_arc(e) ? S(1) : S(-1);  // angle_bar() is of the forward arc
        sum += posterior_.kappa_bar({centre_[2 * arc], centre_[2 * arc + 1]}, concentration_.kappa,
                                    {cosine(arc), sine(arc)}, sign * angle_bar_[e]);
      }
      partial_[chunk] = sum;
    });
    S sum = posterior_.kl_bar(concentration_.kappa, static_cast<S>(kl_weight * own_share()));
    for (Index chunk = 0; chunk < chunks_.count; ++chunk) sum += partial_[chunk];
    return sum * concentration_.slope;
  }

 private:
  /// The index of an arc in the whole graph, at which its noise lies.
  [[nodiscard]] Index address(Index arc) const {
    return graph_->part() == nullptr ? arc : graph_->part()->numbers().arc[arc];
  }
  /// The arc of an edge whose phase is drawn: the one from the node with the smaller index in the whole graph.
  [[nodiscard]] Index drawn_arc(Index edge) const {
    const Index arc = graph_->forward_arc(edge), reverse = graph_->reverse(arc);
    return address(arc) < address(reverse) ? arc : reverse;
  }
  /// The part's share of a term that belongs to the whole graph.
  [[nodiscard]] double own_share() const {
    const GraphPart* part = graph_->part();
    if (part == nullptr) return 1;
    return static_cast<double>(part->numbers().own) / static_cast<double>(part->numbers().total_nodes);
  }

  const Graph* graph_;
  bool random_;
  Posterior posterior_;
  sheafnn::detail::Concentration<S> concentration_ = {};
  Buffer<S> phase_, centre_;  ///< of every arc: cosine and sine
  Buffer<S> angle_bar_;
  NodeChunks chunks_;  ///< of edges
  Buffer<S> partial_;  ///< per chunk of edges: κ̄
};

}  // namespace sheafnn::layers
