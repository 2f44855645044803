/// \file
/// Benchmarks of the batch engine on a GPU. Each section writes FOLDER/SECTION.json and FOLDER/SECTION.md and prints its
/// table.
///
///     sheafnn_gpu_benchmarks [SECTION...] [--out FOLDER] [--quick] …
///
/// Sections, all by default: calibration, epochs, filters, batch, kernels, scaling, as far as the program links their files.
/// docs/notebook/performance.md says what they measure. Results are written after each measurement.
///
///     --out FOLDER          where results go (default: they are only printed); it must exist
///     --quick               fewer repetitions and smaller graphs: a try, not a measurement
///     --device N            number of the device (default 0)
///     --in-turn             kernels start when the one before them has ended: no programmatic dependent launch
///     --evaluate-in-turn    evaluations come before training passes, not beside them, on small graphs too
///     --mix-apart           each layer's mixing is a launch of its own, on small graphs too
///     --only TEXT           of the epochs, filters and batches those whose name contains the text (texas/bsnn/diagonal)
///     --edges E             edges of the largest graph of `scaling` (default 60000000)
///     --kernel-edges E      edges of the graph of `kernels` (default 20000000)
///     --cpu-page PAGE.md    page with the table of the CPU's epochs (docs/notebook/performance.md), to show both
///     --layout              no measurements: tables whose cells say "unmeasured"; needs no device
///
/// Exit codes: 0, 1 a section failed (the others are measured nevertheless), 2 bad arguments, 77 there is no CUDA
/// device.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpu/section.hpp"
#include "support/command_line.hpp"
#include "support/cpu_epochs.hpp"

namespace {

using namespace benchmarks;
using sheafnn::detail::concat;
using sheafnn::Index;

struct CommandLine {
  Settings settings;
  bool layout = false;
  std::filesystem::path out;
  std::set<std::string_view> sections;  ///< empty: all
};

/// Takes "--NAME TEXT" out of the command line; empty when it is not there.
///
/// \throws std::invalid_argument  no text behind the name
std::string take_text(int& argc, char** argv, std::string_view name) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] != name) continue;
    sheafnn::require(i + 1 < argc, name, "nothing", "expected a value behind it");
    std::string text = argv[i + 1];
    std::copy(argv + i + 2, argv + argc, argv + i);
    argc -= 2;
    return text;
  }
  return {};
}

/// Takes "--NAME" out of the command line. \returns was it there?
bool take_flag(int& argc, char** argv, std::string_view name) {
  char** const end = std::remove_if(argv + 1, argv + argc, [&](const char* argument) { return argument == name; });
  const bool found = end != argv + argc;
  argc = static_cast<int>(end - argv);
  return found;
}

CommandLine parse(int argc, char** argv) {
  CommandLine r;
  const auto number = [&](const char* name, double fallback, double min, double max) {
    return take_option(argc, argv, name, fallback, min, max);
  };
  r.settings.quick = take_flag(argc, argv, "--quick");
  r.layout = take_flag(argc, argv, "--layout");
  r.settings.in_turn = take_flag(argc, argv, "--in-turn");
  r.settings.evaluate_in_turn = take_flag(argc, argv, "--evaluate-in-turn");
  r.settings.mix_apart = take_flag(argc, argv, "--mix-apart");
  r.settings.device = static_cast<int>(number("--device", 0, 0, 1023));
  // A graph has at most 2³⁰ edges.
  r.settings.edges = static_cast<Index>(number("--edges", r.settings.quick ? 1e6 : 6e7, 1e5, 1073741824.0));
  r.settings.kernel_edges =
      static_cast<Index>(number("--kernel-edges", r.settings.quick ? 1e6 : 2e7, 1e5, 1073741824.0));
  r.settings.only = take_text(argc, argv, "--only");
  const std::string page = take_text(argc, argv, "--cpu-page");
  if (!page.empty()) r.settings.cpu = cpu_epochs(page);
  r.out = take_text(argc, argv, "--out");
  sheafnn::require(r.out.empty() || std::filesystem::is_directory(r.out), "--out", r.out.string(),
                   "must be a folder that exists");
  std::string names;
  for (const auto& [place, section] : sections()) names.append(" ").append(section.name);
  for (int i = 1; i < argc; ++i) {
    const bool known =
        std::any_of(sections().begin(), sections().end(), [&](const auto& s) { return s.second.name == argv[i]; });
    sheafnn::require(known, "argument", argv[i],
                     concat("sections are", names, "; options: see the top of main.cu"));
    r.sections.insert(argv[i]);
  }
  return r;
}

/// Measures a section, prints and writes it. \returns was everything measured?
bool run_section(const Section& section, Executor* executor, const CommandLine& line) {
  Report report;
  const auto start = std::chrono::steady_clock::now();
  std::map<std::string, std::string> context = {{"quick", line.settings.quick ? "yes" : "no"},
                                                {"kernels", line.settings.in_turn ? "in turn" : "early"},
                                                {"evaluations",
                                                 line.settings.evaluate_in_turn ? "in turn" : "automatic"},
                                                {"mixing", line.settings.mix_apart ? "apart" : "automatic"}};
  if (executor != nullptr) {
    const DeviceFacts facts = device_facts(line.settings.device);
    context["device"] = facts.name;
    context["versions"] = facts.versions;
  }
  const auto table = [&] {
    std::string text = section.table(line.settings, report);
    for (const auto& [name, reason] : report.failures) text += concat("\nFailed: ", name, ": ", reason, "\n");
    return text;
  };
  const auto write = [&] {
    if (line.out.empty()) return;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    context["seconds"] = format("%.1f", seconds);
    write_file(line.out / concat(section.name, ".json"), to_json(section.name, report, context));
    write_file(line.out / concat(section.name, ".md"), table());
  };
  report.changed = write;
  if (executor != nullptr) {
    report.attempt(std::string(section.name), [&] { section.measure(*executor, line.settings, report); });
  }
  write();
  for (const auto& [name, reason] : report.failures) {
    std::fprintf(stderr, "%s: failed: %s\n", name.c_str(), reason.c_str());
  }
  std::printf("%s\n\n%s\n", std::string(section.name).c_str(), table().c_str());
  std::fflush(stdout);
  return report.failures.empty();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const CommandLine line = parse(argc, argv);
    std::unique_ptr<Executor> executor;
    if (!line.layout) {
      if (const std::string reason = no_device(); !reason.empty()) {
        std::fprintf(stderr, "sheafnn_gpu_benchmarks: no CUDA device: %s\n", reason.c_str());
        return 77;
      }
      executor = open_device(line.settings.device, line.settings.in_turn);
      executor->exchanges = !line.settings.mix_apart;
      const DeviceFacts facts = device_facts(line.settings.device);
      std::printf("%s; %s%s\n\n", facts.name.c_str(), facts.versions.c_str(),
                  line.settings.quick ? "; quick: a try, not a measurement" : "");
    }
    bool good = true;
    for (const auto& [place, section] : sections()) {
      if (line.sections.empty() || line.sections.contains(section.name)) {
        good = run_section(section, executor.get(), line) && good;
      }
    }
    return good ? 0 : 1;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "sheafnn_gpu_benchmarks: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sheafnn_gpu_benchmarks: %s\n", error.what());
    return 1;
  }
}
