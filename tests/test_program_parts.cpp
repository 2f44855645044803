// Parts of the programs: names of files that are not UTF-8, folders of checkpoints that are damaged or taken, options that
// do not exist, --help.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/class_names.hpp"
#include "models/progress.hpp"
#include "models/target_kind.hpp"
#include "models/train_settings.hpp"
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

// A program with options, a group of them, and a command with options of its own.
struct Program {
  int epochs = 7;
  double rate = 0.5;
  std::string kind = "flat";
  bool flag = false;
  CLI::App app{"Does something.", "program"};

  Program() {
    app.add_option("--epochs", epochs, "how often")->capture_default_str();
    auto* group = app.add_option_group("Group", "what belongs together");
    auto* lr = group->add_option("--lr", rate, "a rate")->capture_default_str();
    group->add_option("--kind", kind, "one of two")
        ->capture_default_str()
        ->check(CLI::IsMember({"flat", "round"}));
    group->add_flag("--flag,!--no-flag", flag, "yes or no")->needs(lr);
    group->add_option("--weight-decay", rate, "another rate");
    auto* command = app.add_subcommand("make", "makes it");
    command->add_option("--folder", kind, "where")->required();
  }
  // What is said of these arguments.
  std::string message(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return programs::parse_message(app, error);
    }
    return "no error";
  }
};

}  // namespace

TEST_CASE("texts that are not UTF-8") {
  CHECK(programs::as_utf8("") == "");
  CHECK(programs::as_utf8("a\xC3\xA9\xF0\x9F\x8D\x8E") == "a\xC3\xA9\xF0\x9F\x8D\x8E");
  CHECK(programs::as_utf8("d\xE9/a\xC3") == "d\xEF\xBF\xBD/a\xEF\xBF\xBD");
  sheafnn::Dataset data;
  data.name = "d\xE9";
  CHECK(programs::checkpoint_notes(data, 1).at("dataset") == "d\xEF\xBF\xBD");
}

