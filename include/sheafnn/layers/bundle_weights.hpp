/// \file
/// Weights of bundle networks as typed views, with their declarations (weights.hpp). They belong to two linear layers in a
/// row, to the learners of a bundle's rotations, and to a layer.
///
/// Unchecked: as for other weights (weights.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/layers/heat_weights.hpp"
#include "sheafnn/layers/weights.hpp"

namespace sheafnn::layers {

/// Which learner of a bundle's rotations: see bundle_learner.hpp.
enum class BundleLearnerKind : std::uint8_t { mlp, sage, sage_residual };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(BundleLearnerKind) { return std::array{"mlp", "sage", "sage-residual"}; }

/// How diffused features are mixed: see bundle_layer.hpp.
enum class BundleMixing : std::uint8_t { linear, feed_forward };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(BundleMixing) { return std::array{"linear", "feed-forward"}; }

/// Sizes of a learner.
struct BundleLearnerOptions {
  BundleLearnerKind kind = BundleLearnerKind::mlp;
  Index inputs = 0, width = 0, outputs = 0;  ///< h, g, o
  Index layers = 1;                          ///< convolutions; not of mlp

  friend bool operator==(const BundleLearnerOptions&, const BundleLearnerOptions&) = default;
};

/// Two linear layers in a row.
template <class T>
struct FeedForwardWeights {
  LinearWeights<T> hidden, output;

  /// \param first_bias  the initial bias of the second, as in LinearWeights
  SHEAFNN_NOINLINE void declare(ParameterList<T>& list, const std::string& name, Index inputs, Index width,
                                Index outputs, InitialValues first_bias = {}) {
    hidden.declare(list, name + ".hidden", width, inputs);
    output.declare(list, name + ".output", outputs, width, std::move(first_bias));
  }
};

/// Weights of a learner.
template <class T>
struct BundleLearnerWeights {
  FeedForwardWeights<T> ends;                 ///< of mlp; for sage_residual the layers before and after the blocks
  std::vector<SageWeights<T>> convolutions;   ///< of sage
  std::vector<FeedForwardWeights<T>> blocks;  ///< of sage_residual
  std::vector<NormWeights<T>> norms;          ///< of sage_residual: before every block, and before the end

  /// \param raised  indices of outputs whose bias starts at a value of its own, and that value
  void declare(ParameterList<T>& list, const std::string& name, const BundleLearnerOptions& options,
               const std::vector<std::pair<Index, double>>& raised) {
    const Index g = options.width;
    if (options.kind == BundleLearnerKind::sage) {
      convolutions.resize(static_cast<std::size_t>(options.layers));
      for (std::size_t k = 0; k < convolutions.size(); ++k) {
        const Index in = k == 0 ? options.inputs : g;
        const bool last = k + 1 == convolutions.size();
        convolutions[k].declare(list, options.layers == 1 ? name : detail::concat(name, ".", k),
                                last ? options.outputs : g, in, false,
                                last ? replaced_values(uniform_values(in), raised) : InitialValues());
      }
      return;
    }
    ends.declare(list, name, options.inputs, g, options.outputs, replaced_values(uniform_values(g), raised));
    if (options.kind == BundleLearnerKind::mlp) return;
    blocks.resize(static_cast<std::size_t>(options.layers));
    norms.resize(blocks.size() + 1);
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      norms[k].declare(list, detail::concat(name, ".", k, ".norm"), g);
      blocks[k].declare(list, detail::concat(name, ".", k), 2 * g, g, g);
    }
    norms.back().declare(list, name + ".norm", g);
  }
};

/// Weights of a layer of width h.
template <class T>
struct BundleWeights {
  HeatWeights<T> heat;
  NormWeights<T> norm;            ///< empty without
  LinearWeights<T> linear;        ///< W and b, h → h; empty with feed_forward
  FeedForwardWeights<T> forward;  ///< 2h → h → h; empty with linear

  /// \param number  index of the layer
  void declare(ParameterList<T>& list, const HeatOptions& diffusion, BundleMixing mixing, bool normed,
               Index bundles, Index h, Index number) {
    const std::string mix = detail::concat("mix.", number);
    heat.declare(list, diffusion, bundles, number);
    if (normed) norm.declare(list, detail::concat("norm.", number), h);
    if (mixing == BundleMixing::linear) {
      linear.declare(list, mix, h, h);
    } else {
      forward.declare(list, mix, 2 * h, h, h);
    }
  }
};

}  // namespace sheafnn::layers

namespace sheafnn {

using layers::BundleLearnerKind;
using layers::BundleMixing;

}  // namespace sheafnn
