/// \file
/// safetensors files from the bytes of an input, so that lengths agree more often than by chance.
#pragma once

#include <algorithm>

#include "contract.hpp"
#include "sheafnn/io/file.hpp"

namespace fuzz {

/// The input as it is where its first byte is even; otherwise the header goes up to a zero byte, with its length put before
/// it, and the data behind it.
[[nodiscard]] inline sheafnn::io::Bytes tensor_bytes(Input input) {
  if (input.empty()) return {};
  const Input rest = input.subspan(1);
  if (input[0] % 2 == 0) return {rest.begin(), rest.end()};
  const auto end = std::find(rest.begin(), rest.end(), 0);
  sheafnn::io::Bytes r;
  sheafnn::io::detail::append_little(r, static_cast<std::uint64_t>(end - rest.begin()));
  r.insert(r.end(), rest.begin(), end);
  if (end != rest.end()) r.insert(r.end(), end + 1, rest.end());
  return r;
}

}  // namespace fuzz
