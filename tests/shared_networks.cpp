#include "shared_networks.hpp"

SHEAFNN_SHARED_BY_MODELS(template, float)
SHEAFNN_SHARED_BY_MODELS(template, double)
SHEAFNN_SHARED_IDENTITY(template)
