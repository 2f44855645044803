// The umbrella header and one model, all of it, which check_headers.sh compiles.
#include <sheafnn/bsnn.hpp>

template class sheafnn::SheafModel<sheafnn::SpecialOrthogonal<3>, sheafnn::CayleyPosterior<sheafnn::SpecialOrthogonal<3>>, float>;
