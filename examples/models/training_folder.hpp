/// \file
/// The folder of --checkpoint and --resume. It has training.json with the command line, and one file for each training, a
/// split with a seed, after its first checkpoint.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/format_version.hpp>
#include <sheafnn/io/training_state.hpp>
#include <sheafnn/version.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/fingerprint.hpp"
#include "models/program.hpp"
#include "models/registry.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

namespace programs {

/// A folder that one program at a time writes into, until it ends in any way. File systems without locks let all of
/// them.
class FolderLock {
 public:
  /// \throws std::runtime_error  another program has the folder
  explicit FolderLock([[maybe_unused]] const std::filesystem::path& folder) {
#if defined(__unix__) || defined(__APPLE__)
    descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(descriptor_);
    sheafnn::io::detail::fail(folder.string(), "is in use; another training writes its checkpoints there");
#endif
  }
  ~FolderLock() {
#if defined(__unix__) || defined(__APPLE__)
    if (descriptor_ >= 0) ::close(descriptor_);
#endif
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// See the file comment.
class TrainingFolder {
 public:
  static constexpr const char* index = "training.json";
  /// The format version of that file; io/format_version.hpp says when it grows.
  static constexpr sheafnn::Index version = sheafnn::io::training_state_version;

  /// The arguments that a folder was begun with, followed by the arguments of this call; without --resume FOLDER the latter alone.
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
    if (json.contains("format_version")) {
      const nlohmann::json writer = json.value("sheafnn_version", nlohmann::json(""));
      if (!json["format_version"].is_number_integer() || !writer.is_string()) bad();
      sheafnn::io::require_known_version(path.string(), json["format_version"].get<sheafnn::Index>(), version,
                                         writer.get<std::string>());
    }
    std::vector<std::string> all;
    for (const nlohmann::json& argument : json["arguments"]) {
      if (!argument.is_string()) bad();
      all.push_back(argument.get<std::string>());
    }
    // Older trainings had another default, which only their settings show.
    const auto settings = texts_of(path, json, "settings");
    const auto said = [&](const std::string& option) {
      return std::any_of(all.begin(), all.end(), [&](const std::string& argument) {
        return argument == option || argument.starts_with(option + "=");
      });
    };
    if (const auto rows = settings.find("normalise_features"); rows != settings.end()) {
      if (!said("--feature-treatment"))
        all.push_back(rows->second == "true" ? "--normalise-features" : "--no-normalise-features");
    }
    const auto add_default = [&](const char* option, const std::string& value) {
      if (!said(option)) all.insert(all.end(), {option, value});
    };
    const auto is = [&](const char* key, std::initializer_list<const char*> values) {
      const auto found = settings.find(key);
      return found != settings.end() && std::find(values.begin(), values.end(), found->second) != values.end();
    };
    if (is("model", {"bsnn", "bflow"}) && !is("maps", {"identity"}) && settings.contains("kl_weight")) {
      if (!settings.contains("spread")) add_default("--spread", "published");
      if (!is("kl_schedule", {"off"})) add_default("--kl-weight", settings.at("kl_weight"));
    }
    if (settings.contains("lr") && !settings.contains("sheaf_lr")) add_default("--sheaf-lr", "0");
    const auto model = settings.find("model");
    if (settings.contains("parametrisation") && (model == settings.end() || has_family(model->second))) {
      if (is("maps", {"special-orthogonal"})) add_default("--parametrisation", settings.at("parametrisation"));
      if (!settings.contains("sheaf_activation")) add_default("--sheaf-activation", "tanh");
    }
    all.insert(all.end(), given.begin(), given.end());
    return all;
  }
  /// All of them but --checkpoint and --resume: what is resumed stays in its own folder, wherever that is by then.
  [[nodiscard]] static std::vector<std::string> without_folder(const std::vector<std::string>& arguments) {
    std::vector<std::string> r;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      if (argument == "--checkpoint" || argument == "--resume") {
        ++i;  // and its value
      } else if (!argument.starts_with("--checkpoint=") && !argument.starts_with("--resume=")) {
        r.push_back(argument);
      }
    }
    return r;
  }

