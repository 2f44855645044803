/// \file
/// DeviceExecutor: runs kernels on a CUDA device, dense products by cuBLAS, recordings as CUDA graphs (see
/// execution.hpp). To be compiled by nvcc.
///
/// Unchecked: sizes, and pointers to memory of the executor; the engine knows them.
#pragma once

#if !defined(__CUDACC__)
#error "sheafnn/batch/device_executor.hpp has kernels: include it from a .cu file"
#endif

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "sheafnn/batch/device_queue.hpp"
#include "sheafnn/batch/execution.hpp"

namespace sheafnn::batch {

namespace detail {

/// Programmatic dependent launch, on devices of compute capability 9.0 and later: lets the next kernel's blocks be
/// scheduled while this one runs.
__device__ inline void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
/// Waits until the previous kernel has ended and its results are visible. Every kernel does so in all threads, before it
/// reads or writes what another kernel writes or reads. A kernel ends after the previous kernel, so the results of all
/// earlier kernels are visible as well.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// Threads of a block.
inline constexpr Index block_threads = 128;

/// Blocks of a part in the grid's first dimension; groups are its second.
template <class Kernel>
[[nodiscard]] __host__ __device__ Index blocks_of(const Items<Kernel>& part) {
  return part.groups > 0 ? (part.items + block_threads - 1) / block_threads : 0;
}
template <class Kernel>
[[nodiscard]] __host__ __device__ Index blocks_of(const Teams<Kernel>& part) {
  return part.groups > 0 ? (part.items * part.lanes + block_threads - 1) / block_threads : 0;
}

/// A block of a part: one thread per item. Groups beyond the grid's limit are taken in turn.
template <class Kernel>
__device__ void run_block(const Items<Kernel>& part, Index block) {
  const Index item = block * block_threads + threadIdx.x;
  Index group = blockIdx.y;
  const bool idle = item >= part.items || group >= part.groups;
  PlaceOf<Kernel> place{};
  if (!idle) place = place_of(part.kernel, item, group);
  wait_for_previous();
  SHEAFNN_NO_UNROLL while (!idle) {
    run_at(part.kernel, place);
    group += gridDim.y;
    if (group >= part.groups) return;
    place = place_of(part.kernel, item, group);
  }
}
/// The sums of all lanes of a team, in its first lane.
template <int Outputs, class S>
__device__ void sum_lanes(int lanes, S (&sums)[Outputs]) {
  SHEAFNN_NO_UNROLL for (unsigned half = static_cast<unsigned>(lanes) / 2; half > 0; half /= 2) {
    SHEAFNN_UNROLL for (int k = 0; k < Outputs; ++k) sums[k] +=
        __shfl_down_sync(0xffffffffU, sums[k], half, lanes);
  }
}
/// The second sum of a team kernel: every lane takes the values of some teams of its bundle from their first lanes.
template <class Kernel, class S>
__device__ void add_teams(const Teams<Kernel>& part, const PlaceOf<Kernel>& place, int lane, bool idle,
                          const S (&numbers)[Kernel::outputs]) {
  const int teams = part.kernel.teams;
  S sums[Kernel::outputs];
  SHEAFNN_UNROLL for (int k = 0; k < Kernel::outputs; ++k) sums[k] = S(0);
  SHEAFNN_NO_UNROLL for (int first = 0; first < teams; first += part.lanes) {
    const int team = first + lane;
    S taken[Kernel::outputs];
    SHEAFNN_UNROLL for (int k = 0; k < Kernel::outputs; ++k) taken[k] =
        __shfl_sync(0xffffffffU, numbers[k], team << part.exponent, teams << part.exponent);
    if (team < teams && !idle) part.kernel.part_of(place, team, taken, sums);
  }
  sum_lanes(part.lanes, sums);
  if (lane == 0 && !idle) part.kernel.end(place, sums);
}
/// `lanes` threads of a warp per item. Threads past the last item join the exchange with zeros.
template <class Kernel>
__device__ void run_block(const Teams<Kernel>& part, Index block) {
  using S = typename Kernel::Scalar;
  const Index thread = block * block_threads + threadIdx.x;
  const Index item = thread >> part.exponent;
  const int lane = static_cast<int>(thread) & (part.lanes - 1);
  const bool idle = item >= part.items;
  Index group = blockIdx.y;
  PlaceOf<Kernel> place{};
  if (!idle && group < part.groups) place = place_of(part.kernel, item, group);
  wait_for_previous();
  SHEAFNN_NO_UNROLL while (group < part.groups) {
    S sums[Kernel::outputs];
    SHEAFNN_UNROLL for (int k = 0; k < Kernel::outputs; ++k) sums[k] = S(0);
    if (!idle) part_at(part.kernel, place, lane, sums);
    sum_lanes(part.lanes, sums);
    if (lane == 0 && !idle) finish_at(part.kernel, place, sums);
    if constexpr (Teams<Kernel>::exchanges) add_teams(part, place, lane, idle, sums);
    group += gridDim.y;
    if (!idle && group < part.groups) place = place_of(part.kernel, item, group);
  }
}

/// Runs a block, counted over all parts from this one on, if it is one of this part's. Otherwise counts on.
template <class Part>
__device__ bool run_own_block(const Part& part, Index& block) {
  const Index count = blocks_of(part);
  if (block >= count) {
    block -= count;
    return false;
  }
  run_block(part, block);
  return true;
}

/// The parts' blocks one after another.
template <class... Parts>
static __global__ void run_parts(Parts... parts) {
  let_next_start();
  Index block = blockIdx.x;
  if (!(run_own_block(parts, block) || ...)) wait_for_previous();
}

}  // namespace detail

/// When the blocks of a kernel are scheduled. Results are the same.
enum class KernelStart {
  early,   ///< while the kernel before it still runs, where the device can (programmatic dependent launch)
  in_turn  ///< when the kernel before it has ended
};

/// A CUDA device, a stream on it, and a cuBLAS handle. Neither copied nor moved: arrays refer to it.
class DeviceExecutor : public SingleLaunches<DeviceExecutor> {
 public:
  /// \param device  index of the device, from 0
  /// \throws std::invalid_argument  there are devices, but no device has this number
  /// \throws CudaError              there is no device, or it cannot be used
  explicit DeviceExecutor(int device = 0, KernelStart start = KernelStart::early) : device_(device) {
    const DeviceCount devices = device_count();
    if (devices.count == 0) throw CudaError("cudaGetDeviceCount", device, devices.reason);
    require(device >= 0 && device < devices.count, "device", device,
            sheafnn::detail::concat("must be between 0 and ", devices.count - 1));
    const CurrentDevice current(device);
    early_ = start == KernelStart::early && can_start_early(device);
    main_.emplace(device);
    queue_ = &*main_;
  }
  DeviceExecutor(const DeviceExecutor&) = delete;
  DeviceExecutor& operator=(const DeviceExecutor&) = delete;
  ~DeviceExecutor() { forget(); }

