/// \file
/// Phases of the arcs of a directed layer of a batch, and kernels that draw them. Source: math: "Directed sheaves" (3.52,
/// 3.57). The distribution: posterior/phase.hpp. For one network: layers/directed_phases.hpp.
#pragma once

#include <cstdint>

#include "sheafnn/batch/gradient_sums.hpp"
#include "sheafnn/batch/graph.hpp"
#include "sheafnn/batch/run.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/posterior/phase.hpp"
#include "sheafnn/random/stream.hpp"

namespace sheafnn::batch::detail {

/// Phases of the arcs from smaller to larger nodes; their reverses have the other sign.
template <class S>
struct PhaseView {
  const std::int8_t* direction;  ///< GraphView::direction
  Index edges;
  S cosine, sine;  ///< of 2πq
  const S* drawn;  ///< cosine and sine per edge, of the first instance; null: phases are not random

  [[nodiscard]] SHEAFNN_HD PhaseView of(Index instance) const {
    PhaseView r = *this;
    if (drawn != nullptr) r.drawn += instance * 2 * edges;
    return r;
  }
  /// The phase of the direction of an edge.
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void centre(std::uint32_t edge, S (&phase)[2]) const {
    const int theta = direction[edge];
    phase[0] = theta == 0 ? S(1) : cosine;
    phase[1] = static_cast<S>(theta) * sine;
  }
  SHEAFNN_HD SHEAFNN_KERNEL_INLINE void load(std::uint32_t edge, S (&phase)[2]) const {
    if (drawn == nullptr) {
      centre(edge, phase);
    } else {
      const Index first = 2 * static_cast<Index>(edge);
      phase[0] = drawn[first];
      phase[1] = drawn[first + 1];
    }
  }
};

/// κ of each run, before its activation.
template <class S>
struct PhaseConcentration {
  const S* raw;  ///< of run 0
  Index stride;

  [[nodiscard]] SHEAFNN_HD sheafnn::detail::Concentration<S> of(Index run) const {
    return PhasePosterior<S>::concentration(raw[run * stride]);
  }
};

/// item: edge, group: instance.
template <class S>
struct DrawPhases {
  GraphView<S> graph;
  PhaseView<S> phases;
  PhaseConcentration<S> concentration;
  const Run* runs;
  Pass pass;
  std::uint32_t layer;
  S* drawn;

  SHEAFNN_HD void operator()(Index edge, Index instance) const {
    using Posterior = PhasePosterior<S>;
    const Index run = pass.run_of(instance);
    S noise[Posterior::noise_size], centre[2], phase[2];
    const Posterior posterior;
    posterior.draw_noise(pass.stream(runs[run], Purpose::layer_noise, layer, instance),
                         static_cast<std::uint32_t>(graph.pair_arc[edge]), noise);
    phases.centre(static_cast<std::uint32_t>(edge), centre);
    posterior.sample(centre, concentration.of(run).kappa, noise, phase);
    S* const to = drawn + 2 * (instance * graph.edges + edge);
    to[0] = phase[0];
    to[1] = phase[1];
  }
};

/// The KL term of a layer; one item, group: run.
template <class S>
struct PhaseKl {
  PhaseConcentration<S> concentration;
  double* out;
  Index stride;

  SHEAFNN_HD void operator()(Index, Index run) const {
    out[run * stride] = static_cast<double>(PhasePosterior<S>().kl(concentration.of(run).kappa));
  }
};

/// Partial sums of the derivative of κ before its activation, with the KL term in the first. item: chunk of the edges of all
/// copies, group: run.
template <class S>
struct PhaseGradient {
  PhaseView<S> phases;
  PhaseConcentration<S> concentration;
  const Run* runs;
  Index copies;
  Divisor edges;
  RowChunks chunks;    ///< of copies · m edges
  const S* angle_bar;  ///< m per instance
  S* out;
  Index out_run;

  /// The number of chunks, at least one, for the KL term of a graph without edges.
  [[nodiscard]] static Index count(const RowChunks& chunks) noexcept {
    return chunks.rows > 0 ? chunks.count() : 1;
  }

  SHEAFNN_HD void operator()(Index chunk, Index run) const {
    const PhasePosterior<S> posterior;
    const auto kappa = concentration.of(run);
    S sum = chunk == 0 ? posterior.kl_bar(kappa.kappa, static_cast<S>(runs[run].kl_weight)) : S(0);
    for (Index i = chunks.begin(chunk); i < chunks.end(chunk); ++i) {
      const Index edge = i % edges, instance = run * copies + i / edges;
      S centre[2], phase[2];
      phases.centre(static_cast<std::uint32_t>(edge), centre);
      phases.of(instance).load(static_cast<std::uint32_t>(edge), phase);
      sum += posterior.kappa_bar(centre, kappa.kappa, phase, angle_bar[instance * Index{edges} + edge]);
    }
    out[run * out_run + chunk] = kappa.slope * sum;
  }
};

}  // namespace sheafnn::batch::detail
