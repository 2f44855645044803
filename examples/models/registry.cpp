#define PROGRAMS_DEFINE_SHARED
#include "models/registry.hpp"

#include <sheafnn/core/errors.hpp>

#include "models/shared.hpp"

namespace programs {

#define SHEAFNN_FOR_EACH_DIMENSION(family) \
  extern const ModelEntry family##_1, family##_2, family##_3, family##_4, family##_5
SHEAFNN_FOR_EACH_DIMENSION(Identity);
SHEAFNN_FOR_EACH_DIMENSION(Diagonal);
SHEAFNN_FOR_EACH_DIMENSION(SpecialOrthogonal);
SHEAFNN_FOR_EACH_DIMENSION(GeneralLinear);
#undef SHEAFNN_FOR_EACH_DIMENSION

const ModelEntry& find_model(std::string_view maps, int stalk_dimension) {
#define SHEAFNN_ALL_DIMENSIONS(family) &family##_1, &family##_2, &family##_3, &family##_4, &family##_5
  for (const ModelEntry* entry :
       {SHEAFNN_ALL_DIMENSIONS(Identity), SHEAFNN_ALL_DIMENSIONS(Diagonal),
        SHEAFNN_ALL_DIMENSIONS(SpecialOrthogonal), SHEAFNN_ALL_DIMENSIONS(GeneralLinear)}) {
    if (entry->maps == maps && entry->stalk_dimension == stalk_dimension) return *entry;
  }
#undef SHEAFNN_ALL_DIMENSIONS
  sheafnn::throw_invalid_argument("maps, stalk dimension", sheafnn::concat(maps, ", ", stalk_dimension),
                                  "choose identity, diagonal, special-orthogonal or general-linear, and 1 to 5");
}

}  // namespace programs
