#include "shared_networks.hpp"

SHEAFNN_SHARED_LEARNED(template, SpecialOrthogonal)
