/// \file
/// The safetensors format: named tensors of floating-point numbers and a map of texts.
///
/// Source: the format's specification at https://huggingface.co/docs/safetensors: 8 bytes with the size of the
/// header (lowest first), the header in JSON, the tensors' bytes one after the other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/file.hpp"
#include "sheafnn/io/tensor_file.hpp"

namespace sheafnn::io {

namespace detail {

inline constexpr std::string_view metadata_key = "__metadata__";
inline constexpr std::uint64_t largest_header = 100'000'000;  // the format's own limit

/// Bytes per element, or 0 for an unsupported type.
[[nodiscard]] inline std::size_t tensor_item_size(std::string_view dtype) {
  return dtype == "F32" ? 4 : dtype == "F64" ? 8 : 0;
}

/// A whole number ≥ 0 from JSON.
[[nodiscard]] inline Index json_size(const nlohmann::json& value, const std::string& where, const char* what) {
  constexpr std::uint64_t most = std::numeric_limits<Index>::max() / 16;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    fail(where, what, " must hold whole numbers from 0 to ", most);
  }
  return static_cast<Index>(value.get<std::uint64_t>());
}

struct TensorEntry {
  Tensor tensor;
  Index begin = 0;
  Index end = 0;
};

[[nodiscard]] inline TensorEntry parse_tensor_entry(const std::string& file, const std::string& name,
                                                    const nlohmann::json& json, Index data_size) {
  const std::string where = sheafnn::detail::concat(file, ": tensor '", printable(name), "'");
  const auto member = [&](const char* key, nlohmann::json::value_t type) -> const nlohmann::json& {
    if (!json.is_object() || !json.contains(key) || json[key].type() != type) {
      fail(where, key, " is missing or wrong");
    }
    return json[key];
  };
  TensorEntry entry;
  entry.tensor.name = name;
  entry.tensor.dtype = member("dtype", nlohmann::json::value_t::string).get<std::string>();
  const std::size_t item = tensor_item_size(entry.tensor.dtype);
  if (item == 0) fail(where, "has dtype '", printable(entry.tensor.dtype), "'; F32 and F64 are supported");
  // The product is bounded even where an extent is 0, so that users can multiply without care.
  constexpr Index most = std::numeric_limits<Index>::max() / 16;
  Index bound = 1;
  for (const nlohmann::json& extent : member("shape", nlohmann::json::value_t::array)) {
    entry.tensor.shape.push_back(json_size(extent, where, "shape"));
    const Index factor = std::max<Index>(entry.tensor.shape.back(), 1);
    if (factor > most / bound) fail(where, "has an impossible shape; its size overflows");
    bound *= factor;
  }
  const nlohmann::json& offsets = member("data_offsets", nlohmann::json::value_t::array);
  if (offsets.size() != 2) fail(where, "data_offsets must hold two numbers, not ", offsets.size());
  entry.begin = json_size(offsets[0], where, "data_offsets");
  entry.end = json_size(offsets[1], where, "data_offsets");
  if (entry.begin > entry.end || entry.end > data_size) {
    fail(where, "data_offsets are ", entry.begin, " to ", entry.end, "; the file has ", data_size,
         " bytes of data");
  }
  const Index expected = entry.tensor.size() * static_cast<Index>(item);
  if (entry.end - entry.begin != expected) {
    fail(where, "has ", entry.end - entry.begin, " bytes; its shape and dtype need ", expected);
  }
  return entry;
}

[[nodiscard]] inline TensorFile parse_tensors(const std::string& file, const Bytes& content) {
  if (content.size() < 8) fail(file, "is not a safetensors file; it has only ", content.size(), " bytes");
  const std::uint64_t header_size = load_little<std::uint64_t>(content.data());
  if (header_size > largest_header || header_size > content.size() - 8) {
    fail(file, "is not a safetensors file or is truncated; its header would have ", header_size,
         " bytes, the file has ", content.size());
  }
  const std::size_t data_begin = 8 + static_cast<std::size_t>(header_size);
  const Index data_size = static_cast<Index>(content.size() - data_begin);
  const nlohmann::json header =
      nlohmann::json::parse(content.data() + 8, content.data() + data_begin, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) fail(file, "is not a safetensors file; its header is not a JSON object");
  TensorFile r;
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != metadata_key) {
      entries.push_back(parse_tensor_entry(file, name, value, data_size));
      continue;
    }
    if (!value.is_object()) fail(file, metadata_key, " must be a map of texts");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail(file, metadata_key, ": '", printable(key), "' must be a text");
      r.metadata[key] = text.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  Index reached = 0;
  for (TensorEntry& entry : entries) {
    if (entry.begin != reached) {
      fail(file, "tensor '", printable(entry.tensor.name), "' begins at byte ", entry.begin,
           " of the data; the tensors before it end at ", reached);
    }
    reached = entry.end;
    const auto data = content.begin() + static_cast<std::ptrdiff_t>(data_begin);
    entry.tensor.data.assign(data + entry.begin, data + entry.end);
    r.tensors.push_back(std::move(entry.tensor));
  }
  if (reached != data_size) fail(file, "has ", data_size, " bytes of data; its tensors need ", reached);
  return r;
}

}  // namespace detail

/// Reads a safetensors file of F32 and F64 tensors.
///
/// \throws std::runtime_error  the file cannot be read, is truncated, or its header contradicts itself or the data
[[nodiscard]] inline TensorFile read_safetensors(const std::filesystem::path& path) {
  const std::string file = path.string();
  return detail::naming_file(file, [&] { return detail::parse_tensors(file, read_file(path)); });
}

/// Writes a safetensors file: to a temporary file first, which then takes the place of `path`.
///
/// \throws std::invalid_argument  an empty, reserved or repeated name, an unknown dtype, data that does not match
///                                the shape, or text that is not UTF-8
/// \throws std::runtime_error     the file cannot be written; an old one is left as it was
inline void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  nlohmann::json header = nlohmann::json::object();
  if (!file.metadata.empty()) header[std::string(detail::metadata_key)] = file.metadata;
  std::vector<std::span<const unsigned char>> parts(1);
  std::size_t offset = 0;
  for (const Tensor& tensor : file.tensors) {
    require(!tensor.name.empty() && tensor.name != detail::metadata_key && !header.contains(tensor.name),
            "tensor name", tensor.name, "names must be distinct, not empty and not __metadata__");
    const std::size_t item = detail::tensor_item_size(tensor.dtype);
    require(item != 0, tensor.name, tensor.dtype, "the dtype must be F32 or F64");
    require(tensor.data.size() == static_cast<std::size_t>(tensor.size()) * item, tensor.name, tensor.data.size(),
            sheafnn::detail::concat("its shape and dtype need ", static_cast<std::size_t>(tensor.size()) * item, " bytes"));
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
    parts.push_back(tensor.data);
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    throw_invalid_argument("tensor names and metadata", "a text", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  Bytes head;
  detail::append_little(head, std::uint64_t{text.size()});
  head.insert(head.end(), text.begin(), text.end());
  parts.front() = head;
  write_file(path, parts);
}

}  // namespace sheafnn::io
