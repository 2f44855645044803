/// \file
/// What training asks of the CUDA runtime: how often, on which device, and what happens when a call fails.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sheafnn/cuda.hpp"
#include "sheafnn/graph/karate.hpp"

namespace test_device_calls {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using Model = Bsnn<SpecialOrthogonal<2>>;

Model small_model(const Dataset& data) {
  ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.channels = 4;
  options.layers = 2;
  return Model(options, 3);
}
TrainOptions short_training(Index epochs) {
  TrainOptions options;
  options.epochs = options.patience = epochs;
  return options;
}
std::vector<float> parameters_of(const Model& model) {
  const auto values = model.parameters().values().view();
  return {values.begin(), values.end()};
}

/// Calls that a training of so many epochs makes.
std::map<std::string, long> calls_of(Index epochs) {
  const Dataset data = karate_club();
  Model model = small_model(data);
  stand_in::runtime.calls.clear();
  static_cast<void>(cuda::train(model, data, data.splits.at(0), short_training(epochs)));
  return stand_in::runtime.calls;
}

/// Makes the call of this number fail, until the end of its scope.
class FailingCall {
 public:
  FailingCall(long number, cudaError_t failure) {
    stand_in::runtime.call_to_fail = number;
    stand_in::runtime.failure = failure;
  }
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
  ~FailingCall() { stand_in::runtime.call_to_fail = -1; }
  [[nodiscard]] static bool happened() { return stand_in::runtime.call_to_fail < 0; }
};

}  // namespace

TEST_CASE(
    "an epoch is one recording: it allocates nothing, starts nothing else, and the host waits for reports only") {
  std::map<std::string, long> few = calls_of(32), many = calls_of(32 + 160);
  CHECK(few["cudaGraphInstantiate"] == 1);
  CHECK(many["cudaGraphInstantiate"] == 1);
  CHECK(many["cudaGraphLaunch"] == few["cudaGraphLaunch"] + 160);
  for (const char* name : {"cudaMalloc", "cudaFree", "cudaLaunchKernelEx", "cudaMemsetAsync", "cublasCreate",
                           "cublasSgemmStridedBatched", "cudaStreamBeginCapture"}) {
    CAPTURE(name);
    CHECK(many[name] == few[name]);
  }
  // It waits for what it reads, progress and history: how often it looks depends on how long an epoch takes.
  CHECK(many["cudaStreamSynchronize"] - few["cudaStreamSynchronize"] ==
        many["cudaMemcpyAsync"] - few["cudaMemcpyAsync"]);
  CHECK(many["cudaMemcpyAsync"] - few["cudaMemcpyAsync"] <= 2 * 160);
}

TEST_CASE("training gives back all it took") {
  static_cast<void>(calls_of(3));
  CHECK(stand_in::runtime.left_over() == 0);
}

TEST_CASE("a device that is not the current one trains to the same bits") {
  const Dataset data = karate_club();
  Model first = small_model(data), second = small_model(data);
  const TrainResult a = cuda::train(first, data, data.splits.at(0), short_training(5), 0);
  const std::size_t before = stand_in::runtime.memory[0].arrays();
  const TrainResult b = cuda::train(second, data, data.splits.at(0), short_training(5), 1);
  CHECK(stand_in::runtime.device == 0);
  CHECK(stand_in::runtime.memory[0].arrays() == before);
  CHECK(parameters_of(first) == parameters_of(second));
  CHECK(a.test_nll == b.test_nll);
  PredictOptions options;
  options.samples = 2;
  CHECK(cuda::predict(first, data, options, 1).probabilities ==
        cuda::predict(first, data, options, 0).probabilities);
  CHECK(cuda::predict(first, data.graph, data.features, options).probabilities ==
        cuda::predict(first, data, options).probabilities);
  CHECK(stand_in::runtime.left_over() == 0);
}

