/// \file
/// The layers of sheaf networks, for computations of your own. They work on views of your arrays and have hand-written
/// backward passes.
///
/// SheafDiffusionLayer can be used alone; networks (bsnn.hpp) are made of the other layers.
#pragma once

#include "sheafnn/layers/batch_norm.hpp"
#include "sheafnn/layers/cooperative_layer.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/diffusion_layer.hpp"
#include "sheafnn/layers/dropout_layer.hpp"
#include "sheafnn/layers/encoder.hpp"
#include "sheafnn/layers/given_source.hpp"
#include "sheafnn/layers/initial_residual_layer.hpp"
#include "sheafnn/layers/laplacian_layer.hpp"
#include "sheafnn/layers/laplacian_step.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/node_embedding.hpp"
#include "sheafnn/layers/node_learner.hpp"
#include "sheafnn/layers/output_layer.hpp"
#include "sheafnn/layers/point_source.hpp"
#include "sheafnn/layers/polynomial_basis.hpp"
#include "sheafnn/layers/polynomial_diffusion_layer.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/layers/sheaf_diffusion_layer.hpp"
#include "sheafnn/layers/sheaf_learner.hpp"
#include "sheafnn/layers/variational_node_maps.hpp"
#include "sheafnn/layers/variational_source.hpp"
