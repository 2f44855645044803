/// \file
/// Counts the heap memory of a libFuzzer build, by the hooks of the sanitizers. Included by contract.hpp.
#pragma once

#include <cstddef>

extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, std::size_t),
                                              void (*on_free)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* p);
}

namespace fuzz {

inline const bool counting =
    __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t size) { Memory::add(size); },
                                              [](const volatile void* p) {
                                                if (p != nullptr)
                                                  Memory::remove(__sanitizer_get_allocated_size(p));
                                              }) != 0;

}  // namespace fuzz