  /// Begins a folder (or resumes one, where `resumed`).
  ///
  /// \param arguments  of the program, to be read by arguments() when the training is resumed
  /// \param settings   option → value of what determines the result of each training
  /// \param selection  option → value of what selects the trainings
  /// \throws std::runtime_error  it cannot be written; it holds another training, or holds one and is not resumed;
  ///                             another program writes into it
  TrainingFolder(std::filesystem::path folder, bool resumed, const std::vector<std::string>& arguments,
                 std::map<std::string, std::string> settings, const std::map<std::string, std::string>& selection)
      : folder_(std::move(folder)), resumed_(resumed), settings_(std::move(settings)) {
    const std::string name = folder_.string();
    const std::vector<std::string> kept = without_folder(arguments);
    for (const std::string& argument : kept) {
      if (as_utf8(argument) == argument) continue;
      sheafnn::io::detail::fail(name, "cannot keep the argument '", sheafnn::io::detail::printable(argument),
                                "', which is not UTF-8; name the file otherwise");
    }
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) sheafnn::io::detail::fail(name, "cannot be made; ", error.message());
    lock_.emplace(folder_);  // before the other program's unfinished files are taken for old ones
    const std::filesystem::path path = folder_ / index;
    nlohmann::json json;
    if (resumed_) {
      json = nlohmann::json::parse(sheafnn::io::read_file(path), nullptr, false);
      version_ = json.is_object() ? json.value("format_version", sheafnn::Index{1}) : version;
    }
    description_ = nlohmann::ordered_json{{"format_version", version_},
                                          {"sheafnn_version", SHEAFNN_VERSION_STRING},
                                          {"arguments", kept},
                                          {"settings", settings_},
                                          {"selection", selection}}
                       .dump(2) +
                   "\n";
    if (resumed_) {
      const auto compare = [&](const char* part, const std::map<std::string, std::string>& now) {
        const std::map<std::string, std::string> before = texts_of(path, json, part);
        require_same(path, now, [&](const std::string& key) {
          const auto found = before.find(key);
          return found == before.end() ? std::string("nothing") : found->second;
        });
        for (const auto& [key, value] : before) {
          if (now.contains(key)) continue;
          sheafnn::io::detail::fail(path.string(), key, " was '", value,
                                    "' and is at its default now; this training cannot resume");
        }
      };
      compare("settings", settings_);
      compare("selection", selection);
    } else if (std::filesystem::exists(path)) {
      sheafnn::io::detail::fail(name, "holds the checkpoints of a training; --resume resumes it");
    }
    remove_temporary_files();
    if (!resumed_) write_index();
  }

  /// The version of training.json, whose conventions all trainings follow (bsnn/conventions.hpp).
  [[nodiscard]] sheafnn::Index conventions() const noexcept { return version_; }

  /// The file of one training in a folder.
  [[nodiscard]] static std::filesystem::path file(const std::filesystem::path& folder, std::size_t split,
                                                  std::uint64_t seed) {
    return folder / ("split-" + std::to_string(split) + "-seed-" + std::to_string(seed) + ".safetensors");
  }
  /// The state of a training; empty before its first checkpoint.
  ///
  /// \throws std::runtime_error  a file that cannot be read, or that belongs to other settings; the message names the
  ///                             first setting that differs
  [[nodiscard]] std::optional<sheafnn::TrainingState> load(std::size_t split, std::uint64_t seed) const {
    const std::filesystem::path path = file(folder_, split, seed);
    if (!resumed_ || !std::filesystem::exists(path)) return {};
    sheafnn::io::TrainingFile content = sheafnn::io::read_training_state(path);
    require_same(path, settings_, [&](const std::string& key) {
      const auto found = content.metadata.find(key);
      return found == content.metadata.end() ? std::string("nothing") : found->second;
    });
    return std::move(content.state);
  }
  /// \throws std::runtime_error  it cannot be written; an older one is left as it was
  void save(std::size_t split, const sheafnn::TrainingState& state) const {
    // What changed on the command line stays so from the first checkpoint on.
    if (resumed_) std::call_once(index_written_, [&] { write_index(); });
    sheafnn::io::write_training_state(file(folder_, split, state.seed), state, settings_);
  }

 private:
  /// A map of texts in training.json; empty if it is missing.
  [[nodiscard]] static std::map<std::string, std::string> texts_of(const std::filesystem::path& path,
                                                                   const nlohmann::json& json, const char* part) {
    std::map<std::string, std::string> r;
    if (!json.contains(part)) return r;
    const nlohmann::json& texts = json[part];
    if (!texts.is_object()) sheafnn::io::detail::fail(path.string(), "'", part, "' must be a map of texts");
    for (const auto& [key, value] : texts.items()) {
      if (!value.is_string()) {
        sheafnn::io::detail::fail(path.string(), part, ": '", sheafnn::io::detail::printable(key),
                                  "' must be a text");
      }
      r[key] = value.get<std::string>();
    }
    return r;
  }
  /// Compares settings with earlier ones; data first, on which presets depend.
  template <class Before>
  static void require_same(const std::filesystem::path& path, const std::map<std::string, std::string>& settings,
                           const Before& before) {
    const auto check = [&](const std::string& key, const std::string& value) {
      if (before(key) == value) return;
      sheafnn::io::detail::fail(path.string(), key, " was '", before(key), "' and is '", value,
                                "' now; this training cannot resume");
    };
    if (const auto data = settings.find("data"); data != settings.end()) check("data", data->second);
    for (const auto& [key, value] : settings) check(key, value);
  }
  void write_index() const { sheafnn::io::write_text(folder_ / index, description_); }
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
  std::optional<FolderLock> lock_;
  bool resumed_;
  sheafnn::Index version_ = version;  ///< that it was begun with
  std::map<std::string, std::string> settings_;
  std::string description_;  ///< the content of training.json
  mutable std::once_flag index_written_;
};

}  // namespace programs
