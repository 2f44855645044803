/// \file
/// Buffer<T>: a cache-line-aligned array of trivially copyable values with signed indices.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/kept_memory.hpp"

namespace sheafnn {

/// Says that a Buffer's values are written before they are read, so that nothing clears them.
struct ToBeWritten {};
inline constexpr ToBeWritten to_be_written;  ///< Buffer<T> values(n, to_be_written);

/// Owning array, aligned to 64 bytes so that packs can be loaded from it. Value semantics; zero-initialised, unless its values are
/// to be written. Then every byte is 255 where assertions are on, so that values that are read too early are NaN.
/// Throws std::bad_alloc when memory runs out. Unchecked: indices; assertions say so.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  Buffer() = default;
  /// \throws std::bad_alloc  as resize()
  explicit Buffer(Index size) { resize(size); }
  /// \throws std::bad_alloc  as resize()
  Buffer(Index size, ToBeWritten) { resize(size, to_be_written); }
  Buffer(const Buffer& other) : Buffer(other.size_, to_be_written) {
    std::copy_n(other.data_, other.size_, data_);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() { release(); }

  /// Makes the buffer hold `size` zeros; the previous content is lost.
  ///
  /// \throws std::bad_alloc  not enough memory; std::bad_array_new_length, which derives from it, for a negative size or a
  ///                         size whose bytes Index cannot count
  SHEAFNN_NOINLINE void resize(Index size) {
    allocate(size);
    fill(T{});
  }
  /// The same without the zeros. \throws std::bad_alloc  as above
  void resize(Index size, ToBeWritten) {
    allocate(size);
#if !defined(NDEBUG)
    if (size > 0) std::memset(static_cast<void*>(data_), 0xff, static_cast<std::size_t>(size) * sizeof(T));
#endif
  }
  void fill(T value) { std::fill_n(data_, size_, value); }

  [[nodiscard]] Index size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] T& operator[](Index i) noexcept {
    assert(0 <= i && i < size_);
    return data_[i];
  }
  [[nodiscard]] const T& operator[](Index i) const noexcept {
    assert(0 <= i && i < size_);
    return data_[i];
  }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] std::span<const T> view() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  [[nodiscard]] std::span<T> view() noexcept { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  SHEAFNN_NOINLINE void allocate(Index size) {
    if (size < 0 || size > std::numeric_limits<Index>::max() / static_cast<Index>(sizeof(T))) {
      throw std::bad_array_new_length();
    }
    release();
    if (size == 0) return;
    const detail::MemoryBlock block = detail::KeptMemory::allocate(static_cast<std::size_t>(size) * sizeof(T));
    data_ = static_cast<T*>(block.data);
    size_ = size;
    bytes_ = block.bytes;
  }
  SHEAFNN_NOINLINE void release() noexcept {
    detail::KeptMemory::release({data_, bytes_});
    data_ = nullptr;
    size_ = 0;
    bytes_ = 0;
  }

  T* data_ = nullptr;
  Index size_ = 0;
  std::size_t bytes_ = 0;  ///< of the memory, which may be more than the values
};

}  // namespace sheafnn
