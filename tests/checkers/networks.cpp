// A network of each kind, for checkers of sources; see ../../scripts/check_sources.sh.
#include <sheafnn/batch/trainer.hpp>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/flow.hpp>
#include <sheafnn/layers.hpp>

namespace sheafnn {
template class Network<SheafModel<SpecialOrthogonal<3>, CayleyPosterior<SpecialOrthogonal<3>>, float>>;
template class Network<SheafModel<GeneralLinear<2>, PointMass<GeneralLinear<2>>, double>>;
}  // namespace sheafnn
