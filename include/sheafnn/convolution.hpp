/// \file
/// Networks of convolutions on given sheaves. Includes sheafnn/bsnn.hpp.
///
///     sheafnn::SheafConvolutions<sheafnn::Diagonal<1>> model({.features = p, .classes = c}, seed,
///                                                            sheafnn::GivenMaps(sheafnn::signed_sheaf(graph, signs)));
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/bsnn/convolution_network.hpp"
#include "sheafnn/sheaf/labelled_sheaf.hpp"
