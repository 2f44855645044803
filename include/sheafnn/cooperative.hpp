/// \file
/// Cooperative sheaf networks, point estimates and Bayesian: models, training, prediction, learned node maps.
///
///     #include <sheafnn/cooperative.hpp>
///     sheafnn::Bcsnn<3> model({.features = 34, .channels = 16, .classes = 2}, /*seed*/ 0);
///     auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/learned_node_maps.hpp"
