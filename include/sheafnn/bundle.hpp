/// \file
/// Bundle networks: models, training, prediction.
///
///     #include <sheafnn/bundle.hpp>
///     sheafnn::Bunn<2> model({.features = 34, .bundles = 32, .classes = 2});
///     auto result = sheafnn::train(model, data, data.splits[0], {.epochs = 200});
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/bundle_model.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"
#include "sheafnn/bsnn/bundle_settings.hpp"
#include "sheafnn/bsnn/bundle_sheaf_use.hpp"
#include "sheafnn/bsnn/learned_bundle.hpp"
