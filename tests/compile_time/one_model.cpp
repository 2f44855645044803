// What a user's first program costs the compiler: the umbrella header and one model, all of it. See
// ../check_compile_time.sh.
#include <sheafnn/bsnn.hpp>

template class sheafnn::SheafModel<sheafnn::SpecialOrthogonal<3>, sheafnn::CayleyPosterior<sheafnn::SpecialOrthogonal<3>>, float>;
