/// \file
/// Convolutions, waves, copresheaves, attention and equations that read X_{l−1} (mixing_layers.hpp) in the batch engine on the host: against the networks
/// of the CPU, gradients along every coordinate, trainings against sheafnn::train, and what batches refuse.
#include <doctest/doctest.h>

#include <string>

#include "batch_comparison.hpp"
#include "batch_gradient.hpp"
#include "mixing_layers.hpp"
#include "refusal.hpp"
#include "sheafnn/bsnn/pooled_model.hpp"
#include "sheafnn/every_layer.hpp"
#include "training_comparison.hpp"

namespace test_batch_mixing {
namespace {

using namespace sheafnn;
using batch_checks::compare;
using batch_checks::small_options;
using batch_checks::small_problem;
using mixing_layers::Among, mixing_layers::Mixing;

constexpr double bound = 1e-11;  // as in test_batch_network.cpp
constexpr LayerForm forms[] = {LayerForm::convolution, LayerForm::wave, LayerForm::copresheaf};

ModelOptions options_of(LayerForm form, ModelOptions r = small_options()) {
  r.layer = form;
  r.layers = 3;
  return r;
}

/// Every bit of `choice` is an option.
AttentionOptions attention_of(int choice) {
  AttentionOptions r = {.heads = (choice & 1) != 0 ? 3 : 1, .width = 2};
  r.residual = (choice & 2) != 0;
  r.normalised = (choice & 4) != 0;
  r.transported = (choice & 8) != 0;
  r.random = choice % 3 != 1;
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: convolutions, waves and copresheaves", Model,
                   Mixing<PointMass<GeneralLinear<2>>>, Mixing<DefaultPosterior<SpecialOrthogonal<2>>>,
                   Mixing<DefaultPosterior<Diagonal<2>>>, Mixing<PointMass<Identity<2>>>) {
  for (const LayerForm form : forms) {
    CAPTURE(to_string(form));
    ModelOptions o = options_of(form);
    compare<Model>(o, {.samples = 2}, bound);
    compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound, small_problem(true));
    o.left_weights = false;
    o.linear = true;
    compare<Model>(o, {}, bound);
    o.right_weights = o.activation = false;
    o.layers = 1;
    compare<Model>(o, {}, bound);
    o = options_of(form);
    o.add_lp = o.add_hp = layers::has_fixed_filters(form);
    o.layer_norm = true;
    o.channels = 8;
    compare<Model>(o, {}, bound);
  }
}

TEST_CASE_TEMPLATE("the batch engine agrees with the CPU: attention", Model, Mixing<PointMass<GeneralLinear<2>>>,
                   Mixing<DefaultPosterior<SpecialOrthogonal<2>>>, Mixing<DefaultPosterior<Diagonal<2>>>,
                   Mixing<PointMass<Identity<2>>>) {
  for (int choice = 0; choice < 16; ++choice) {
    CAPTURE(choice);
    ModelOptions o = options_of(LayerForm::attention);
    o.attention = attention_of(choice);
    compare<Model>(o, {.samples = 2}, bound);
  }
  ModelOptions o = options_of(LayerForm::attention);
  compare<Model>(o, {.input_dropout = 0, .dropout = 0}, bound, small_problem(true));
  o.attention = attention_of(15);
  compare<Model>(o, {}, bound, small_problem(true));
  compare<Model>(o, {}, bound, small_problem(false, 300));  // arcs of a node in segments
  o.left_weights = false;
  o.linear = true;
  compare<Model>(o, {}, bound);
  o.right_weights = o.activation = false;
  o.layers = 1;
  compare<Model>(o, {}, bound);
  o = options_of(LayerForm::attention);
  o.attention = attention_of(9);
  o.attention.heads = 5;  // noise of a head from a second block
  o.layer_norm = true;
  o.channels = 8;
  compare<Model>(o, {.estimator = KlEstimator::monte_carlo}, bound);
}

TEST_CASE("the batch engine agrees with the CPU: waves, copresheaves and attention among diffusion layers") {
  using Model = Among<PointMass<Diagonal<2>>>;
  ModelOptions o = small_options();
  o.layer = LayerForm::diffusion;
  o.layers = 6;
  compare<Model>(o, {}, bound);
  o.linear = true;  // diffusion layers share launches
  compare<Model>(o, {}, bound);
  o.layers = 4;
  o.channels = 8;
  compare<Model>(o, {.dropout = 0}, bound);
  o.layers = 8;  // with a copresheaf
  compare<Model>(o, {}, bound);
  o.linear = false;
  o.layers = 7;
  compare<Model>(o, {}, bound);
  o.layers = 10;  // with attention between diffusion layers
  compare<Model>(o, {}, bound);
}

TEST_CASE_TEMPLATE("gradients of convolutions, waves and copresheaves in the batch engine, along every coordinate",
                   Model, Mixing<PointMass<GeneralLinear<2>>>, Mixing<DefaultPosterior<SpecialOrthogonal<2>>>,
                   Mixing<DefaultPosterior<Diagonal<2>>>, Mixing<PointMass<Identity<2>>>) {
  for (const LayerForm form : forms) {
    CAPTURE(to_string(form));
    ModelOptions o = options_of(form, tiny::options());
    o.add_lp = layers::has_fixed_filters(form);
    batch_checks::compare_gradient<Model>(o);
  }
}

TEST_CASE_TEMPLATE("gradients of attention in the batch engine, along every coordinate", Model,
                   Mixing<PointMass<GeneralLinear<2>>>, Mixing<DefaultPosterior<SpecialOrthogonal<2>>>,
                   Mixing<DefaultPosterior<Diagonal<2>>>, Mixing<PointMass<Identity<2>>>) {
  for (const int choice : {8, 13, 15}) {
    CAPTURE(choice);
    ModelOptions o = options_of(LayerForm::attention, tiny::options());
    o.attention = attention_of(choice);
    batch_checks::compare_gradient<Model>(o);
  }
}

TEST_CASE("gradients of waves, copresheaves and attention among diffusion layers, along every coordinate") {
  ModelOptions o = tiny::options();
  o.layer = LayerForm::diffusion;
  for (const Index layers : {5, 7, 8, 10}) {  // the last layer is a diffusion layer or a copresheaf
    CAPTURE(layers);
    o.layers = layers;
    for (const bool linear : {false, true}) {
      o.linear = linear;
      batch_checks::compare_gradient<Among<PointMass<Diagonal<2>>>>(o);
    }
  }
}

TEST_CASE(
    "training by the batch engine follows the CPU: convolutions, waves, copresheaves and attention, and seeds "
    "side by "
    "side") {
  using Waves = Mixing<PointMass<GeneralLinear<2>>>;
  using Rotations = Mixing<DefaultPosterior<SpecialOrthogonal<2>>>;
  const Dataset data = karate_club();
  ModelOptions small;
  small.features = data.feature_count();
  small.channels = 4;
  small.classes = data.class_count;
  const ModelOptions wave = options_of(LayerForm::wave, small),
                     convolution = options_of(LayerForm::convolution, small);
  const TrainOptions training = {.epochs = 12, .dropout = 0.2};
  training_comparison::compare_training_of(Waves(wave, 3), training, bound, data);
  training_comparison::compare_training_of(Rotations(convolution, 3), training, bound, data);
  training_comparison::compare_training_of(Rotations(options_of(LayerForm::copresheaf, small), 3), training, bound,
                                           data);
  ModelOptions attention = options_of(LayerForm::attention, small);
  training_comparison::compare_training_of(Waves(attention, 3), training, bound, data);
  attention.attention = attention_of(15);
  training_comparison::compare_training_of(Rotations(attention, 3), training, bound, data);
  // Without a distribution of maps, every draw of scores has maps of its own from the second layer on.
  training_comparison::compare_training_of(Waves(attention, 3),
                                           {.epochs = 12, .dropout = 0.2, .training_samples = 2}, bound, data);
  training_comparison::compare_seeds<Waves>(attention, data);
  training_comparison::compare_seeds<Waves>(wave, data);
}

TEST_CASE("copresheaves have neither fixed filters nor a Laplacian for harmonic pooling") {
  ModelOptions o = small_options();
  o.layer = LayerForm::diffusion;
  o.layers = 7;
  o.add_lp = true;
  batch::HostExecutor executor;
  CHECK(test::message_of([&] {
          static_cast<void>(
              batch_checks::run_batch<Among<PointMass<Diagonal<2>>>>(executor, small_problem(), o, {}));
        }) == "fixed filters: 1 is not allowed; the layer copresheaf has none");
  PooledOptions pooled;
  static_cast<ModelOptions&>(pooled) = options_of(LayerForm::copresheaf);
  pooled.pooling = Pooling::harmonic;
  CHECK(test::message_of([&] { static_cast<void>(PooledModel<AnyNsd<Identity<2>, double>>(pooled)); }) ==
        "layer: copresheaf is not allowed; harmonic pooling reads a Laplacian, and copresheaves have none");
}

TEST_CASE(
    "batches of models with all layers have every layer, and of models without a distribution random scores") {
  for (const LayerForm form : {LayerForm::diffusion, LayerForm::convolution, LayerForm::wave, LayerForm::attention,
                               LayerForm::copresheaf, LayerForm::directed}) {
    CAPTURE(to_string(form));
    compare<AnyNsd<Identity<2>, double>>(options_of(form), {}, bound);
  }
  ModelOptions o = options_of(LayerForm::attention);
  o.attention.random = true;
  compare<AnyBsnn<Identity<2>, double>>(o, {.samples = 3}, bound);
}

}  // namespace test_batch_mixing
