/// \file
/// Tables from the benchmarks' JSON files, and the measured part of a page of documentation.
///
///     report [--update PAGE.md] FILE.json...
///
/// Prints the tables of all files. With --update, replaces what lies between the lines "<!-- measured: begin -->"
/// and "<!-- measured: end -->" of the page by the same text.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sheafnn/core/errors.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/epoch_table.hpp"
#include "support/kernel_table.hpp"
#include "support/markdown.hpp"
#include "support/measurement.hpp"
#include "support/scaling_table.hpp"

namespace {

using benchmarks::Measurement;
using sheafnn::detail::concat;

/// A file of Google Benchmark.
struct Results {
  std::string program;
  nlohmann::json context;
  std::vector<Measurement> measurements;
};

/// Name without what Google Benchmark appends: "texas/nsd/diagonal/manual_time" is "texas/nsd/diagonal".
std::string plain_name(std::string name) {
  while (true) {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return name;
    const std::string last = name.substr(slash + 1);
    if (last != "manual_time" && last != "real_time" && last.find(':') == std::string::npos) return name;
    name.resize(slash);
  }
}

/// \throws std::runtime_error  a file that cannot be read or is no result of Google Benchmark
Results read_results(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + ": cannot be read");
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    Results r{file.stem().string(), json.at("context"), {}};
    for (const nlohmann::json& run : json.at("benchmarks")) {
      if (run.value("error_occurred", false) || run.value("aggregate_name", "median") != "median") continue;
      Measurement m{plain_name(run.at("run_name")), {}};
      for (const auto& [key, value] : run.items()) {
        if (value.is_number()) m.values[key] = value.get<double>();
      }
      r.measurements.push_back(std::move(m));
    }
    return r;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(file.string() + ": " + error.what());
  }
}

/// When, where and with what these results were measured.
std::string provenance(const nlohmann::json& context) {
  const auto text = [&](const char* key) { return context.value(key, "unknown"); };
  return concat("Measured ", text("date").substr(0, 10), " on ", text("machine"), ", ",
                context.value("num_cpus", 0), " processors; ", text("compiler"), ", ", text("instructions"),
                "; commit ", text("commit"), "; graphs: ", text("graphs"), ".\n");
}

/// The same epochs with two presets.
std::string preset_table(const std::vector<Measurement>& native, const std::vector<Measurement>& portable) {
  using benchmarks::figure;
  std::string text = benchmarks::head({"epoch", "release, ms", "portable, ms", "times faster"});
  for (const Measurement& slow : portable) {
    const Measurement* fast = benchmarks::find(native, slow.name);
    if (fast == nullptr) continue;
    text += benchmarks::row({slow.name, figure((*fast)["median_ms"]), figure(slow["median_ms"]),
                             figure(slow["median_ms"] / (*fast)["median_ms"])});
  }
  return text;
}

/// The tables of one file; the tables of the presets compare with the epochs among `all`.
std::string section(const Results& results, const std::vector<Results>& all) {
  if (results.program == "portable") {
    const auto epochs =
        std::find_if(all.begin(), all.end(), [](const Results& r) { return r.program == "epochs"; });
    if (epochs == all.end()) throw std::runtime_error("portable: needs epochs.json beside it");
    return concat("### Presets\n\n", preset_table(epochs->measurements, results.measurements));
  }
  if (results.program == "epochs") {
    return concat(
        "### Epochs\n\nMilliseconds per epoch: the authors' code → this library (how many times faster).\n\n",
        benchmarks::epoch_table(results.measurements));
  }
  if (results.program == "kernels") {
    return concat("### Kernels\n\n", benchmarks::kernel_table(results.measurements));
  }
  if (results.program == "scaling")
    return concat("### Scaling\n\n", benchmarks::scaling_table(results.measurements));
  throw std::runtime_error(results.program +
                           ": no table for this program; expected epochs, portable, kernels or scaling");
}

/// Puts `text` between the two markers of a page.
///
/// \throws std::runtime_error  a page that cannot be read or written, or without the markers
void update_page(const std::filesystem::path& page, const std::string& text) {
  constexpr std::string_view begin = "<!-- measured: begin -->\n", end = "<!-- measured: end -->";
  std::ifstream in(page);
  std::stringstream content;
  content << in.rdbuf();
  std::string old = content.str();
  const std::size_t from = old.find(begin), to = old.find(end);
  if (!in || from == std::string::npos || to == std::string::npos || to < from) {
    throw std::runtime_error(page.string() + ": cannot be read or lacks the lines that mark the measured part");
  }
  old.replace(from + begin.size(), to - from - begin.size(), concat("\n", text, "\n"));
  std::ofstream out(page, std::ios::trunc);
  out << old;
  if (!out.flush()) throw std::runtime_error(page.string() + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::filesystem::path page;
    std::vector<Results> all;
    for (int i = 1; i < argc; ++i) {
      if (std::string_view(argv[i]) == "--update") {
        sheafnn::require(i + 1 < argc, "--update", "nothing", "expected the page to renew");
        page = argv[++i];
        continue;
      }
      all.push_back(read_results(argv[i]));
    }
    sheafnn::require(!all.empty(), "files", "none", "usage: report [--update PAGE.md] FILE.json...");
    std::string text = provenance(all.front().context);
    for (const Results& results : all) text.append("\n").append(section(results, all));
    std::printf("%s", text.c_str());
    if (!page.empty()) update_page(page, text);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report: %s\n", error.what());
    return 2;
  }
}
