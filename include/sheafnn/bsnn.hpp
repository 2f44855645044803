/// \file
/// Bayesian sheaf neural networks, neural sheaf diffusion and cooperative sheaf networks: models, training, prediction.
///
///     #include <sheafnn/bsnn.hpp>
///     sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>> model({.features = 34, .channels = 16, .classes = 2}, /*seed*/
///     0); auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});
///     auto posterior = sheafnn::predict(model, data, {.samples = 20});
#pragma once

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/given_sheaf.hpp"
#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/learned_node_maps.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/presets.hpp"
#include "sheafnn/bsnn/search_models.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph.hpp"
#include "sheafnn/layers.hpp"
#include "sheafnn/posterior/tangent_normal.hpp"
#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/sampling.hpp"
#include "sheafnn/uncertainty/temperature.hpp"
#include "sheafnn/version.hpp"
