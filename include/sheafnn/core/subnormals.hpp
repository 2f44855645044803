/// \file
/// FlushSubnormals: arithmetic without subnormal numbers (below 1.2e-38 as float, 2.2e-308 as double). Processors may take a
/// hundred times as long for them as for others. They are what remains of the gradients of nodes that a network has learned.
/// Examples: softmax probabilities such as e^-90, squares of small gradients, moments that decay.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace sheafnn::detail {

/// While it lives, the thread's vector and scalar arithmetic takes subnormal numbers for 0 and rounds to 0 what would be
/// one. Then the mode of before comes back. x86 only: elsewhere it does nothing.
class FlushSubnormals {
 public:
#if defined(__SSE__)
  FlushSubnormals() noexcept : before_(_mm_getcsr()) {
    if ((before_ & flush) != flush) _mm_setcsr(before_ | flush);
  }
  ~FlushSubnormals() {
    if ((before_ & flush) != flush) _mm_setcsr(before_);
  }
#else
  FlushSubnormals() noexcept {}
#endif
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__SSE__)
  static constexpr unsigned flush = 0x8040;  // "flush to zero" and "denormals are zeros" of MXCSR
  unsigned before_;
#endif
};

}  // namespace sheafnn::detail
