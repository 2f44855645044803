/// \file
/// Runs the tests of the GPU, or prints why there is no GPU and exits with code 77.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "sheafnn/batch/device_error.hpp"

int main(int argc, char** argv) {
  const sheafnn::batch::DeviceCount devices = sheafnn::batch::device_count();
  if (devices.count == 0) {
    std::printf("skipped: %s\n", devices.reason.c_str());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
