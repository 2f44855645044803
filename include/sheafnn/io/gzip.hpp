/// \file
/// read_gzip(): the text in a .gz file.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "sheafnn/core/memory.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// \param memory  a larger text is refused
/// \throws MissingFile         no such file
/// \throws std::runtime_error  one that is damaged or ends too early, or a text that is too large
[[nodiscard]] inline Bytes read_gzip(const std::filesystem::path& path, double memory = memory_limit()) {
  const std::string name = path.string();
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (file == nullptr) detail::fail_to_open(path, "cannot be opened");
  Bytes r;
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (;;) {
    const std::size_t size = r.size();
    detail::check_memory(name, static_cast<double>(size + piece), memory);
    r.resize(size + piece);
    const int count = gzread(file.get(), r.data() + size, static_cast<unsigned>(piece));
    int code = Z_OK;
    const char* const message = gzerror(file.get(), &code);
    if (count < 0 || code == Z_BUF_ERROR) detail::fail(name, "is damaged or ends too early (", message, ")");
    r.resize(size + static_cast<std::size_t>(count));
    if (count == 0) return r;
  }
}

}  // namespace sheafnn::io
