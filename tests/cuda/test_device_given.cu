/// \file
/// Networks with given maps, on connections and with posteriors around given maps on the GPU (device_batch.hpp).
#include "device_batch.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"

namespace test_device_given {
using namespace sheafnn;
using batch_checks::compare_executors;
using batch_checks::small_options;
using batch_checks::small_problem;

TEST_CASE("batches on the GPU agree with the host: given maps") {
  const batch_checks::Problem problem = small_problem();
  ModelOptions o = small_options();
  o.layers = 3;
  const auto sheaf_of = [&]<class Family>(std::uint64_t seed) {
    auto r = sheaf::random_sheaf<Family, double>(problem.graph, Stream{seed, Purpose::user});
    if constexpr (sheaf::may_have_edge_weights<Family>) r.set_edge_weight(3, 0.5);
    return r;
  };
  using Rotations = SpecialOrthogonal<3>;
  compare_executors<Snn<Rotations, double>>(o, {}, problem,
                                            GivenMaps<Rotations>(std::vector{sheaf_of.operator()<Rotations>(1),
                                                                             sheaf_of.operator()<Rotations>(2),
                                                                             sheaf_of.operator()<Rotations>(3)}));
  using Matrices = GeneralLinear<2>;
  compare_executors<Snn<Matrices, double>>(o, {}, problem, GivenMaps<Matrices>(sheaf_of.operator()<Matrices>(1)));
  compare_executors<Bgsnn<Rotations, double>>(o, {.samples = 2}, problem,
                                              AroundGiven<Rotations>(sheaf_of.operator()<Rotations>(1)));
  compare_executors<GivenSheafFlow<Matrices, double>>(batch_checks::small_flow_options(), {}, problem,
                                                      GivenMaps<Matrices>(sheaf_of.operator()<Matrices>(1)));
}

TEST_CASE_TEMPLATE("batches on the GPU agree with the host: connections", Model, ConnNsd<2, double>,
                   BconnNsd<3, double>) {
  ConnectionModelOptions o;
  static_cast<ModelOptions&>(o) = small_options();
  compare_executors<Model>(o, {});
  o.layers = 3;
  o.channels = 8;
  compare_executors<Model>(o, {}, small_problem(false, 300));
}

}  // namespace test_device_given
