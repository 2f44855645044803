/// \file
/// Large pages for arrays. With pages of 2 MiB, rows that are gathered from all over an array need no walks through page
/// tables. These walks are longest in virtual machines. A wish that systems may ignore; nothing else depends on it.
#pragma once

#include <cstddef>

#include "sheafnn/core/config.hpp"

#if defined(__linux__)
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#endif

namespace sheafnn::detail {

/// Bytes of a large page.
inline constexpr std::size_t large_page = std::size_t{2} << 20;

/// What the address of an array is a multiple of, and how many bytes it has there.
struct ArrayPlace {
  std::size_t alignment, bytes;

  friend constexpr bool operator==(const ArrayPlace&, const ArrayPlace&) = default;
};
/// Whole large pages for an array of less than two that fills at least two thirds of them. Otherwise what it needs, from a
/// multiple of 64 on: of longer arrays most is in large pages anyway.
[[nodiscard]] constexpr ArrayPlace place_of(std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  const std::size_t rest = bytes % large_page, room = rest == 0 ? 0 : large_page - rest;
  if (bytes > 0 && bytes >= 2 * room && bytes < 2 * large_page) return {large_page, bytes + room};
#endif
  return {64, bytes};
}

/// Before an array is written for the first time: its pages shall be large where they hold nothing else. Keeps errno.
inline void wish_large_pages([[maybe_unused]] void* array, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(array);
  const std::uintptr_t begin = (at + large_page - 1) / large_page * large_page;
  const std::uintptr_t end = (at + bytes) / large_page * large_page;
  if (begin >= end) return;
  const int before = errno;
  static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin,  // NOLINT(performance-no-int-to-ptr)
                              MADV_HUGEPAGE));
  errno = before;
#endif
}

}  // namespace sheafnn::detail
