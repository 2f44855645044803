/// \file
/// Rotations: parametrisations, Cayley transform, uniform rotations, and distributions on SO(N) and spheres.
#pragma once

#include "sheafnn/rotation/angular_central_gaussian.hpp"
#include "sheafnn/rotation/cayley_distribution.hpp"
#include "sheafnn/rotation/cayley_kl.hpp"
#include "sheafnn/rotation/cayley_transform.hpp"
#include "sheafnn/rotation/euler.hpp"
#include "sheafnn/rotation/exponential.hpp"
#include "sheafnn/rotation/haar.hpp"
#include "sheafnn/rotation/householder.hpp"
#include "sheafnn/rotation/inverse_cayley_transform.hpp"
#include "sheafnn/rotation/moebius.hpp"
#include "sheafnn/rotation/nearest_rotation.hpp"
#include "sheafnn/rotation/operations.hpp"
#include "sheafnn/rotation/parametrisation.hpp"
#include "sheafnn/rotation/quaternion.hpp"
#include "sheafnn/rotation/skew.hpp"
#include "sheafnn/rotation/wrapped_cauchy.hpp"
