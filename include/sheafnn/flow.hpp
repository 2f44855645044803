/// \file
/// Continuous-time sheaf diffusion: models, training, prediction. It needs Boost.Odeint (headers only).
///
///     #include <sheafnn/flow.hpp>
///     sheafnn::BayesianSheafFlow<sheafnn::SpecialOrthogonal<3>> model({.features = 34, .classes = 2, .time = 2});
///     auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/flow_network.hpp"
#include "sheafnn/layers/flow_layer.hpp"
