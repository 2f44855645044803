/// \file
/// Pairs of nodes as targets: splits of edges, negative pairs, losses, training, prediction, and metrics of ranked
/// links.
///
///     #include <sheafnn/links.hpp>
///     const sheafnn::EdgeTargets links = sheafnn::split_links(data.graph, {.seed = 1});
///     sheafnn::Bsnn<sheafnn::Diagonal<2>> model({.features = data.feature_count(), .classes = 16}, /*seed*/ 0);
///     auto result = sheafnn::train(model, links.graph, data.features, sheafnn::link_loss(links), links.split);
///     auto prediction = sheafnn::predict_links(model, links.graph, data.features, links.pairs);
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/edge_loss.hpp"
#include "sheafnn/bsnn/edge_prediction.hpp"
#include "sheafnn/bsnn/pair_head.hpp"
#include "sheafnn/graph/edge_split.hpp"
#include "sheafnn/graph/negative_pairs.hpp"
#include "sheafnn/uncertainty/link_ranks.hpp"
