#include "counted_memory.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>

#include "sheafnn/core/config.hpp"

#if defined(SHEAFNN_TEST_OWN_MALLOC)
#include <malloc.h>
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}
#endif

namespace heap {
namespace {

std::atomic<long> requests = 0, failing_at = 0, live = 0, bytes = 0;
std::atomic<bool> all_later = false;

/// Called once for every request. \returns whether it is to fail
bool request_fails() {
  ++allocations;
  const long at = failing_at.load();
  const long request = ++requests;
  return at > 0 && (request == at || (request > at && all_later));
}
/// Counts a block that was granted (sign 1) or is given back (−1).
void count(void* memory, int sign) {
  if (memory == nullptr) return;
  live += sign;
#if defined(SHEAFNN_TEST_OWN_MALLOC)
  bytes += sign * static_cast<long>(malloc_usable_size(memory));
#endif
}
/// The block of a request that was granted.
void* counted(void* memory) {
  count(memory, 1);
  return memory;
}

}  // namespace

void begin_failing(long n, Failing which) {
  failing_at = 0;
  all_later = which == Failing::from_then_on;
  requests = 0;
  failing_at = n;
}
long end_failing() {
  failing_at = 0;
  return requests;
}
long live_blocks() { return live; }
#if defined(SHEAFNN_TEST_OWN_MALLOC)
long live_bytes() { return bytes; }
#endif

namespace {

#if defined(SHEAFNN_TEST_OWN_MALLOC)
void* request(std::size_t size, std::size_t alignment) { return std::aligned_alloc(alignment, size); }
void release(void* memory) { std::free(memory); }
#else
void* request(std::size_t size, std::size_t alignment) {
  return request_fails() ? nullptr : counted(std::aligned_alloc(alignment, size));
}
void release(void* memory) {
  count(memory, -1);
  std::free(memory);
}
#endif

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  return request(whole > 0 ? whole : alignment, alignment);
}
void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace
}  // namespace heap

// Every form, because a sanitizer brings its own of those that are not replaced. Inlined, they would look to the
// compiler like a mixture of new and free.
#define REPLACE_OPERATORS(brackets)                                                                             \
  SHEAFNN_NOINLINE void* operator new brackets(std::size_t size) {                                              \
    return heap::allocate_or_throw(size, alignof(std::max_align_t));                                            \
  }                                                                                                             \
  SHEAFNN_NOINLINE void* operator new brackets(std::size_t size, std::align_val_t alignment) {                  \
    return heap::allocate_or_throw(size, static_cast<std::size_t>(alignment));                                  \
  }                                                                                                             \
  SHEAFNN_NOINLINE void* operator new brackets(std::size_t size, const std::nothrow_t&) noexcept {              \
    return heap::allocate(size, alignof(std::max_align_t));                                                     \
  }                                                                                                             \
  SHEAFNN_NOINLINE void operator delete brackets(void* memory) noexcept { heap::release(memory); }              \
  SHEAFNN_NOINLINE void operator delete brackets(void* memory, std::size_t) noexcept { heap::release(memory); } \
  SHEAFNN_NOINLINE void operator delete brackets(void* memory, std::align_val_t) noexcept {                     \
    heap::release(memory);                                                                                      \
  }                                                                                                             \
  SHEAFNN_NOINLINE void operator delete brackets(void* memory, std::size_t, std::align_val_t) noexcept {        \
    heap::release(memory);                                                                                      \
  }                                                                                                             \
  SHEAFNN_NOINLINE void operator delete brackets(void* memory, const std::nothrow_t&) noexcept {                \
    heap::release(memory);                                                                                      \
  }
REPLACE_OPERATORS()
REPLACE_OPERATORS([])
#undef REPLACE_OPERATORS

#if defined(SHEAFNN_TEST_OWN_MALLOC)

namespace {

/// A request of `grant`, or null with the C library's error.
template <class Grant>
void* grant_or_fail(const Grant& grant) {
  if (!heap::request_fails()) return heap::counted(grant());
  errno = ENOMEM;
  return nullptr;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  return grant_or_fail([&] { return __libc_malloc(size); });
}
void* calloc(std::size_t count, std::size_t size) {
  return grant_or_fail([&] { return __libc_calloc(count, size); });
}
void* realloc(void* old, std::size_t size) {
  if (old == nullptr) return std::malloc(size);
  if (heap::request_fails()) {
    errno = ENOMEM;
    return nullptr;
  }
  heap::count(old, -1);
  void* memory = __libc_realloc(old, size);
  heap::count(memory == nullptr && size > 0 ? old : memory, 1);
  return memory;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return grant_or_fail([&] { return __libc_memalign(alignment, size); });
}
void* memalign(std::size_t alignment, std::size_t size) { return std::aligned_alloc(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  void* r = std::aligned_alloc(alignment, size);
  if (r == nullptr) return ENOMEM;
  *memory = r;
  return 0;
}
void free(void* memory) {
  heap::count(memory, -1);
  __libc_free(memory);
}

}  // extern "C"

#endif
