#include "models/decompositions.hpp"

SHEAFNN_SHARED_DECOMPOSITIONS(template)
