// Parts of the programs: names of files that are not UTF-8, folders of checkpoints that are damaged or taken.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/class_names.hpp"
#include "models/training_folder.hpp"
#include "temporary_folder.hpp"

namespace test_program_parts {
namespace {

using programs::TrainingFolder;
using Texts = std::map<std::string, std::string>;

const Texts settings = {{"data", "karate 1"}, {"lr", "0.1"}}, selection = {{"seed", "0"}};

TrainingFolder open(const std::filesystem::path& folder, bool resumed,
                    const std::vector<std::string>& arguments = {"--lr", "0.1"}) {
  return {folder, resumed, arguments, settings, selection};
}

// The message with the folder taken off its front.
std::string message_of(const std::filesystem::path& folder, bool resumed,
                       const std::vector<std::string>& arguments = {"--lr", "0.1"}) {
  try {
    open(folder, resumed, arguments);
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    REQUIRE(message.starts_with(folder.string()));
    return message.substr(folder.string().size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("texts that are not UTF-8") {
  CHECK(programs::as_utf8("") == "");
  CHECK(programs::as_utf8("a\xC3\xA9\xF0\x9F\x8D\x8E") == "a\xC3\xA9\xF0\x9F\x8D\x8E");
  CHECK(programs::as_utf8("d\xE9/a\xC3") == "d\xEF\xBF\xBD/a\xEF\xBF\xBD");
  sheafnn::Dataset data;
  data.name = "d\xE9";
  CHECK(programs::checkpoint_notes(data, 1).at("dataset") == "d\xEF\xBF\xBD");
}

TEST_CASE("folders of checkpoints: arguments that are not UTF-8 are refused before anything is made") {
  const test::TemporaryFolder parent;
  const std::filesystem::path folder = parent / "folder";
  CHECK(message_of(folder, false, {"--dataset", "d\xE9.npz"}) ==
        ": cannot keep the argument 'd?.npz', which is not UTF-8; name the file otherwise");
  CHECK(!std::filesystem::exists(folder));
  // That of the folder itself is not kept.
  CHECK(message_of(parent / "d\xE9", false, {"--checkpoint", "d\xE9"}) == "no error");
}

TEST_CASE("folders of checkpoints: a damaged training.json is named, with what is wrong") {
  const test::TemporaryFolder folder;
  CHECK(message_of(folder.path(), false) == "no error");
  CHECK(message_of(folder.path(), true) == "no error");
  const auto damaged = [&](const std::string& parts) {
    folder.write("training.json", R"({"arguments": [], )" + parts + "}");
    return message_of(folder.path(), true);
  };
  CHECK(damaged(R"("settings": [])") == "/training.json: 'settings' must be a map of texts");
  CHECK(damaged(R"("settings": {"data": "karate 1", "lr": 0.1})") ==
        "/training.json: settings: 'lr' must be a text");
  CHECK(damaged(R"("settings": {"data": "karate 1", "lr": "0.1"}, "selection": "x")") ==
        "/training.json: 'selection' must be a map of texts");
  CHECK(damaged(R"("settings": {"data": "karate 1"})") ==
        "/training.json: lr was 'nothing' and is '0.1' now; this training cannot go on");
  CHECK(damaged(R"("settings": {"data": "karate 1", "lr": "0.1", "skip": "x"})") ==
        "/training.json: skip was 'x' and is at its default now; this training cannot go on");
}

TEST_CASE("folders of checkpoints: temporary files of a training that is refused stay") {
  const test::TemporaryFolder folder;
  CHECK(message_of(folder.path(), false) == "no error");
  const std::filesystem::path temporary = folder.write("split-0-seed-0.safetensors.1.tmp", "of another process");
  CHECK(
      message_of(folder.path(), false).ends_with("holds the checkpoints of a training; --resume goes on with it"));
  CHECK(std::filesystem::exists(temporary));
  CHECK(message_of(folder.path(), true) == "no error");
  CHECK(!std::filesystem::exists(temporary));
}

TEST_CASE("classes without names are numbers, in a model and in a dataset") {
  const auto taken = [](std::vector<std::string> own, sheafnn::Index count, std::vector<std::string> names,
                        sheafnn::Index classes) {
    sheafnn::Dataset data;
    data.labels = {0, 1, -1, 0};
    data.class_names = std::move(own);
    data.class_count = count;
    programs::take_class_names(data, std::move(names), classes);
    return data.labels;
  };
  using Labels = std::vector<std::int32_t>;
  CHECK(taken({}, 2, {}, 3) == Labels{0, 1, -1, 0});
  CHECK(taken({"0", "2"}, 2, {}, 3) == Labels{0, 2, -1, 0});
  CHECK(taken({"2", "5"}, 2, {}, 3) == Labels{2, -1, -1, 2});
  CHECK(taken({}, 2, {"0", "1", "2"}, 3) == Labels{0, 1, -1, 0});
  CHECK(taken({}, 2, {"1", "2"}, 2) == Labels{-1, 0, -1, -1});
  CHECK(taken({}, 2, {"red", "green"}, 2) == Labels{0, 1, -1, 0});  // by their numbers
}

}  // namespace test_program_parts
