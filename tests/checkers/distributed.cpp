// The folder distributed/, for checkers of sources; see ../../scripts/check_sources.sh.
#include <sheafnn/bsnn.hpp>
#include <sheafnn/distributed.hpp>

namespace sheafnn::distributed {
using Checked = Bsnn<SpecialOrthogonal<3>>;
TrainResult checked(Checked& model, DistributedData& part, const Split& split) { return train(model, part, split, {}); }
}  // namespace sheafnn::distributed