TEST_CASE("a call fails: an error that names it and the device, nothing left over, the model as it was") {
  const Dataset data = karate_club();
  const Model untouched = small_model(data);
  const std::vector<float> before = parameters_of(untouched);
  // Nothing is lost where these fail: they give something back, or come back to the device that was current.
  const std::set<std::string> harmless = {"cudaFree",         "cudaStreamDestroy",
                                          "cudaGraphDestroy", "cudaGraphExecDestroy",
                                          "cublasDestroy",    "cudaEventDestroy",
                                          "cudaGetDevice",    "cudaSetDevice"};
  std::map<std::string, int> named;  // calls whose failure was reported
  bool failed = true;
  // The first calls one after another, then every fifth one: launches take three calls each, allocations four.
  for (long number = 0; failed; number += number < 100 ? 1 : 5) {
    CAPTURE(number);
    Model model = small_model(data);
    std::string message;
    {
      const FailingCall failing(number, cudaErrorIllegalAddress);
      try {
        static_cast<void>(cuda::train(model, data, data.splits.at(0), short_training(1)));
      } catch (const batch::CudaError& error) {
        message = error.what();
      }
      failed = FailingCall::happened();
    }
    if (!failed) break;
    CHECK(stand_in::runtime.left_over() == 0);
    const std::string function = stand_in::runtime.failed;
    CAPTURE(function);
    if (message.empty()) {
      CHECK(harmless.contains(function));
      continue;
    }
    const std::string name = function == "cudaLaunchKernelEx" ? "a kernel launch" : function;
    CHECK(message.starts_with(name + " on CUDA device 0: "));
    CHECK(parameters_of(model) == before);
    CHECK(cudaGetLastError() == cudaSuccess);
    ++named[function];
  }
  for (const char* name : {"cudaGetDevice", "cudaMalloc", "cudaMemsetAsync", "cudaMemcpyAsync",
                           "cudaStreamSynchronize", "cudaFuncGetAttributes", "cudaLaunchKernelEx"}) {
    CAPTURE(name);
    CHECK(named[name] > 5);
  }
}

TEST_CASE("calls that are made once fail as the others do") {
  const Dataset data = karate_club();
  for (const char* name :
       {"cudaStreamCreateWithFlags", "cublasCreate", "cublasSetStream", "cublasSetWorkspace",
        "cublasSetAtomicsMode", "cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate",
        "cudaGraphLaunch", "cudaEventCreateWithFlags", "cudaEventRecord", "cudaStreamWaitEvent"}) {
    CAPTURE(name);
    stand_in::runtime.failing_function = name;
    stand_in::runtime.failure = cudaErrorMemoryAllocation;
    Model model = small_model(data);
    CHECK_THROWS_WITH_AS(static_cast<void>(cuda::train(model, data, data.splits.at(0), short_training(2))),
                         doctest::Contains((std::string(name) + " on CUDA device 0: ").c_str()),
                         batch::OutOfDeviceMemory);
    stand_in::runtime.failing_function.clear();
    CHECK(stand_in::runtime.left_over() == 0);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
}

TEST_CASE("too little memory: the error says what for, how much, and what is free") {
  const Dataset data = karate_club();
  Model model = small_model(data);
  const std::vector<float> before = parameters_of(model);
  stand_in::DeviceMemory& memory = stand_in::runtime.memory[0];
  const std::size_t whole = memory.capacity;
  memory.capacity = std::size_t{33} << 20;  // what products need, and one MiB
  TrainOptions options = short_training(2);
  options.samples = 500;
  CHECK_THROWS_WITH_AS(static_cast<void>(cuda::train(model, data, data.splits.at(0), options)),
                       doctest::Contains(" of 33 MiB are free"), batch::OutOfDeviceMemory);
  memory.capacity = whole;
  CHECK(stand_in::runtime.left_over() == 0);
  CHECK(parameters_of(model) == before);
}

}  // namespace test_device_calls