TEST_CASE("an option that does not exist: the closest is named") {
  const auto closest = [](const char* given) { return programs::closest_option(Program().app, given); };
  for (const char* given :
       {"--epoch", "--epohcs", "--EPOCHS", "-epochs", "epochs", "--num-epochs", "--epochs-max", "--ep"}) {
    CAPTURE(given);
    CHECK(closest(given) == "--epochs");
  }
  CHECK(closest("--learning_rate") == "--lr");
  CHECK(closest("--learning-rate") == "--lr");
  CHECK(closest("--decay") == "--weight-decay");
  CHECK(closest("--weigth-decay") == "--weight-decay");
  CHECK(closest("--no_flag") == "--no-flag");
  CHECK(closest("--checkpoint-every") == "");  // this program has no --every
  for (const char* given : {"--frobnicate", "--", "-", "", "--x"}) {
    CAPTURE(given);
    CHECK(closest(given) == "");
  }
  const std::string help = "; --help lists the options";
  CHECK(Program().message({"--epoch", "3"}) == "--epoch is not an option; the closest is --epochs" + help);
  CHECK(Program().message({"--epoch=3"}) == "--epoch is not an option; the closest is --epochs" + help);
  CHECK(Program().message({"--frobnicate"}) == "--frobnicate is not an option" + help);
  CHECK(Program().message({"epochs", "3"}) == "epochs is not expected here; the option is --epochs" + help);
  CHECK(Program().message({"--epochs", "3", "-4"}) == "-4 is not expected here" + help);
  // It may be why a required one is missing. Options of a command belong to it alone.
  CHECK(Program().message({"make", "--foldr", "x"}) == "--foldr is not an option; the closest is --folder" + help);
  CHECK(Program().message({"--folder", "x"}) == "--folder is not an option" + help);
  CHECK(Program().message({"make"}) == "--folder is required" + help);
  CHECK(Program().message({"--kind", "square"}).starts_with("--kind: square not in {"));
  CHECK(Program().message({"--kind", "square", "4"}).starts_with("--kind: square not in {"));
  CHECK(Program().message({"--" + std::string(100'000, 'e')}).ends_with("e is not an option" + help));
  for (const std::string number : {"99999999999", "-99999999999"}) {
    CHECK(Program().message({"--epochs", number}) ==
          "--epochs: " + number + " is not allowed; must be between -2147483648 and 2147483647" + help);
  }
}

TEST_CASE("numbers outside their limits, and numbers that are none, are named with the limits") {
  const auto said = [](const std::string& text, bool whole) {
    CLI::App app("Does something.", "program");
    sheafnn::Index rows = 3;
    double time = 2;
    app.add_option("--rows", rows, "rows")->check(programs::between<sheafnn::Index>(0, 30));
    app.add_option("--time", time, "end")->check(programs::between(0.5, 1e5));
    programs::refuse_misread_numbers(app);
    try {
      app.parse(std::vector<std::string>{text, whole ? "--rows" : "--time"});  // backwards, as CLI11 wants them
    } catch (const CLI::ParseError& error) {
      return std::string(error.what());
    }
    return std::string(rows == 3 && time == 2 ? "ignored" : "taken");
  };
  for (const char* text : {"0", "30", "+7"}) CHECK(said(text, true) == "taken");
  for (const char* text : {"0.5", "1e5", "7"}) CHECK(said(text, false) == "taken");
  for (const std::string text : {"31", "-1", "+99"}) {
    CHECK(said(text, true) == "--rows: " + text + " is not allowed; must be between 0 and 30");
  }
  for (const std::string text : {"0", "-1", "inf", "100001"}) {
    CHECK(said(text, false) == "--time: " + text + " is not allowed; must be between 0.5 and 100000");
  }
  for (const std::string text : {"nan", "soon", "1e", "1,5", "2 days"}) {
    CHECK(said(text, false) == "--time: " + text + " is not allowed; must be a number");
  }
  CHECK(said("0x2", true) == "--rows: 0x2 is not allowed; must be a whole number");
  CHECK(said("1e1", true) == "--rows: 1e1 is not allowed; must be a whole number");
  CHECK(said("-0", true) == "--rows: -0 is not allowed; 0 has no sign");
  CHECK(said("010", true) == "--rows: 010 is not allowed; a number has no leading zeros");
}

TEST_CASE("--help: groups with defaults, lines that are not too long") {
  Program program;
  const programs::HelpFormatter formatter([] { return programs::HelpFormatter::Defaults{{"--lr", "1 or 2"}}; });
  CHECK(formatter.make_help(&program.app, "program", CLI::AppFormatMode::Normal) ==
        R"(Does something.
Usage: program [OPTIONS] [SUBCOMMAND]

Options:
  -h,--help                       Print this help message and exit
  --epochs INT                    how often (default: 7)

Group, what belongs together:
  --lr FLOAT                      a rate (default: 1 or 2)
  --kind {flat,round}             one of two (default: flat)
  --flag,--no-flag                yes or no (needs --lr)
  --weight-decay FLOAT            another rate

Commands:
  make                            makes it
)");
  CLI::App wordy("", "wordy");
  std::string text = "\u03c3";  // one character
  for (int i = 0; i < 60; ++i) text += " \u03c3\u03c3\u03c3\u03c3\u03c3\u03c3\u03c3\u03c3\u03c3";
  wordy.add_flag("--an-option-whose-name-is-longer-than-its-column")->description(text);
  const std::string help = formatter.make_help(&wordy, "wordy", CLI::AppFormatMode::Normal);
  std::size_t longest = 0, length = 0;
  for (const char c : help) {
    if ((c & 0xC0) != 0x80) ++length;
    if (c == '\n') length = 0;
    longest = std::max(longest, length);
  }
  CHECK(longest <= 110);
  CHECK(longest > 100);
  CHECK(help.find("its-column\n" + std::string(34, ' ') + "\u03c3 ") != std::string::npos);
  CHECK(help.find(" \n") == std::string::npos);
}

TEST_CASE("folders of checkpoints: arguments that are not UTF-8 are refused before anything is made") {
  const test::TemporaryFolder parent;
  const std::filesystem::path folder = parent / "folder";
  CHECK(message_of(folder, false, {"--dataset", "d\xE9.npz"}) ==
        ": cannot keep the argument 'd?.npz', which is not UTF-8; name the file otherwise");
  CHECK(!std::filesystem::exists(folder));
  // The name of the folder itself is not kept.
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
        "/training.json: lr was 'nothing' and is '0.1' now; this training cannot resume");
  CHECK(damaged(R"("settings": {"data": "karate 1", "lr": "0.1", "skip": "x"})") ==
        "/training.json: skip was 'x' and is at its default now; this training cannot resume");
}

TEST_CASE("folders of checkpoints: temporary files of a training that is refused stay") {
  const test::TemporaryFolder folder;
  CHECK(message_of(folder.path(), false) == "no error");
  const std::filesystem::path temporary = folder.write("split-0-seed-0.safetensors.1.tmp", "of another process");
  CHECK(message_of(folder.path(), false).ends_with("holds the checkpoints of a training; --resume resumes it"));
  CHECK(std::filesystem::exists(temporary));
  CHECK(message_of(folder.path(), true) == "no error");
  CHECK(!std::filesystem::exists(temporary));
}

TEST_CASE("folders of checkpoints: one training at a time, whose temporary files stay") {
  const test::TemporaryFolder folder;
  std::filesystem::path temporary;
  {
    const TrainingFolder first = open(folder.path(), false);
    temporary = folder.write("split-0-seed-0.safetensors.1.tmp", "half of a state");
    for (const bool resumed : {false, true}) {
      CHECK(message_of(folder.path(), resumed) == ": is in use; another training writes its checkpoints there");
    }
    CHECK(std::filesystem::exists(temporary));
  }
  CHECK(message_of(folder.path(), true) == "no error");
  CHECK(!std::filesystem::exists(temporary));
}

TEST_CASE("files that are not there yet are the same through a symbolic link") {
  const test::TemporaryFolder folder;
  std::filesystem::create_symlink("sheaf.npz", folder / "link.npz");
  const auto message = [&](const std::filesystem::path& other) -> std::string {
    try {
      programs::require_apart({{"--sheaf", folder / "sheaf.npz"}, {"--predictions", other}}, {});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::filesystem::path link = folder / "link.npz";
  CHECK(message(link) == "--predictions: " + link.string() + " is the file of --sheaf");
  CHECK(message(folder / "other.npz") == "no error");
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

TEST_CASE("the score of an epoch: an accuracy in percent, R² as a number") {
  using programs::Score;
  CHECK(programs::score_text(Score::accuracy, 0.8214) == "82.1%");
  CHECK(programs::score_text(Score::accuracy, std::nan("")) == "-");
  CHECK(programs::score_text(Score::r_squared, 0.8214) == "R2 0.8214");
  CHECK(programs::score_text(Score::r_squared, -1.5) == "R2 -1.5000");
  CHECK(programs::score_text(Score::r_squared, std::nan("")) == "R2 -");
  using sheafnn::TargetLoss;
  for (const TargetLoss loss : {TargetLoss::squared, TargetLoss::gaussian, TargetLoss::poisson}) {
    CHECK_FALSE(programs::has_accuracy(loss));
  }
  for (const TargetLoss loss : {TargetLoss::multilabel, TargetLoss::ordinal}) CHECK(programs::has_accuracy(loss));
}

TEST_CASE("ordered classes of a checkpoint: every type of numbers that doubles hold") {
  // Three classes, 1, 2 and 5, or of two, false and true.
  const auto kind = [](const std::string& dtype, const std::string& data, sheafnn::Index outputs = 2) {
    const Texts notes = {{"targets", "ordinal"},
                         {"target_names", "grade"},
                         {"class_dtype", dtype},
                         {"class_data", data}};
    return programs::TargetKind("m.safetensors", notes, outputs).classes();
  };
  const auto message = [&](const std::string& dtype, const std::string& data) -> std::string {
    try {
      static_cast<void>(kind(dtype, data));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::pair<const char*, const char*> stored[] = {
      {"|i1", "010205"},
      {"|u1", "010205"},
      {"<i2", "010002000500"},
      {">i2", "000100020005"},
      {"<u2", "010002000500"},
      {"<i4", "010000000200000005000000"},
      {"<u4", "010000000200000005000000"},
      {"<i8", "010000000000000002000000000000000500000000000000"},
      {"<u8", "010000000000000002000000000000000500000000000000"},
      {"<f2", "003c00400045"},
      {"<f4", "0000803f000000400000a040"},
      {"<f8", "000000000000f03f00000000000000400000000000001440"}};
  for (const auto& [dtype, data] : stored)
    CHECK_MESSAGE((kind(dtype, data) == std::vector<double>{1, 2, 5}), dtype);
  CHECK(kind("|b1", "0001", 1) == std::vector<double>{0, 1});
  CHECK(kind("|i1", "ff00", 1) == std::vector<double>{-1, 0});
  CHECK(message("<U1", "610000006200000063000000")
            .find("m.safetensors: class_data: has element type '<U1'; supported are") == 0);
  CHECK(message("<f16", "00").find("class_data: has element type '<f16'") != std::string::npos);
  CHECK(message("<i2", "0100020005") ==
        "m.safetensors: class_data: has 5 bytes; elements of type '<i2' have 2 each");
  CHECK(message("|i1", "01020") == "m.safetensors: class_data is damaged; expected hexadecimal bytes of numbers");
  CHECK(message("|i1", "0102") == "m.safetensors: class_data has 2 classes; expected 3 in increasing order");
  CHECK(message("|i1", "010202") == "m.safetensors: class_data has 3 classes; expected 3 in increasing order");
  CHECK(message("|u1", "0501ff").find("expected 3 in increasing order") != std::string::npos);
  CHECK(message("<f4", "0000803f000000400000807f") == "m.safetensors: class_data has a number that is not finite");
  // 2^53 and 2^53 + 1, which is no double.
  CHECK(kind("<i8", "00000000000000000000000000002000", 1).back() == 9007199254740992.0);
  CHECK(
      message("<i8", "000000000000000000000000000020000100000000002000") ==
      "m.safetensors: class_data: has the number 9007199254740993; at most 9007199254740992 in size is supported");
}

TEST_CASE("conformal bounds of counts: whole numbers, and zero has no sign") {
  const std::string zero(16, '0'), one = "000000000000f03f";
  const Texts notes = {{"targets", "numbers"},      {"target_loss", "poisson"},
                       {"target_mean", zero},       {"target_scale", one},
                       {"base_rates", one},         {"interval_coverage", "cdccccccccccec3f"},
                       {"interval_thresholds", one}};
  const programs::TargetKind kind("m.safetensors", notes, 1);
  const auto r = kind.intervals({{0.4, 0.2, 2.5}, {0.5, 1.5, 1.0}});  // from −0.1, −1.3 and 1.5
  CHECK(r.lower == std::vector<double>{0, 0, 2});
  CHECK(r.upper == std::vector<double>{0, 1, 3});
  for (const double bound : r.lower) CHECK_FALSE(std::signbit(bound));
}

TEST_CASE("--edge-types and --stalks belong to the programs train and train_mpi, and the options say so") {
  programs::TrainSettings settings;
  CLI::App train("", "train"), others("", "train_mpi");
  programs::add_options(train, settings);
  programs::add_training_options(others, settings);
  for (const char* option : {"--edge-types", "--stalks", "--edge-stalks"}) {
    CHECK(train.get_option_no_throw(option) != nullptr);
    CHECK(others.get_option_no_throw(option) == nullptr);
  }
  programs::add_type_options(others, settings.data);  // as train_mpi does
  for (const char* option : {"--edge-types", "--stalks", "--edge-stalks"}) {
    CHECK(others.get_option_no_throw(option) != nullptr);
  }
  int seen = 0;
  const auto check = [&](const sheafnn::Option& option, const auto&) {
    const std::string key = option.key;
    if (key != "edge_types" && key != "node_types" && key != "stalks" && key != "edge_stalks") return;
    ++seen;
    CHECK_MESSAGE(std::string(option.summary).find("train and train_mpi have --") != std::string::npos, key);
  };
  const sheafnn::ModelOptions options;
  for_each_option(check, options);
  CHECK(seen == 4);
}

}  // namespace test_program_parts
