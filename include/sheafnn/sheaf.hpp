/// \file
/// Everything about cellular sheaves: families of restriction maps, coboundary, Laplacians, harmonic space,
/// diffusion.
#pragma once

#include "sheafnn/graph/graph.hpp"
#include "sheafnn/sheaf/approximate_sections.hpp"
#include "sheafnn/sheaf/blocks.hpp"
#include "sheafnn/sheaf/cellular_sheaf.hpp"
#include "sheafnn/sheaf/chebyshev_subspace.hpp"
#include "sheafnn/sheaf/coboundary.hpp"
#include "sheafnn/sheaf/diffusion.hpp"
#include "sheafnn/sheaf/eigenpairs.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/family.hpp"
#include "sheafnn/sheaf/harmonic.hpp"
#include "sheafnn/sheaf/harmonic_extension.hpp"
#include "sheafnn/sheaf/hypergraph_sheaf.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/laplacian_blocks.hpp"
#include "sheafnn/sheaf/laplacian_operator.hpp"
#include "sheafnn/sheaf/normalisation.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "sheafnn/sheaf/shift_invert.hpp"
#include "sheafnn/sheaf/sparse_factor.hpp"
#include "sheafnn/sheaf/symmetric_eigen.hpp"
