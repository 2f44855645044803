// The parts of the networks that do not depend on the family of maps, compiled once for all models.
#define PROGRAMS_DEFINE_SHARED
#include "models/shared.hpp"
