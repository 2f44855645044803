/// \file
/// The folder of --checkpoint and --resume: training.json with the command line, and one file for each training, a split
/// with a seed, that has come to its first checkpoint.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/training_state.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace programs {

/// FNV-1a over the bytes of everything in a dataset that a training reads.
[[nodiscard]] inline std::string fingerprint(const sheafnn::Dataset& data) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](const auto& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values.data(), values.size()));
    for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3U;
  };
  add(data.graph.sources());
  add(data.graph.targets());
  add(data.features.offsets());
  add(data.features.column_of());
  add(data.features.values());
  add(data.labels);
  for (const sheafnn::Split& split : data.splits) {
    std::int32_t mark = 0;  // of an empty set: the same nodes for validation and for testing are two splits
    for (const auto* set : {&split.train, &split.validation, &split.test}) {
      --mark;
      if (set->empty()) {
        add(std::array{mark});
      } else {
        add(*set);
      }
    }
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// See the file comment.
class TrainingFolder {
 public:
  static constexpr const char* index = "training.json";

  /// The arguments that a folder was begun with, followed by those of this call; without --resume FOLDER the latter alone.
  ///
  /// \throws std::runtime_error  the folder holds no training
  [[nodiscard]] static std::vector<std::string> arguments(std::vector<std::string> given) {
    std::string folder;
    for (std::size_t i = 0; i < given.size(); ++i) {
      constexpr std::string_view option = "--resume";
      if (given[i] == option && i + 1 < given.size()) folder = given[i + 1];
      if (given[i].starts_with(std::string(option) + "=")) folder = given[i].substr(option.size() + 1);
    }
    if (folder.empty()) return given;
    const std::filesystem::path path = std::filesystem::path(folder) / index;
    const sheafnn::io::Bytes content = sheafnn::io::read_file(path);
    const nlohmann::json json = nlohmann::json::parse(content, nullptr, /*allow_exceptions=*/false);
    const auto bad = [&] {
      sheafnn::io::detail::fail(path.string(), "does not hold the arguments of a training");
    };
    if (!json.is_object() || !json.contains("arguments") || !json["arguments"].is_array()) bad();
    std::vector<std::string> all;
    for (const nlohmann::json& argument : json["arguments"]) {
      if (!argument.is_string()) bad();
      all.push_back(argument.get<std::string>());
    }
    all.insert(all.end(), given.begin(), given.end());
    return all;
  }

  /// Begins a folder (or goes on with one, where `resumed`).
  ///
  /// \param arguments  of the program, to be read by arguments() when the training goes on
  /// \param settings   option → value of what decides the result; a training goes on with equal ones only
  /// \throws std::runtime_error  it cannot be written, or it holds another training and is not resumed
  TrainingFolder(std::filesystem::path folder, bool resumed, const std::vector<std::string>& arguments,
                 std::map<std::string, std::string> settings)
      : folder_(std::move(folder)), resumed_(resumed), settings_(std::move(settings)) {
    const std::string name = folder_.string();
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) sheafnn::io::detail::fail(name, "cannot be made; ", error.message());
    remove_temporary_files();
    if (resumed_) return;
    if (std::filesystem::exists(folder_ / index)) {
      sheafnn::io::detail::fail(name, "holds the checkpoints of a training; --resume goes on with it");
    }
    const std::string text =
        nlohmann::ordered_json{{"arguments", arguments}, {"settings", settings_}}.dump(2) + "\n";
    const std::span<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(text.data()), text.size());
    sheafnn::io::write_file(folder_ / index, std::span(&bytes, 1));
  }

  /// The state of a training; none where it has not come to its first checkpoint.
  ///
  /// \throws std::runtime_error  a file that cannot be read, or that belongs to other settings: names the first of them
  [[nodiscard]] std::optional<sheafnn::TrainingState> load(std::size_t split, std::uint64_t seed) const {
    const std::filesystem::path path = file(split, seed);
    if (!resumed_ || !std::filesystem::exists(path)) return {};
    sheafnn::io::TrainingFile content = sheafnn::io::read_training_state(path);
    const auto check = [&](const std::string& key, const std::string& value) {
      const auto found = content.metadata.find(key);
      const std::string before = found == content.metadata.end() ? "nothing" : found->second;
      if (before == value) return;
      sheafnn::io::detail::fail(path.string(), key, " was ", before, " and is ", value,
                                " now; this training cannot go on");
    };
    check("data", settings_.at("data"));  // first: presets depend on it
    for (const auto& [key, value] : settings_) check(key, value);
    return std::move(content.state);
  }
  /// \throws std::runtime_error  it cannot be written; an older one is left as it was
  void save(std::size_t split, const sheafnn::TrainingState& state) const {
    sheafnn::io::write_training_state(file(split, state.seed), state, settings_);
  }

 private:
  [[nodiscard]] std::filesystem::path file(std::size_t split, std::uint64_t seed) const {
    return folder_ / ("split-" + std::to_string(split) + "-seed-" + std::to_string(seed) + ".safetensors");
  }
  /// What a killed program left half-written.
  void remove_temporary_files() const {
    std::error_code error;
    std::vector<std::filesystem::path> old;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".tmp") && (name.starts_with("split-") || name.starts_with(index)))
        old.push_back(entry.path());
    }
    for (const auto& path : old) std::filesystem::remove(path, error);
  }

  std::filesystem::path folder_;
  bool resumed_;
  std::map<std::string, std::string> settings_;
};

}  // namespace programs
