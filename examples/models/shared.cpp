// What shared.hpp declares.
#define PROGRAMS_DEFINE_SHARED
#include "models/shared.hpp"
