/// \file
/// The safetensors format: named tensors of floating-point numbers and a map of texts.
///
/// Source: the format's specification at https://huggingface.co/docs/safetensors. A file has 8 bytes with the size of the
/// header (lowest first), the header in JSON, and the tensors' bytes one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// What the header says of one name. A null is a value of another type.
struct HeaderEntry {
  bool object = false;
  std::map<std::string, std::optional<std::string>> texts;  ///< members that are not arrays
  std::map<std::string, std::vector<std::optional<std::uint64_t>>> arrays;
};

/// The header while nlohmann::json reads it, event by event. Its trees of values take memory when they are destroyed, and
/// end the process where no memory is left.
class TensorHeader {
 public:
  using Json = nlohmann::json;

  /// \returns the entries by name, or nothing where the text is not a JSON object
  [[nodiscard]] static std::optional<std::map<std::string, HeaderEntry>> parse(const unsigned char* begin,
                                                                               const unsigned char* end) {
    TensorHeader header;
    if (!Json::sax_parse(begin, end, &header) || !header.is_object_) return std::nullopt;
    return std::move(header.entries_);
  }

  // What the parser calls, in the order of the text; false ends it.
  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(Json::number_integer_t) { return value(); }
  bool number_unsigned(Json::number_unsigned_t number) { return value(number); }
  bool number_float(Json::number_float_t, const std::string&) { return value(); }
  bool binary(Json::binary_t&) { return value(); }
  bool string(std::string& text) {
    if (depth_ == 2 && member_ != nullptr) entry_->texts[*member_] = std::move(text);
    return value();
  }
  bool start_object(std::size_t) {
    static_cast<void>(value());
    if (depth_ == 0) is_object_ = true;
    if (depth_ == 1) entry_->object = true;
    array_ = nullptr;
    member_ = nullptr;
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ == 0) return false;  // a list, and not an object
    static_cast<void>(value());
    array_ = nullptr;
    if (depth_ == 2 && member_ != nullptr) {
      array_ = &entry_->arrays[*member_];
      entry_->texts.erase(*member_);
    }
    member_ = nullptr;
    ++depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ == 1) {
      entry_ = &entries_[name];
      *entry_ = {};  // of equal names the last one counts
    } else if (depth_ == 2) {
      entry_->arrays.erase(name);
      member_ = &entry_->texts.insert_or_assign(std::move(name), std::nullopt).first->first;
    }
    return true;
  }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) { return false; }

 private:
  bool value(std::optional<std::uint64_t> number = std::nullopt) {
    if (depth_ == 3 && array_ != nullptr) array_->push_back(number);
    return true;
  }
  bool end() {
    if (--depth_ <= 2) array_ = nullptr;
    return true;
  }

  std::map<std::string, HeaderEntry> entries_;
  bool is_object_ = false;
  std::size_t depth_ = 0;  ///< of the object or array that is read
  HeaderEntry* entry_ = nullptr;
  const std::string* member_ = nullptr;                          ///< of entry_, whose value comes next
  std::vector<std::optional<std::uint64_t>>* array_ = nullptr;  ///< of entry_, where it is read
};

/// A whole number ≥ 0 from the header.
[[nodiscard]] inline Index header_size(const std::optional<std::uint64_t>& value, const std::string& where,
                                       const char* what) {
  constexpr std::uint64_t most = std::numeric_limits<Index>::max() / 16;
  if (!value || *value > most) fail(where, what, " must hold whole numbers from 0 to ", most);
  return static_cast<Index>(*value);
}

/// A tensor of the header, whose values are bytes [begin, end) after the header.
struct TensorEntry {
  Tensor tensor;
  Index begin = 0;
  Index end = 0;
};

