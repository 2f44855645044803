/// \file
/// Networks with general linear maps against the golden values (golden_case.hpp).
#include <doctest/doctest.h>

#include "golden_case.hpp"

namespace test_golden_general_linear {
namespace {

using sheafnn::Bsnn;
using sheafnn::GeneralLinear;
using sheafnn::Nsd;

}  // namespace

TEST_CASE("golden values: general linear maps, double precision") {
  golden::check<Nsd<GeneralLinear<2>, double>>("nsd_gen2", golden::double_bounds);
  golden::check<Nsd<GeneralLinear<3>, double>>("nsd_gen3", golden::double_bounds);
  golden::check<Bsnn<GeneralLinear<2>, double>>("bsnn_gen2", golden::double_bounds);
  golden::check<Bsnn<GeneralLinear<3>, double>>("bsnn_gen3", golden::double_bounds);
}

TEST_CASE("golden values: general linear maps, single precision") {
  golden::check<Bsnn<GeneralLinear<3>, float>>("bsnn_gen3", golden::float_bounds);
}

}  // namespace test_golden_general_linear
