/// \file
/// Devices, streams and recordings of the stand-in for the CUDA runtime, and what tests ask about them.
///
/// Work that a stream is given is done as late as the rules allow: when somebody waits for it. A result that is
/// read too early is not there yet.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device_memory.hpp"
#include "warp.hpp"

/// Errors of the runtime, with CUDA's numbers.
enum cudaError : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905
};
using cudaError_t = cudaError;

namespace stand_in {

using Action = std::function<void()>;

/// Work in its order; what a stream has still to do, or a recording.
struct WorkList {
  int device = 0;
  std::deque<Action> actions;
};

}  // namespace stand_in

struct CUstream_st;
/// A recording, or a branch of one: the work of another stream.
struct CUgraph_st : stand_in::WorkList {
  bool invalid = false;           ///< something was asked for that cannot be recorded
  CUgraph_st* origin = nullptr;   ///< of a branch: the recording
  std::size_t begin = 0;          ///< of a branch: it comes after so many actions of the recording
  std::set<CUstream_st*> others;  ///< streams that record branches of this one
};
struct CUgraphExec_st : stand_in::WorkList {};
struct CUstream_st : stand_in::WorkList {
  CUgraph_st* recording = nullptr;  ///< takes the work, while there is one
  bool waits = false;               ///< for another stream, since the last work
};

namespace stand_in {

inline constexpr int device_count = 2;

/// Everything there is, and what was asked of it.
struct Runtime {
  std::array<DeviceMemory, device_count> memory;
  int device = 0;  ///< the current one
  cudaError_t last_error = cudaSuccess;
  std::set<CUstream_st*> streams;
  std::set<void*> others;             ///< recordings, events, cuBLAS handles
  std::map<std::string, long> calls;  ///< how often each function was called
  std::map<std::string, long> work;   ///< kernels, fills and copies that were done
  long call_to_fail = -1;             ///< this one fails, counted down; none when negative
  std::string failing_function;       ///< all calls of this one fail
  std::string failed;                 ///< the function that was made to fail last
  cudaError_t failure = cudaSuccess;  ///< how they fail

  /// Things that were made and not given back.
  [[nodiscard]] std::size_t left_over() const {
    std::size_t r = streams.size() + others.size();
    for (const DeviceMemory& m : memory) r += m.arrays();
    return r;
  }
  [[nodiscard]] long calls_of(const std::string& name) const {
    const auto found = calls.find(name);
    return found == calls.end() ? 0 : found->second;
  }
};
inline Runtime runtime;

/// Notes a call. True when it is to fail.
[[nodiscard]] inline bool fails(const char* name) {
  ++runtime.calls[name];
  const bool numbered = runtime.call_to_fail >= 0 && runtime.call_to_fail-- == 0;
  if (!numbered && runtime.failing_function != name) return false;
  runtime.failed = name;
  return true;
}
/// The status of a call, kept for cudaGetLastError.
inline cudaError_t status(cudaError_t error) {
  if (error != cudaSuccess) runtime.last_error = error;
  return error;
}

/// Refuses what cannot be recorded, after which the recording is of no use.
[[nodiscard]] inline bool refused_by_recording(CUstream_st& stream) {
  if (stream.recording == nullptr) return false;
  stream.recording->invalid = true;
  return true;
}

/// Gives a stream something to do, or to record.
inline void enqueue(CUstream_st& stream, const char* what, Action action) {
  WorkList& list = stream.recording != nullptr ? static_cast<WorkList&>(*stream.recording) : stream;
  stream.waits = false;
  list.actions.push_back([what, action = std::move(action)] {
    ++runtime.work[what];
    action();
  });
}
/// Does the next thing that a stream has to do; a wait in it does what another stream has to do first.
inline void do_next(CUstream_st& stream) {
  const Action action = std::move(stream.actions.front());
  stream.actions.pop_front();
  action();
}
/// Does what a stream has to do.
inline void finish(CUstream_st& stream) {
  if (stream.actions.empty()) return;
  DeviceMemory& memory = runtime.memory[static_cast<std::size_t>(stream.device)];
  memory.open(true);
  while (!stream.actions.empty()) do_next(stream);
  memory.open(false);
}
/// A branch comes back to its recording. Its actions take turns with the actions of the recording since it began, and
/// end together with them.
inline void join(CUgraph_st& branch) {
  std::deque<Action>& all = branch.origin->actions;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(branch.begin);
  std::deque<Action> own(first, all.end()), other = std::exchange(branch.actions, {});
  all.erase(first, all.end());
  std::size_t i = 0, j = 0;
  while (i < own.size() || j < other.size()) {
    const bool turn = own.size() - i > other.size() - j;
    all.push_back(std::move(turn ? own[i++] : other[j++]));
  }
  branch.begin = all.size();
}
/// Does what a device has to do.
inline void finish_device(int device) {
  for (CUstream_st* stream : runtime.streams) {
    if (stream->device == device) finish(*stream);
  }
}

/// A kernel's arguments, one after another.
template <class...>
struct Arguments {};
template <class First, class... Rest>
struct Arguments<First, Rest...> {
  First first;
  [[no_unique_address]] Arguments<Rest...> rest;
};
[[nodiscard]] inline Arguments<> collect() { return {}; }
template <class First, class... Rest>
[[nodiscard]] __attribute__((always_inline)) inline Arguments<First, Rest...> collect(const First& first,
                                                                                      const Rest&... rest) {
  return {first, collect(rest...)};
}
/// Hands a kernel its arguments.
template <class... Taken>
__attribute__((always_inline)) inline void pass(const Arguments<>&, void (*kernel)(Taken...),
                                                const Taken&... taken) {
  kernel(taken...);
}
template <class First, class... Rest, class... Parameters, class... Taken>
__attribute__((always_inline)) inline void pass(const Arguments<First, Rest...>& arguments,
                                                void (*kernel)(Parameters...), const Taken&... taken) {
  pass(arguments.rest, kernel, taken..., arguments.first);
}
/// Code::call for a kernel with these parameters.
template <class... Parameters>
void call(Kernel kernel, const void* arguments) {
  pass(*static_cast<const Arguments<Parameters...>*>(arguments),
       reinterpret_cast<void (*)(Parameters...)>(kernel));
}

/// A kernel's arguments may hold addresses of arrays of the device, and none of the host. Looks at each aligned
/// eight bytes that could be an address: within the part of the addresses that programs have, with something there,
/// and not two small numbers. Bytes of no object must be zero.
inline void check_arguments(const std::byte* arguments, std::size_t bytes, int device, const char* kernel) {
  std::uintptr_t address = 0;
  for (std::size_t i = 0; i + sizeof address <= bytes; i += sizeof address) {
    std::memcpy(&address, arguments + i, sizeof address);
    if (address >> 32 == 0 || address >> 47 != 0 || (address & 0xffffffffU) < 65536) continue;
    if (runtime.memory[static_cast<std::size_t>(device)].holds(address) || !is_mapped(address)) continue;
    std::fprintf(stderr, "%s, byte %zu: %#zx\n", kernel, i, static_cast<std::size_t>(address));
    stop("a kernel's argument is an address of the host, of another device or of a released array");
  }
}

}  // namespace stand_in