  [[nodiscard]] int device() const noexcept { return device_; }

  /// \param what  for the message: what the memory is for
  /// \throws OutOfDeviceMemory  with the need, what is free, and what to reduce
  [[nodiscard]] void* allocate(std::string_view what, std::size_t bytes) {
    return allocate_on(device_, what, bytes);
  }
  void release(void* memory) noexcept { static_cast<void>(cudaFree(memory)); }

  template <class T>
  void upload(const T* from, Index count, T* to) {
    copy(to, from, count, cudaMemcpyHostToDevice);
  }
  /// Waits for all work before it.
  template <class T>
  void download(const T* from, Index count, T* to) {
    copy(to, from, count, cudaMemcpyDeviceToHost);
  }
  template <class T>
  void zero(T* to, Index count) {
    if (count <= 0) return;
    const CurrentDevice current(device_);
    check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(count) * sizeof(T), queue_->stream()), "cudaMemsetAsync",
          device_);
  }

  /// Largest number of blocks that share a launch. With more, each part is a launch of its own: a kernel of several parts
  /// takes as many registers as its most demanding part.
  static constexpr Index max_shared_blocks = 8192;

  template <class... Parts>
  void launch_together(const Parts&... parts) {
    static_assert((std::is_trivially_copyable_v<Parts> && ...));
    if constexpr (sizeof...(Parts) > 1) {
      if (((detail::blocks_of(parts) * parts.groups) + ...) > max_shared_blocks) {
        (launch_together(parts), ...);
        return;
      }
    }
    const Index blocks = (detail::blocks_of(parts) + ...), groups = std::max({parts.groups...});
    if (blocks <= 0) return;
    const Launch launch(*this, reinterpret_cast<const void*>(detail::run_parts<Parts...>), blocks, groups);
    check(cudaLaunchKernelEx(&launch.config, detail::run_parts<Parts...>, parts...), "a kernel launch", device_);
  }

  /// Up to this many products of two numbers by SmallProduct, whose blocks are scheduled early; more by cuBLAS.
  static constexpr Index small_product = Index{1} << 20;

  /// cuBLAS stores column by column: Cᵀ = Bᵀ Aᵀ.
  template <class S>
  void multiply(const Product<S>& p) {
    if (p.rows <= 0 || p.columns <= 0 || p.batches <= 0) return;
    if (p.rows * p.columns * p.inner * p.batches <= small_product) {
      const detail::SmallProduct<S> kernel(p);
      return launch_teams(kernel.items(), p.batches, kernel.lanes, kernel);
    }
    const CurrentDevice current(device_);
    const auto size = [this](Index value) {
      if (value > INT_MAX)
        throw CudaError("cublasGemmStridedBatched", device_, sheafnn::detail::concat("a matrix has ", value, " rows"));
      return static_cast<int>(value);
    };
    const auto operation = [](const Factor<S>& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const S one = S(1), beta = p.add ? S(1) : S(0);
    const int m = size(p.columns), n = size(p.rows), k = size(p.inner), batches = size(p.batches);
    const auto call = [&](auto gemm) {
      check(gemm(queue_->blas(), operation(p.b), operation(p.a), m, n, k, &one, p.b.data, size(p.b.row_stride),
                 p.b.batch_stride, p.a.data, size(p.a.row_stride), p.a.batch_stride, &beta, p.c,
                 size(p.c_row_stride), p.c_batch_stride, batches),
            "cublasGemmStridedBatched", device_);
    };
    if constexpr (std::is_same_v<S, float>) {
      call(cublasSgemmStridedBatched);
    } else {
      call(cublasDgemmStridedBatched);
    }
  }

  /// The second piece of work in a stream of its own; in a recording they are two branches. They may launch kernels,
  /// multiply, and write zeros.
  template <class First, class Second>
  void side_by_side(const First& first, const Second& second) {
    if (!beside_) beside_.emplace(device_);
    beside_->wait_for(*main_);
    first();
    queue_ = &*beside_;
    try {
      second();
    } catch (...) {
      queue_ = &*main_;
      throw;
    }
    queue_ = &*main_;
    main_->wait_for(*beside_);
  }

  /// What `work` enqueues comes after all that the caller's stream holds, and before all that this stream takes later.
  ///
  /// \param stream  a cudaStream_t of this device; null: its default stream
  template <class Work>
  void in_order_of(void* stream, const Work& work) {
    const cudaStream_t other = static_cast<cudaStream_t>(stream);
    main_->wait_for(other);
    try {
      work();
    } catch (...) {
      main_->precede(other);
      throw;
    }
    main_->precede(other);
  }

  /// Records the launches and products of `work` as a CUDA graph instead of running them.
  template <class Work>
  void record(const Work& work) {
    forget();
    const CurrentDevice current(device_);
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture", device_);
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream(), &graph));
      static_cast<void>(cudaGetLastError());  // of branches that have not come together again
      if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
      throw;
    }
    check(cudaStreamEndCapture(stream(), &graph), "cudaStreamEndCapture", device_);
    const cudaError_t status = cudaGraphInstantiate(&recording_, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    check(status, "cudaGraphInstantiate", device_);
  }
  void replay() {
    if (recording_ == nullptr) return;
    const CurrentDevice current(device_);
    check(cudaGraphLaunch(recording_, stream()), "cudaGraphLaunch", device_);
  }
  /// Drops the recording.
  void forget() noexcept {
    if (recording_ != nullptr) static_cast<void>(cudaGraphExecDestroy(recording_));
    recording_ = nullptr;
  }
  /// The stream that everything runs on, or that waits for what ran at the same time.
  [[nodiscard]] cudaStream_t stream() const noexcept { return main_->stream(); }
  void synchronise() { check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize", device_); }

 private:
  /// Makes the device the current one while a kernel is launched, and says how. Its blocks may be scheduled early if its
  /// code waits for the previous kernel, and if it waits for that kernel only. The code may be made for an older device than
  /// this one.
  class Launch {
   public:
    cudaLaunchConfig_t config{};

    Launch(const DeviceExecutor& executor, const void* kernel, Index blocks, Index groups)
        : current_(executor.device_) {
      const bool second_wait = executor.queue_->take_wait();
      config.gridDim = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min<Index>(groups, 65535)));
      config.blockDim = static_cast<unsigned>(detail::block_threads);
      config.stream = executor.queue_->stream();
      if (!executor.early_ || second_wait) return;
      cudaFuncAttributes code{};
      check(cudaFuncGetAttributes(&code, kernel), "cudaFuncGetAttributes", executor.device_);
      early_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early_.val.programmaticStreamSerializationAllowed = 1;
      config.attrs = &early_;
      config.numAttrs = code.ptxVersion >= 90 ? 1 : 0;
    }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

   private:
    CurrentDevice current_;
    cudaLaunchAttribute early_{};
  };

  /// Can kernels be scheduled before the previous one has ended, in recordings too?
  [[nodiscard]] static bool can_start_early(int device) {
    int major = 0, driver = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute",
          device);
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", device);
    return major >= 9 && driver >= 12030 && CUDART_VERSION >= 12030;
  }
  template <class T>
  void copy(T* to, const T* from, Index count, cudaMemcpyKind kind) {
    if (count <= 0) return;
    const CurrentDevice current(device_);
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T), kind, stream()),
          "cudaMemcpyAsync", device_);
    synchronise();
  }

  int device_ = 0;
  bool early_ = false;
  std::optional<DeviceQueue> main_, beside_;
  DeviceQueue* queue_ = nullptr;  ///< takes the work
  cudaGraphExec_t recording_ = nullptr;
};

}  // namespace sheafnn::batch
