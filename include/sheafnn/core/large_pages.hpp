/// \file
/// Large pages for arrays: with pages of 2 MiB, rows that are gathered from all over an array need no walks through page
/// tables, which are longest in virtual machines. A wish that systems may ignore; nothing else depends on it.
#pragma once

#include <cstddef>

#include "sheafnn/core/config.hpp"

#if defined(__linux__)
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#endif

namespace sheafnn::detail {

/// Bytes of a large page, and of the smallest array worth a wish.
inline constexpr std::size_t large_page = std::size_t{2} << 20, large_array = std::size_t{64} << 10;

#if defined(__linux__)
/// Asks for large pages in the whole blocks [begin, end), errors ignored. \param how  of madvise()
inline void advise_pages(std::uintptr_t begin, std::uintptr_t end, int how) noexcept {
  if (begin >= end) return;
  const int before = errno;
  static_cast<void>(
      ::madvise(reinterpret_cast<void*>(begin), end - begin, how));  // NOLINT(performance-no-int-to-ptr)
  errno = before;
}
#endif

/// Before an array is written for the first time: its pages shall be large where they hold nothing else.
inline void wish_large_pages([[maybe_unused]] void* array, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  if (bytes < large_page) return;
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(array);
  advise_pages((at + large_page - 1) / large_page * large_page, (at + bytes) / large_page * large_page,
               MADV_HUGEPAGE);
#endif
}

/// After it: so shall those at both ends, which hold other arrays as well. Systems refuse while part of such a page is
/// not in use; the array that completes it asks again.
inline void join_pages_at_ends([[maybe_unused]] void* array, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  constexpr int collapse = 25;  // MADV_COLLAPSE, which older headers lack
  if (bytes < large_array) return;
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(array);
  const std::uintptr_t first = at / large_page * large_page, last = (at + bytes - 1) / large_page * large_page;
  advise_pages(first, first + large_page, collapse);
  if (last != first) advise_pages(last, last + large_page, collapse);
#endif
}

}  // namespace sheafnn::detail