[[nodiscard]] inline TensorEntry parse_tensor_entry(const std::string& file, const std::string& name,
                                                    const HeaderEntry& header, Index data_size) {
  const std::string where = sheafnn::detail::concat(file, ": tensor '", printable(name), "'");
  const auto array = [&](const char* key) -> const std::vector<std::optional<std::uint64_t>>& {
    const auto found = header.arrays.find(key);
    if (found == header.arrays.end()) fail(where, key, " is missing or wrong");
    return found->second;
  };
  TensorEntry entry;
  entry.tensor.name = name;
  const auto dtype = header.texts.find("dtype");
  if (dtype == header.texts.end() || !dtype->second) fail(where, "dtype is missing or wrong");
  entry.tensor.dtype = *dtype->second;
  const std::size_t item = tensor_item_size(entry.tensor.dtype);
  if (item == 0) fail(where, "has dtype '", printable(entry.tensor.dtype), "'; F32 and F64 are supported");
  // The product is bounded even where an extent is 0, so that users can multiply without care.
  constexpr Index most = std::numeric_limits<Index>::max() / 16;
  Index bound = 1;
  for (const std::optional<std::uint64_t>& extent : array("shape")) {
    entry.tensor.shape.push_back(header_size(extent, where, "shape"));
    const Index factor = std::max<Index>(entry.tensor.shape.back(), 1);
    if (factor > most / bound) fail(where, "has an impossible shape; its size overflows");
    bound *= factor;
  }
  const auto& offsets = array("data_offsets");
  if (offsets.size() != 2) fail(where, "data_offsets must hold two numbers, not ", offsets.size());
  entry.begin = header_size(offsets[0], where, "data_offsets");
  entry.end = header_size(offsets[1], where, "data_offsets");
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
  const std::uint64_t header_bytes = load_little<std::uint64_t>(content.data());
  if (header_bytes > largest_header || header_bytes > content.size() - 8) {
    fail(file, "is not a safetensors file or is truncated; its header would have ", header_bytes,
         " bytes, the file has ", content.size());
  }
  const std::size_t data_begin = 8 + static_cast<std::size_t>(header_bytes);
  const Index data_size = static_cast<Index>(content.size() - data_begin);
  const auto header = TensorHeader::parse(content.data() + 8, content.data() + data_begin);
  if (!header) fail(file, "is not a safetensors file; its header is not a JSON object");
  TensorFile r;
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : *header) {
    if (name != metadata_key) {
      entries.push_back(parse_tensor_entry(file, name, value, data_size));
      continue;
    }
    if (!value.object) fail(file, metadata_key, " must be a map of texts");
    const auto refuse = [&](const std::string& key) {
      fail(file, metadata_key, ": '", printable(key), "' must be a text");
    };
    if (!value.arrays.empty()) refuse(value.arrays.begin()->first);
    for (const auto& [key, text] : value.texts) {
      if (!text) refuse(key);
      r.metadata[key] = *text;
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

/// A text as JSON, in quotes. \throws std::invalid_argument  it is not UTF-8
[[nodiscard]] inline std::string json_text(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception& error) {
    throw_invalid_argument("tensor names and metadata", "a text", error.what());
  }
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
  std::map<std::string, std::string> entries;  // what the header says of each name, in the order of the header
  if (!file.metadata.empty()) {
    std::string& texts = entries[std::string(detail::metadata_key)];
    for (const auto& [key, value] : file.metadata) {
      texts += (texts.empty() ? '{' : ',') + detail::json_text(key) + ':' + detail::json_text(value);
    }
    texts += '}';
  }
  std::vector<std::span<const unsigned char>> parts(1);
  std::size_t offset = 0;
  for (const Tensor& tensor : file.tensors) {
    require(!tensor.name.empty() && tensor.name != detail::metadata_key && !entries.contains(tensor.name),
            "tensor name", tensor.name, "names must be distinct, not empty and not __metadata__");
    const std::size_t item = detail::tensor_item_size(tensor.dtype);
    require(item != 0, tensor.name, tensor.dtype, "the dtype must be F32 or F64");
    const std::size_t bytes = static_cast<std::size_t>(detail::element_count(tensor.name, tensor.shape)) * item;
    require(tensor.data.size() == bytes, tensor.name, tensor.data.size(),
            sheafnn::detail::concat("its shape and dtype need ", bytes, " bytes"));
    std::string shape;
    for (const Index extent : tensor.shape) {
      if (!shape.empty()) shape += ',';
      shape += std::to_string(extent);
    }
    entries[tensor.name] = "{\"data_offsets\":[" + std::to_string(offset) + ',' +
                           std::to_string(offset + tensor.data.size()) + "],\"dtype\":\"" + tensor.dtype +
                           "\",\"shape\":[" + shape + "]}";
    offset += tensor.data.size();
    parts.push_back(tensor.data);
  }
  std::string text;
  for (const auto& [name, entry] : entries) {
    text += (text.empty() ? '{' : ',') + detail::json_text(name) + ':' + entry;
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  Bytes head;
  detail::append_little(head, std::uint64_t{text.size()});
  head.insert(head.end(), text.begin(), text.end());
  parts.front() = head;
  write_file(path, parts);
}

}  // namespace sheafnn::io
