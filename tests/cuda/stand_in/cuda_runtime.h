/// \file
/// Stand-in for the CUDA Toolkit's header of this name: as much of the CUDA runtime as the library uses, on the
/// host. Sources for nvcc compile as C++ with this folder among the include directories, with `__CUDACC__` defined
/// and this header included first; DeviceExecutor then runs as it is, kernels included (warp.hpp), with memory that
/// the host must not touch (device_memory.hpp) and work that is done late (runtime.hpp). Calls refuse what CUDA
/// refuses. For tests; nothing here is fast, and for one thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "runtime.hpp"

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define CUDART_VERSION 13000

using cudaStream_t = CUstream_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
/// A moment in a stream.
struct CUevent_st {
  CUstream_st* stream = nullptr;    ///< null: in none yet
  CUgraph_st* recording = nullptr;  ///< that the stream was taking part in
  std::size_t position = 0;         ///< in the recording
  /// When the stream came to it; negative: not yet.
  std::shared_ptr<double> seconds = std::make_shared<double>(-1);
};
using cudaEvent_t = CUevent_st*;

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75 };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

/// Without it the arguments of kernels are not looked at.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define CUDA_STAND_IN_CAN_CLEAR_PADDING 1
#endif
#endif

struct cudaLaunchAttribute {
  cudaLaunchAttributeID id = {};
  struct {
    int programmaticStreamSerializationAllowed = 0;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
struct cudaFuncAttributes {
  int ptxVersion = 0;
};
struct cudaDeviceProp {
  char name[256] = "the host, as a stand-in";
  std::size_t totalGlobalMem = 0;
  int l2CacheSize = 0;
};

inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
  }
  return "unrecognized error code";
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}
inline cudaError_t cudaGetLastError() { return std::exchange(stand_in::runtime.last_error, cudaSuccess); }

/// In every function: counts the call, and fails where a test wants it to. At the head, so that nothing is done; at
/// the end of functions that give something back.
#define CUDA_STAND_IN_CALL() \
  if (stand_in::fails(__func__)) return stand_in::status(stand_in::runtime.failure)

inline cudaError_t cudaGetDeviceCount(int* count) {
  CUDA_STAND_IN_CALL();
  *count = stand_in::device_count;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  CUDA_STAND_IN_CALL();
  *device = stand_in::runtime.device;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  CUDA_STAND_IN_CALL();
  if (device < 0 || device >= stand_in::device_count) return stand_in::status(cudaErrorInvalidDevice);
  stand_in::runtime.device = device;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device) {
  CUDA_STAND_IN_CALL();
  if (device < 0 || device >= stand_in::device_count) return stand_in::status(cudaErrorInvalidDevice);
  *value = 9;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  CUDA_STAND_IN_CALL();
  *version = CUDART_VERSION;
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  CUDA_STAND_IN_CALL();
  *version = CUDART_VERSION;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  CUDA_STAND_IN_CALL();
  if (device < 0 || device >= stand_in::device_count) return stand_in::status(cudaErrorInvalidDevice);
  *properties = {};
  properties->totalGlobalMem = stand_in::runtime.memory[static_cast<std::size_t>(device)].capacity;
  return cudaSuccess;
}

// --- Memory ---

inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  CUDA_STAND_IN_CALL();
  stand_in::Runtime& r = stand_in::runtime;
  *memory = bytes == 0 ? nullptr : r.memory[static_cast<std::size_t>(r.device)].allocate(bytes);
  return stand_in::status(bytes == 0 || *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}
inline cudaError_t cudaFree(void* memory) {
  bool released = memory == nullptr;
  for (int device = 0; device < stand_in::device_count && !released; ++device) {
    stand_in::DeviceMemory& own = stand_in::runtime.memory[static_cast<std::size_t>(device)];
    if (!own.holds(reinterpret_cast<std::uintptr_t>(memory))) continue;
    stand_in::finish_device(device);
    released = own.release(memory);
  }
  CUDA_STAND_IN_CALL();
  return stand_in::status(released ? cudaSuccess : cudaErrorInvalidValue);
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  CUDA_STAND_IN_CALL();
  const stand_in::Runtime& r = stand_in::runtime;
  const stand_in::DeviceMemory& own = r.memory[static_cast<std::size_t>(r.device)];
  *total = own.capacity;
  *free = own.capacity - own.used();
  return cudaSuccess;
}

