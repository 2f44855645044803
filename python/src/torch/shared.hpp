/// \file
/// What does not depend on the family of maps, compiled once in shared.cpp: in doubles; in floats it comes with the models.
#pragma once

#include "models/registry.hpp"
#include "models/shared.hpp"

SHEAFNN_SHARED_BY_MODELS(extern template, double)
