/// \file
/// Large pages for arrays. With pages of 2 MiB, rows that are gathered from all over an array need no walks through page
/// tables. These walks are longest in virtual machines. Systems may ignore the request; nothing else depends on it.
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

/// The alignment of an array, and the bytes that it takes there.
struct ArrayPlace {
  std::size_t alignment, bytes;

  friend constexpr bool operator==(const ArrayPlace&, const ArrayPlace&) = default;
};
/// The place of an array. An array below two large pages gets whole ones if it fills at least two thirds of them. Others get the
/// bytes they need, aligned to 64: most of a longer array is in large pages anyway.
[[nodiscard]] constexpr ArrayPlace place_of(std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  const std::size_t rest = bytes % large_page, room = rest == 0 ? 0 : large_page - rest;
  if (bytes > 0 && bytes >= 2 * room && bytes < 2 * large_page) return {large_page, bytes + room};
#endif
  return {64, bytes};
}

/// Requests large pages for an array where they hold nothing else, before its first write. Keeps errno.
inline void request_large_pages([[maybe_unused]] void* array, [[maybe_unused]] std::size_t bytes) noexcept {
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
