/// \file
/// Versions of the files that the library writes. The number of a format grows when a program that knows only earlier ones
/// could not read a file, or would misread it. New entries with a default do not change it. What was written once is read
/// for ever; what a later version has written is refused, with both versions named.
///
/// Files without a version number have version 1.
#pragma once

#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include "sheafnn/bsnn/conventions.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/version.hpp"

namespace sheafnn::io {

/// The version of save_checkpoint(). Since version 2 cooperative layers without residual have the published sign, and fixed
/// filters with the normalisation block the published scale. Since version 3 posteriors have a range of spread (bsnn/conventions.hpp).
inline constexpr Index checkpoint_version = sheafnn::detail::conventions_version;
inline constexpr Index training_state_version = checkpoint_version;  ///< of write_training_state(), for the same reasons
inline constexpr Index sheaf_file_version = 1;      ///< of write_sheaf(), write_node_maps() and write_learned()

/// Refuses a file of a later version.
///
/// \param file     its name, for messages
/// \param version  that the file names
/// \param known    the latest that this program reads
/// \param writer   version of the library that wrote it, if the file names it
/// \throws std::runtime_error  naming both versions
inline void require_known_version(std::string_view file, Index version, Index known, std::string_view writer = {}) {
  if (version >= 1 && version <= known) return;
  if (version < 1) detail::fail(file, "format_version is ", version, "; it must be at least 1");
  detail::fail(file, "has format version ", version,
               writer.empty() ? std::string() : " of sheafnn " + detail::printable(writer), "; this is sheafnn ",
               SHEAFNN_VERSION_STRING, ", which reads versions up to ", known);
}

namespace detail {

/// A whole number from a metadata map.
template <class T>
[[nodiscard]] T metadata_number(const std::string& file, const std::map<std::string, std::string>& metadata,
                                const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail(file, "metadata key '", key, "' is missing");
  const std::string& text = found->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(file, "metadata: ", key, " is '", printable(text), "'; it must be a whole number");
  }
  return value;
}
/// The entry "format_version" of a metadata map, 1 if it is missing; require_known_version() for it and the entry
/// "sheafnn_version".
inline Index known_version(const std::string& file, const std::map<std::string, std::string>& metadata,
                           Index known) {
  if (!metadata.contains("format_version")) return 1;
  const Index version = metadata_number<Index>(file, metadata, "format_version");
  const auto writer = metadata.find("sheafnn_version");
  io::require_known_version(file, version, known, writer == metadata.end() ? std::string() : writer->second);
  return version;
}

}  // namespace detail

}  // namespace sheafnn::io
