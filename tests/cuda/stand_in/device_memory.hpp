/// \file
/// Memory of a stand-in device: pages that nobody may touch but work of the device, while it runs.
///
/// An array ends where its last page ends, up to CUDA's alignment, with a page that nobody may touch before and
/// behind it: reading or writing beyond it, after its release, or on the host, is a segmentation fault. Its bytes
/// are 0xff at first, NaNs as floating-point numbers.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace stand_in {

/// A mistake that a device would not report as an error of a call: says what it is, and ends the program.
[[noreturn]] inline void stop(const char* what) {
  std::fprintf(stderr, "CUDA stand-in: %s\n", what);
  std::abort();
}

/// Memory of one device.
class DeviceMemory {
 public:
  std::size_t capacity = std::size_t{8} << 30;  ///< bytes

  /// Null when there is too little.
  [[nodiscard]] void* allocate(std::size_t bytes) {
    if (bytes > capacity || used_ > capacity - bytes) return nullptr;
    const std::size_t inner = round_up(bytes, page());
    void* place = mmap(nullptr, inner + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return nullptr;
    std::byte* pages = static_cast<std::byte*>(place) + page();
    Block block{pages, inner, bytes};
    fill(block);
    protect(block, open_);
    std::byte* start = pages + inner - round_up(bytes, alignment);
    used_ += bytes;
    blocks_[start] = block;
    return start;
  }

  /// False when there is no such array. Its addresses are not used again.
  [[nodiscard]] bool release(void* start) {
    const auto found = blocks_.find(static_cast<std::byte*>(start));
    if (found == blocks_.end()) return false;
    const Block& block = found->second;
    protect(block, true);
    // What is beside the array on its pages is as it was.
    for (std::byte* p = block.pages; p < found->first; ++p) check_untouched(*p);
    for (std::byte* p = found->first + block.bytes; p < block.pages + block.size; ++p) check_untouched(*p);
    map(block.pages, block.size, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE, -1);
    used_ -= block.bytes;
    blocks_.erase(found);
    return true;
  }

  /// Lets work of the device touch its memory, or ends that.
  void open(bool now) {
    if (open_ == now) return;
    open_ = now;
    for (const auto& [start, block] : blocks_) protect(block, now);
  }

  /// Is it an address within an array, or its end?
  [[nodiscard]] bool holds(std::uintptr_t address) const {
    auto next = blocks_.upper_bound(reinterpret_cast<std::byte*>(address));
    if (next == blocks_.begin()) return false;
    const auto& [start, block] = *--next;
    return address <= reinterpret_cast<std::uintptr_t>(start) + block.bytes;
  }

  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t arrays() const { return blocks_.size(); }

 private:
  static constexpr std::size_t alignment = 256;

  struct Block {
    std::byte* pages = nullptr;
    std::size_t size = 0, bytes = 0;  ///< of the pages; of the array
  };
  [[nodiscard]] static std::size_t page() {
    static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
  }
  [[nodiscard]] static std::size_t round_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }
  static void protect(const Block& block, bool accessible) {
    if (mprotect(block.pages, block.size, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
      stop("mprotect failed");
  }
  /// In place of what was mapped there.
  static void map(std::byte* to, std::size_t size, int access, int flags, int file) {
    if (mmap(to, size, access, MAP_PRIVATE | MAP_FIXED | flags, file, 0) == MAP_FAILED) stop("mmap failed");
  }
  /// All bytes 0xff, numbers that are NaN. Large arrays share pages until they are written: cuBLAS's workspace,
  /// which nobody touches, would take longer than a small training.
  static void fill(const Block& block) {
    constexpr std::size_t shared_size = std::size_t{4} << 20;
    static const int shared = [] {
      const int file = memfd_create("bytes 0xff", MFD_CLOEXEC);
      const std::vector<std::byte> bytes(shared_size, std::byte{0xff});
      if (file < 0 || write(file, bytes.data(), shared_size) != static_cast<ssize_t>(shared_size))
        stop("there is no file in memory");
      return file;
    }();
    std::byte* place = block.pages;
    std::size_t left = block.size;
    for (; left >= shared_size; left -= shared_size, place += shared_size)
      map(place, shared_size, PROT_READ | PROT_WRITE, 0, shared);
    if (left == 0) return;
    protect({place, left, 0}, true);
    std::memset(place, 0xff, left);
  }
  static void check_untouched(std::byte b) {
    if (b != std::byte{0xff}) stop("something was written beside an array");
  }

  std::map<std::byte*, Block> blocks_;  ///< by the first byte of the array
  std::size_t used_ = 0;
  bool open_ = false;
};

/// Is there something at an address? Not whether it may be read.
[[nodiscard]] inline bool is_mapped(std::uintptr_t address) {
  const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return msync(reinterpret_cast<void*>(address / page * page), page, MS_ASYNC) == 0;
}

}  // namespace stand_in
