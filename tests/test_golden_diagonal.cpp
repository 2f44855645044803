/// \file
/// Networks with diagonal maps against the golden values (golden_case.hpp).
#include <doctest/doctest.h>

#include "golden_case.hpp"

namespace test_golden_diagonal {
namespace {

using sheafnn::Bsnn;
using sheafnn::Diagonal;
using sheafnn::Nsd;

}  // namespace

TEST_CASE("golden values: diagonal maps, double precision") {
  golden::check<Nsd<Diagonal<2>, double>>("nsd_diag2", golden::double_bounds);
  golden::check<Nsd<Diagonal<3>, double>>("nsd_diag3_lp", golden::double_bounds);
  golden::check<Bsnn<Diagonal<2>, double>>("bsnn_diag2", golden::double_bounds);
  golden::check<Bsnn<Diagonal<3>, double>>("bsnn_diag3_lp", golden::double_bounds);
}

TEST_CASE("golden values: diagonal maps, single precision") {
  golden::check<Bsnn<Diagonal<3>, float>>("bsnn_diag3_lp", golden::float_bounds);
}

}  // namespace test_golden_diagonal
