/// \file
/// What most tests include and no change to the library touches, precompiled for all of them (CMakeLists.txt). Every
/// test still includes what it uses.
#pragma once

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "capture.hpp"
#include "shared_eigen.hpp"
