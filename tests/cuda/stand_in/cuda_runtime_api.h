/// \file
/// Stand-in for the CUDA Toolkit's header of this name (see cuda_runtime.h).
#pragma once

#include "cuda_runtime.h"
