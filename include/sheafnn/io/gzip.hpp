/// \file
/// GzipReader: the text in a .gz file, in pieces.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// A .gz file, or one that is not compressed, from its beginning to its end.
class GzipReader {
 public:
  static constexpr std::size_t piece = std::size_t{1} << 20;

  /// \throws MissingFile  no such file \throws std::runtime_error  it cannot be opened
  explicit GzipReader(const std::filesystem::path& path)
      : name_(path.string()), file_(gzopen(path.c_str(), "rb"), &gzclose) {
    if (file_ == nullptr) detail::fail_to_open(path, "cannot be opened");
  }
  /// Appends the next bytes, at most `piece`. \returns false at the end
  /// \throws std::runtime_error  the file is damaged or ends too early
  [[nodiscard]] bool append(Bytes& to) {
    const std::size_t size = to.size();
    to.resize(size + piece);
    const int count = gzread(file_.get(), to.data() + size, static_cast<unsigned>(piece));
    int code = Z_OK;
    const char* const message = gzerror(file_.get(), &code);
    if (count < 0 || code == Z_BUF_ERROR) detail::fail(name_, "is damaged or ends too early (", message, ")");
    to.resize(size + static_cast<std::size_t>(count));
    return count > 0;
  }

 private:
  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

}  // namespace sheafnn::io
