/// \file
/// GivenSource: the sheaves of a network whose maps are given (posterior/given_maps.hpp). Nothing flows back into them.
#pragma once

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/layers/given_lanes.hpp"
#include "sheafnn/layers/sheaf_learner_options.hpp"
#include "sheafnn/layers/sheaf_source.hpp"
#include "sheafnn/posterior/given_maps.hpp"

namespace sheafnn::layers {

/// Buffers and passes on one graph; see sheaf_source.hpp. Maps are converted to S in the constructor, and the Laplacian's
/// blocks are computed once, in the first build() of each sheaf. Unchecked: indices of sheaves and blocks, and that
/// `blocks` are the graph's.
template <RestrictionMapFamily Family, class S>
class GivenSource {
 public:
  using Map = typename SheafBlocks<Family, S>::Map;

  /// `graph` and `blocks` must outlive the source.
  ///
  /// \throws std::invalid_argument  a number of sheaves that is neither 1 nor `sheaves`, or sheaves of another graph
  GivenSource(const Graph& graph, const EdgeBlocks<S>& blocks, const GivenMaps<Family>& given, Index sheaves,
              Normalisation normalisation, const SheafLearnerOptions& = {});

  [[nodiscard]] const SheafStack<Family, S>& stack() const noexcept { return stack_; }
  [[nodiscard]] SheafStack<Family, S>& stack() noexcept { return stack_; }
  [[nodiscard]] SheafBlocksGradient<Family, S>& gradient() noexcept { return stack_.gradient(); }
  /// Edge weights w_e of a sheaf, lanes-innermost, or null where all are 1.
  [[nodiscard]] const S* edge_weights(Index sheaf) const noexcept {
    const Buffer<S>& weights = weights_[static_cast<std::size_t>(sheaf)];
    return weights.size() == 0 ? nullptr : weights.data();
  }
  template <class Use>
  void for_masks(const Use&) {}

  void infer(Execution, const SheafSourceWeights<const S>&, const MatrixView<const S>&, S* = nullptr) {}

  /// Computes the blocks of the sheaf input.sheaf, where they are not there yet.
  void build(Execution execution, const SheafSourceWeights<const S>&, const SheafInput<S>& input) {
    if (built_[static_cast<std::size_t>(input.sheaf)]) return;
    stack_[input.sheaf].build(execution, edge_weights(input.sheaf));
    built_[static_cast<std::size_t>(input.sheaf)] = true;
  }
  /// The maps of a block of edges.
  void map_block(Index sheaf, Index block, Map (&map)[2]) const {
    for (int side = 0; side < 2; ++side) {
      map[side] = SheafBlocks<Family, S>::load_map(stack_[sheaf].maps(block, side));
    }
  }

  void work_in(S*) const noexcept {}
  /// Sheaves stay.
  void set_memory(Index, bool, bool) const noexcept {}
  void restore(Index, Execution) const noexcept {}
  void begin_backward(Execution, double, bool = false) {}
  void backward(Execution, const SheafSourceWeights<const S>&, const SheafInput<S>&, double, const MatrixView<S>&,
                const MatrixView<S>&, const SheafSourceWeights<S>&) {}
  void finish_backward(Execution, const SheafSourceWeights<const S>&, const MatrixView<S>&, const MatrixView<S>&,
                       const SheafSourceWeights<S>&, const S* = nullptr) {}

 private:
  [[nodiscard]] static Index checked_count(const Graph& graph, const GivenMaps<Family>& given, Index sheaves) {
    given.check_count(sheaves);
    given.check_graph(graph);
    return given.count();
  }
  SheafStack<Family, S> stack_;
  std::vector<Buffer<S>> weights_;  ///< of every sheaf; empty where all are 1
  std::vector<bool> built_;
};

template <RestrictionMapFamily Family, class S>
GivenSource<Family, S>::GivenSource(const Graph& graph, const EdgeBlocks<S>& blocks,
                                    const GivenMaps<Family>& given, Index sheaves, Normalisation normalisation,
                                    const SheafLearnerOptions&)
    : stack_(graph, blocks, checked_count(graph, given, sheaves), normalisation, true),
      weights_(static_cast<std::size_t>(given.count())),
      built_(weights_.size(), false) {
  for (Index s = 0; s < given.count(); ++s) {
    detail::load_given_maps<S>(given[s], blocks,
                               [&](Index block, int side) { return stack_[s].maps(block, side); });
    weights_[static_cast<std::size_t>(s)] = detail::given_weights(given[s], blocks);
  }
}

}  // namespace sheafnn::layers