// --- Streams and recordings ---

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  CUDA_STAND_IN_CALL();
  if (flags != cudaStreamNonBlocking) return stand_in::status(cudaErrorInvalidValue);
  *stream = new CUstream_st;
  (*stream)->device = stand_in::runtime.device;
  stand_in::runtime.streams.insert(*stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stand_in::runtime.streams.erase(stream) == 0) return stand_in::status(cudaErrorInvalidResourceHandle);
  stand_in::finish(*stream);
  delete stream;
  CUDA_STAND_IN_CALL();
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.streams.contains(stream)) return stand_in::status(cudaErrorInvalidResourceHandle);
  if (stand_in::refused_by_recording(*stream)) return stand_in::status(cudaErrorStreamCaptureUnsupported);
  stand_in::finish(*stream);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.streams.contains(stream)) return stand_in::status(cudaErrorInvalidResourceHandle);
  const stand_in::DeviceMemory& own = stand_in::runtime.memory[static_cast<std::size_t>(stream->device)];
  if (bytes > 0 && !own.holds(reinterpret_cast<std::uintptr_t>(to)))
    return stand_in::status(cudaErrorInvalidValue);
  stand_in::enqueue(*stream, "fill", [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
/// As for memory of the host that is not pinned: it is read before the call returns, and written before it returns.
/// Such copies are not recorded here.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.streams.contains(stream)) return stand_in::status(cudaErrorInvalidResourceHandle);
  if (stand_in::refused_by_recording(*stream)) return stand_in::status(cudaErrorStreamCaptureUnsupported);
  const stand_in::DeviceMemory& own = stand_in::runtime.memory[static_cast<std::size_t>(stream->device)];
  const bool to_device = own.holds(reinterpret_cast<std::uintptr_t>(to));
  const bool from_device = own.holds(reinterpret_cast<std::uintptr_t>(from));
  if (to_device != (kind != cudaMemcpyDeviceToHost) || from_device != (kind != cudaMemcpyHostToDevice))
    return stand_in::status(cudaErrorInvalidValue);
  if (kind == cudaMemcpyHostToDevice) {
    const std::byte* first = static_cast<const std::byte*>(from);
    stand_in::enqueue(*stream, "copy", [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
    });
  } else {
    stand_in::enqueue(*stream, "copy", [=] { std::memcpy(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToHost) stand_in::finish(*stream);
  }
  return cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.streams.contains(stream)) return stand_in::status(cudaErrorInvalidResourceHandle);
  if (stream->recording != nullptr) return stand_in::status(cudaErrorIllegalState);
  stream->recording = new CUgraph_st;
  stream->recording->device = stream->device;
  stand_in::runtime.others.insert(stream->recording);
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!stand_in::runtime.streams.contains(stream)) return stand_in::status(cudaErrorInvalidResourceHandle);
  if (stream->recording == nullptr) return stand_in::status(cudaErrorIllegalState);
  if (stream->recording->origin != nullptr) return stand_in::status(cudaErrorIllegalState);  // it is a branch
  *graph = std::exchange(stream->recording, nullptr);
  const bool fails = stand_in::fails(__func__), invalid = (*graph)->invalid;
  bool joined = true;
  for (CUstream_st* other : (*graph)->others) {
    CUgraph_st* branch = std::exchange(other->recording, nullptr);
    joined = joined && branch->actions.empty();
    delete branch;
  }
  (*graph)->others.clear();
  if (!fails && !invalid && joined) return cudaSuccess;
  stand_in::runtime.others.erase(*graph);  // the recording ends all the same
  delete std::exchange(*graph, nullptr);
  return stand_in::status(fails     ? stand_in::runtime.failure
                          : invalid ? cudaErrorStreamCaptureInvalidated
                                    : cudaErrorStreamCaptureUnjoined);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.others.contains(graph)) return stand_in::status(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st;
  (*executable)->device = graph->device;
  (*executable)->actions = graph->actions;
  stand_in::runtime.others.insert(*executable);
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.streams.contains(stream) || !stand_in::runtime.others.contains(executable))
    return stand_in::status(cudaErrorInvalidResourceHandle);
  if (stream->device != executable->device || stream->recording != nullptr)
    return stand_in::status(cudaErrorInvalidValue);
  stream->actions.insert(stream->actions.end(), executable->actions.begin(), executable->actions.end());
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (stand_in::runtime.others.erase(graph) == 0) return stand_in::status(cudaErrorInvalidValue);
  delete graph;
  CUDA_STAND_IN_CALL();
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (stand_in::runtime.others.erase(executable) == 0) return stand_in::status(cudaErrorInvalidValue);
  delete executable;
  CUDA_STAND_IN_CALL();
  return cudaSuccess;
}

// --- Events ---

inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  CUDA_STAND_IN_CALL();
  *event = new CUevent_st;
  stand_in::runtime.others.insert(*event);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  CUDA_STAND_IN_CALL();
  if (flags != cudaEventDisableTiming) return stand_in::status(cudaErrorInvalidValue);
  *event = new CUevent_st;
  stand_in::runtime.others.insert(*event);
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (stand_in::runtime.others.erase(event) == 0) return stand_in::status(cudaErrorInvalidResourceHandle);
  delete event;
  CUDA_STAND_IN_CALL();
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.others.contains(event) || !stand_in::runtime.streams.contains(stream))
    return stand_in::status(cudaErrorInvalidResourceHandle);
  event->stream = stream;
  event->seconds = std::make_shared<double>(-1);  // who waits already waits for the moment before
  event->recording = stream->recording;
  if (stream->recording != nullptr) {
    event->position = stream->recording->actions.size();
    return cudaSuccess;
  }
  stand_in::enqueue(*stream, "event", [seconds = event->seconds] {
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  });
  return cudaSuccess;
}
/// In a recording a stream takes part from the moment on that it waits for one that does, and until that one waits for
/// it.
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.others.contains(event) || !stand_in::runtime.streams.contains(stream))
    return stand_in::status(cudaErrorInvalidResourceHandle);
  if (event->stream == nullptr || event->stream == stream) return cudaSuccess;
  if (event->stream->device != stream->device) return stand_in::status(cudaErrorInvalidValue);
  CUgraph_st *own = stream->recording, *other = event->recording;
  if (own == nullptr && other == nullptr) {
    stand_in::enqueue(*stream, "wait", [from = event->stream, seconds = event->seconds] {
      while (*seconds < 0) stand_in::do_next(*from);
    });
    stream->waits = true;
    return cudaSuccess;
  }
  if (other == nullptr || event->stream->recording != other)
    return stand_in::status(cudaErrorStreamCaptureIsolation);
  if (own == nullptr) {
    own = stream->recording = new CUgraph_st;
    own->device = stream->device;
    own->origin = other;
    other->others.insert(stream);
  }
  if (own->origin == other) {  // again, or for the first time
    if (!own->actions.empty()) return stand_in::status(cudaErrorStreamCaptureIsolation);
    own->begin = event->position;
  } else if (other->origin == own) {
    stand_in::join(*other);
  } else {
    return stand_in::status(cudaErrorStreamCaptureIsolation);
  }
  stream->waits = true;
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.others.contains(event)) return stand_in::status(cudaErrorInvalidResourceHandle);
  return event->stream == nullptr ? cudaSuccess : cudaStreamSynchronize(event->stream);
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  CUDA_STAND_IN_CALL();
  if (!stand_in::runtime.others.contains(begin) || !stand_in::runtime.others.contains(end))
    return stand_in::status(cudaErrorInvalidResourceHandle);
  if (*begin->seconds < 0 || *end->seconds < 0) return stand_in::status(cudaErrorNotReady);
  *milliseconds = static_cast<float>(1e3 * (*end->seconds - *begin->seconds));
  return cudaSuccess;
}

// --- Kernels ---

inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  CUDA_STAND_IN_CALL();
  attributes->ptxVersion = 90;
  return cudaSuccess;
}

namespace stand_in {

/// cudaLaunchKernelEx, whatever the kernel's parameters.
/// \param name  of the kernel, for messages
/// \param exchanges  values between lanes, in both directions
inline cudaError_t launch(const cudaLaunchConfig_t& config, Kernel kernel, void (*call)(Kernel, const void*),
                          const void* arguments, std::size_t bytes, bool exchanges,
                          [[maybe_unused]] const char* name) {
  if (fails("cudaLaunchKernelEx")) return status(runtime.failure);
  const dim3 grid = config.gridDim, block = config.blockDim;
  if (!runtime.streams.contains(config.stream) || config.stream->device != runtime.device)
    return status(cudaErrorInvalidResourceHandle);
  if (grid.x < 1 || grid.x > 0x7fffffffU || grid.y < 1 || grid.y > 65535 || grid.z != 1 || block.x < 1 ||
      block.x > 1024 || block.y != 1 || block.z != 1)
    return status(cudaErrorInvalidConfiguration);
  // A kernel that may start early waits for the one before it in its stream, and for nothing else.
  if (config.numAttrs > 0 && config.stream->waits) return status(cudaErrorInvalidValue);
  const std::byte* first = static_cast<const std::byte*>(arguments);
#if CUDA_STAND_IN_CAN_CLEAR_PADDING
  check_arguments(first, bytes, config.stream->device, name);
#endif
  enqueue(*config.stream, "kernel", [grid, block, code = Code{kernel, call, {first, first + bytes}, exchanges}] {
    run_grid(grid, block, code);
  });
  return cudaSuccess;
}

}  // namespace stand_in

/// The stream must be one of the current device. The arguments are copied now.
template <class... Parameters>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               const std::type_identity_t<Parameters>&... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= 32764, "a kernel has no room for so many arguments");
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  // In a union g++ 12 clears the padding; elsewhere it clears other bytes if a structure has an array of structures.
  union Copies {
    decltype(stand_in::collect(arguments...)) all;
  } copies{stand_in::collect(arguments...)};
  static_assert(alignof(Copies) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
#if CUDA_STAND_IN_CAN_CLEAR_PADDING
  __builtin_clear_padding(&copies);
#endif
  return stand_in::launch(*config, reinterpret_cast<stand_in::Kernel>(kernel), stand_in::call<Parameters...>,
                          &copies, sizeof copies, (stand_in::exchanges<Parameters> || ...), __PRETTY_FUNCTION__);
}
