/// \file
/// Sheaf hypergraph networks, point estimates and Bayesian: hypergraphs, models, training, prediction.
///
///     #include <sheafnn/hypergraph.hpp>
///     sheafnn::SheafHyperGnn<sheafnn::Diagonal<4>> model({.features = 34, .channels = 16, .classes = 2}, /*seed*/ 0);
///     auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});   // data: a HypergraphDataset
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/hypergraph_network.hpp"
#include "sheafnn/layers/hypergraph_layer.hpp"
#include "sheafnn/sheaf/hypergraph_sheaf.hpp"
