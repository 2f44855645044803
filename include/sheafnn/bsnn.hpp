/// \file
/// Bayesian sheaf neural networks and neural sheaf diffusion: models, training, prediction. Other networks
/// (cooperative.hpp, flow.hpp, …) and the search for settings (search.hpp) have their own headers, because they cost
/// compile time.
///
///     #include <sheafnn/bsnn.hpp>
///     sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>> model({.features = 34, .channels = 16, .classes = 2}, /*seed*/ 0);
///     auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});
///     auto posterior = sheafnn::predict(model, data, {.samples = 20});
#pragma once

#include "sheafnn/bsnn/elbo.hpp"
#include "sheafnn/bsnn/given_sheaf.hpp"
#include "sheafnn/bsnn/layer_features.hpp"
#include "sheafnn/bsnn/learned_sheaf.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/presets.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph.hpp"
#include "sheafnn/layers.hpp"
#include "sheafnn/posterior/tangent_normal.hpp"
#include "sheafnn/uncertainty/metrics.hpp"
#include "sheafnn/uncertainty/sampling.hpp"
#include "sheafnn/uncertainty/temperature.hpp"
#include "sheafnn/version.hpp"

#ifdef SHEAFNN_COMPILED_MODELS  // by the CMake target sheafnn::models
#include "sheafnn/model_list.hpp"
#endif
