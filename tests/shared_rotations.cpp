#include "shared_rotations.hpp"

SHEAFNN_SHARED_ROTATIONS(template)
