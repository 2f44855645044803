#include "shared.hpp"

SHEAFNN_SHARED_BY_MODELS(template, double)
