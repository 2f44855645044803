/// \file
/// Array: values in the memory of an executor, on the host or on a CUDA device.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn::batch {

/// `size` values in the memory of an executor, zeros at first. Moved, not copied; the executor must outlive it.
template <class Executor, class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  /// \param what  for messages: what the memory is for
  /// \throws what the executor throws when memory runs out
  Array(Executor& executor, std::string_view what, Index size)
      : Array() {  // so that the destructor releases the memory when zero() throws
    executor_ = &executor;
    size_ = size;
    if (size <= 0) return;
    data_ = static_cast<T*>(executor.allocate(what, static_cast<std::size_t>(size) * sizeof(T)));
    executor.zero(data_, size);
  }
  /// As above, with values.
  Array(Executor& executor, std::string_view what, std::span<const T> values)
      : Array(executor, what, static_cast<Index>(values.size())) {
    upload(values);
  }
  Array(Array&& other) noexcept
      : executor_(other.executor_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(executor_, other.executor_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (data_ != nullptr) executor_->release(data_);
  }

  [[nodiscard]] Index size() const noexcept { return size_; }
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }

  /// Copies values to the front of the array. \throws std::invalid_argument  more than it has
  void upload(std::span<const T> values) {
    require(static_cast<Index>(values.size()) <= size_, "values", values.size(), "the array must have room for them");
    if (!values.empty()) executor_->upload(values.data(), static_cast<Index>(values.size()), data_);
  }
  /// The array's content, on the host.
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    if (size_ > 0) executor_->download(data_, size_, values.data());
    return values;
  }

 private:
  Executor* executor_ = nullptr;
  T* data_ = nullptr;
  Index size_ = 0;
};

}  // namespace sheafnn::batch
