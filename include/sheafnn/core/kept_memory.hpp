/// \file
/// KeptMemory: the memory of Buffers that were freed, for Buffers that are made next. The networks of mini-batches are made anew
/// for every step. With fresh memory from the system, clearing its pages takes up to a fifth of a step.
#pragma once

#include <cstddef>
#include <map>
#include <new>

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
  /// While it exists, Buffers of its thread take memory from `of` and give it back there. What was free before it began and
  /// was not taken goes back to the system at its end. A Buffer may outlive it, and be freed by any thread.
  class Use {
   public:
    /// \param of  must outlive the Use, and has one Use at a time
    explicit Use(KeptMemory& of) noexcept : of_(of), before_(current_) {
      ++of.uses_;
      current_ = &of;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      current_ = before_;
      std::erase_if(of_.free_, [&](const auto& entry) {
        const bool unused = entry.second.use < of_.uses_;
        if (unused) give_back(entry.second.data);
        return unused;
      });
    }

   private:
    KeptMemory& of_;
    KeptMemory* before_;
  };

  KeptMemory() = default;
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  ~KeptMemory() {
    for (const auto& [bytes, block] : free_) give_back(block.data);
  }

  /// At least `bytes`, at most twice as many, with any content. \throws std::bad_alloc  no such memory
  [[nodiscard]] static MemoryBlock allocate(std::size_t bytes) {
    if (current_ != nullptr) {
      const auto found = current_->free_.lower_bound(bytes);
      if (found != current_->free_.end() && found->first / 2 <= bytes) {
        const MemoryBlock r = {found->second.data, found->first};
        current_->free_.erase(found);
        return r;
      }
    }
    void* const data = ::operator new (bytes, std::align_val_t{64});
    wish_large_pages(data, bytes);
    return {data, bytes};
  }
  /// Frees what allocate() returned, or nothing.
  static void release(MemoryBlock block) noexcept {
    if (block.data == nullptr) return;
    if (current_ == nullptr || !current_->keep(block)) give_back(block.data);
  }

 private:
  struct Block {
    void* data;
    std::size_t use;  ///< number of the Use that it was freed in
  };

  [[nodiscard]] bool keep(MemoryBlock block) noexcept {
    try {
      free_.insert({block.bytes, {block.data, uses_}});
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  static void give_back(void* data) noexcept { ::operator delete (data, std::align_val_t{64}); }

  std::multimap<std::size_t, Block> free_;  ///< by bytes
  std::size_t uses_ = 0;
  static inline thread_local KeptMemory* current_ = nullptr;
};

}  // namespace sheafnn::detail
