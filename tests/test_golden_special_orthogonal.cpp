/// \file
/// Networks with special orthogonal maps against the golden values (golden_case.hpp).
#include <doctest/doctest.h>

#include "golden_case.hpp"

namespace test_golden_special_orthogonal {
namespace {

using sheafnn::Bsnn;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;

}  // namespace

TEST_CASE("golden values: special orthogonal maps, double precision") {
  golden::check<Nsd<SpecialOrthogonal<2>, double>>("nsd_so2", golden::double_bounds);
  golden::check<Nsd<SpecialOrthogonal<3>, double>>("nsd_so3_hp", golden::double_bounds);
  golden::check<Nsd<SpecialOrthogonal<4>, double>>("nsd_so4", golden::double_bounds);
  golden::check<Bsnn<SpecialOrthogonal<2>, double>>("bsnn_so2", golden::double_bounds);
  golden::check<Bsnn<SpecialOrthogonal<3>, double>>("bsnn_so3_hp", golden::double_bounds);
  golden::check<Bsnn<SpecialOrthogonal<4>, double>>("bsnn_so4", golden::double_bounds);
}

TEST_CASE("golden values: special orthogonal maps, single precision") {
  golden::check<Bsnn<SpecialOrthogonal<3>, float>>("bsnn_so3_hp", golden::float_bounds);
}

}  // namespace test_golden_special_orthogonal
