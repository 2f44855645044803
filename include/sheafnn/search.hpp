/// \file
/// The search for settings among types of models. To search cooperative models, include cooperative.hpp as well.
///
///     #include <sheafnn/search.hpp>
///     const auto found = sheafnn::search<sheafnn::Nsd<sheafnn::Diagonal<2>>>(data, {.seconds = 60});
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/search_models.hpp"
