/// \file
/// KeptMemory: the memory of Buffers that were freed, for Buffers that are made next. The networks of mini-batches are made again
/// for every step. With fresh memory from the system, clearing its pages takes up to a fifth of a step. The sizes of mini-batches
/// differ a little: memory is asked for in few sizes, and kept over some steps.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <new>
#include <vector>

#include "sheafnn/core/large_pages.hpp"

namespace sheafnn::detail {

/// Memory at a multiple of 64.
struct MemoryBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// See the file comment. Not copied.
class KeptMemory {
 public:
  /// While it exists, Buffers of its thread take memory from `of` and give it back there. What `idle_uses` uses have not taken
  /// goes back to the system at the end of the last of them. A Buffer may outlive it, and be freed by any thread.
  class Use {
   public:
    /// \param of       must outlive the Use, and has one Use at a time
    /// \param counted  whether it counts among the idle uses, and ends as they do
    explicit Use(KeptMemory& of, bool counted = true) noexcept : of_(of), before_(current_), counted_(counted) {
      if (counted) ++of.uses_;
      current_ = &of;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      current_ = before_;
      if (!counted_) return;
      for (std::vector<Block>& blocks : of_.free_) {
        std::erase_if(blocks, [&](const Block& block) {
          const bool unused = block.use + idle_uses <= of_.uses_;
          if (unused) give_back(block.memory);
          return unused;
        });
      }
    }

   private:
    KeptMemory& of_;
    KeptMemory* before_;
    bool counted_;
  };

  /// Uses after which memory that none of them took goes back to the system.
  static constexpr std::size_t idle_uses = 32;

  KeptMemory() = default;
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  ~KeptMemory() {
    for (const std::vector<Block>& blocks : free_) {
      for (const Block& block : blocks) give_back(block.memory);
    }
  }

  /// At least `bytes`, at most twice as many, with any content. \throws std::bad_alloc  no such memory
  [[nodiscard]] static MemoryBlock allocate(std::size_t bytes) {
    if (current_ != nullptr) {
      const std::size_t size = std::max(bytes, least_bytes + 1), first = class_of(size);
      for (std::size_t i = first; i < first + near_classes; ++i) {
        std::vector<Block>& blocks = current_->free_[i];
        if (blocks.empty()) continue;
        const MemoryBlock r = blocks.back().memory;
        blocks.pop_back();
        return r;
      }
      bytes = std::max(bytes, bytes_of(first));  // or bytes that cannot be counted
    }
    const ArrayPlace place = place_of(bytes);
    void* const data = ::operator new (place.bytes, std::align_val_t{place.alignment});
    request_large_pages(data, place.bytes);
    return {data, bytes};
  }
  /// Frees what allocate() returned, or nothing.
  static void release(MemoryBlock block) noexcept {
    if (block.data == nullptr) return;
    if (current_ == nullptr || !current_->keep(block)) give_back(block);
  }

 private:
  struct Block {
    MemoryBlock memory;
    std::size_t use;  ///< index of the Use that it was freed in
  };

  // Memory is asked for in sizes (8 + i mod 8) · 2^⌊i / 8⌋ of classes i. A block is in the last class whose size it has, and serves
  // for near_classes classes: at most twice the size that is needed.
  static constexpr std::size_t least_bytes = 64, near_classes = 6;
  static constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
    return (8 + size_class % 8) << size_class / 8;
  }
  /// The last class of at most these bytes. Unchecked: at least least_bytes.
  static constexpr std::size_t class_within(std::size_t bytes) noexcept {
    const std::size_t shift = static_cast<std::size_t>(std::bit_width(bytes)) - 4;
    return 8 * shift + (bytes >> shift) - 8;
  }
  /// The first class of at least these bytes. Unchecked: as above, and the size of this class can be counted.
  static constexpr std::size_t class_of(std::size_t bytes) noexcept { return class_within(bytes - 1) + 1; }

  [[nodiscard]] bool keep(MemoryBlock block) noexcept {
    if (block.bytes < least_bytes) return false;
    try {
      free_[class_within(block.bytes)].push_back({block, uses_});
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  static void give_back(MemoryBlock block) noexcept {
    ::operator delete (block.data, std::align_val_t{place_of(block.bytes).alignment});
  }

  std::array<std::vector<Block>, 8 * 8 * sizeof(std::size_t)> free_;  ///< by size
  std::size_t uses_ = 0;
  static inline thread_local KeptMemory* current_ = nullptr;
};

}  // namespace sheafnn::detail
