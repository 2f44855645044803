/// \file
/// The published settings of bundle networks for five graphs of the heterophilous benchmark. All have planar bundles
/// with angles, a GraphSAGE learner of the rotations in every layer, and Taylor expansions with a fixed time.
///
///     sheafnn::apply(sheafnn::BundleSetting::roman_empire, options, training);
///
/// Source: Bundle Neural Networks (Bamberger et al.), scripts of the authors' code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sheafnn/bsnn/bundle_options.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/core/names.hpp"

namespace sheafnn {

/// The graph of a setting.
enum class BundleSetting : std::uint8_t { roman_empire, amazon_ratings, minesweeper, tolokers, questions };
/// Its names, in the order of the enumeration.
[[nodiscard]] constexpr auto names_of(BundleSetting) {
  return std::array{"roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions"};
}

/// Sets the options of the network, except the sizes that the data determine, and the learning rate, decays and dropouts
/// of the training. The dimension of the bundles is 2. Takes any options.
inline void apply(BundleSetting setting, BundleOptions& model, TrainOptions& training) {
  struct Values {
    Index layers, learner_layers, bundles, terms;
    double time;
  };
  constexpr std::array<Values, 5> values = {{
      {8, 8, 256, 8, 0.4},  // roman-empire
      {2, 0, 256, 4, 1.5},  // amazon-ratings: no convolutions
      {8, 8, 256, 8, 1},    // minesweeper
      {6, 7, 256, 8, 1},    // tolokers
      {6, 6, 128, 8, 1},    // questions
  }};
  const Values& v = values[static_cast<std::size_t>(setting)];
  model.layers = v.layers;
  model.bundles = v.bundles;
  model.channels = 1;
  model.feature_treatment = FeatureTreatment::none;
  model.learner = v.learner_layers > 0 ? BundleLearnerKind::sage_residual : BundleLearnerKind::mlp;
  model.learner_layers = v.learner_layers > 0 ? v.learner_layers : 1;
  model.learner_width = 0;
  model.parametrisation = rotation::RotationParametrisation::euler;
  model.normalisation = AdjacencyNormalisation::symmetric;
  model.expansion = HeatExpansion::taylor;
  model.terms = v.terms;
  model.time = v.time;
  model.learned_time = false;
  model.mixing = BundleMixing::feed_forward;
  model.layer_norm = model.residual = true;
  training.learning_rate = 3e-5;
  training.sheaf_learning_rate = 0;
  training.weight_decay = training.sheaf_decay = 0;
  training.input_dropout = 0;
  training.dropout = 0.2;
}

}  // namespace sheafnn
