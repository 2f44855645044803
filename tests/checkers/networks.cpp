// A network of each kind, for checkers of sources; see ../../scripts/check_sources.sh.
#include <sheafnn/batch/trainer.hpp>
#include <sheafnn/cooperative.hpp>
#include <sheafnn/flow.hpp>
#include <sheafnn/layers.hpp>
#include <sheafnn/search.hpp>

namespace sheafnn {
template class Network<SheafModel<SpecialOrthogonal<3>, CayleyPosterior<SpecialOrthogonal<3>>, float>>;
template class Network<SheafModel<GeneralLinear<2>, PointMass<GeneralLinear<2>>, double>>;
}  // namespace sheafnn
