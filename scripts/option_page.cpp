/// \file
/// Prints docs/options.md, what presets set (sheafnn/bsnn/presets.hpp) and a table of the options of every struct, from their
/// declarations (sheafnn/core/option.hpp), or the table of docs/networks.md that says where each network runs, from the
/// declarations of the kinds (sheafnn/bsnn/network_options.hpp):
///
///     option_page > docs/options.md
///     option_page engines
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/sampling_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/core/option.hpp>
#include <sheafnn/graph/edge_split.hpp>
#include <sheafnn/layers/layer_form.hpp>
#include <sheafnn/version.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/option_texts.hpp"

namespace {

using programs::shown;

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

/// The default; of an option that is not set also what that means. Sizes without one are left empty.
template <class Field>
std::string default_of(const sheafnn::Option& option, const Field& field) {
  if constexpr (std::is_same_v<Field, sheafnn::Index>) {
    if (!sheafnn::detail::is_within(option.range, static_cast<double>(field))) return "";
  }
  const std::string text = code(shown(field));
  return option.automatic == nullptr ? text : text + ": " + option.automatic;
}

/// The version that an option came with; "next" until it is released.
std::string since_of(const sheafnn::Option& option) {
  if (option.since == nullptr) return "0.1";
  int major = 0, minor = 0;
  std::sscanf(option.since, "%d.%d", &major, &minor);
  const bool released = std::pair(major, minor) <= std::pair(SHEAFNN_VERSION_MAJOR, SHEAFNN_VERSION_MINOR);
  return released ? option.since : "next";
}

/// A table of the options of one struct, with their defaults.
template <class Options>
void print_table(const Options& options, std::string_view title, const std::string& about) {
  std::printf("\n## %s\n\n%s\n\n", std::string(title).c_str(), about.c_str());
  std::printf("| option | C++ | command line | default | values | meaning | since |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- |\n");
  const auto print_row = [](const sheafnn::Option& option, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    const std::string flag = programs::flag_of(option);
    std::printf("| %s | %s | %s | %s | %s | %s | %s |\n", code(option.key).c_str(), code(option.member()).c_str(),
                code(flag).c_str(), default_of(option, field).c_str(), programs::values_of<Field>(option).c_str(),
                option.summary, since_of(option).c_str());
  };
  for_each_option(print_row, options);
}

/// Names separated by commas and spaces, as code; a dash: none.
std::string code_of_each(std::string_view names) {
  std::string text;
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(", "), names.size());
    text += (text.empty() ? "" : ", ") + code(std::string(names.substr(0, comma)));
    names.remove_prefix(std::min(comma + 2, names.size()));
  }
  return text.empty() ? "–" : text;
}

/// A row of the table of networks. \param option  of the program
void print_engine_row(const sheafnn::NetworkKind& kind, const std::string& title, const std::string& option) {
  const auto yes = [](bool supported) { return supported ? "yes" : "no"; };
  std::printf("| %s | %s | %s | yes | %s | %s | %s | %s | %s | %s |\n", title.c_str(),
              code(std::string(kind.deterministic)).c_str(), code(std::string(kind.bayesian)).c_str(),
              yes(kind.batched), yes(kind.batched), yes(kind.distributed),
              code(std::string(kind.program) + option).c_str(), code(std::string(kind.python)).c_str(),
              code_of_each(kind.modules).c_str());
}
/// The table of docs/networks.md: every kind of network, and every layer of networks of layers.
void print_engines() {
  std::printf(
      "| network | deterministic | Bayesian | CPU | side by side | CUDA | MPI | program | Python | PyTorch |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const auto print_kind = [](const sheafnn::NetworkKind& kind) {
    print_engine_row(kind, std::string(kind.title), " --model " + std::string(kind.deterministic));
  };
  for (const std::string_view form : names_of(sheafnn::LayerForm{})) {
    print_engine_row(sheafnn::ModelOptions::kind, "Layers: " + std::string(form), " --layer " + std::string(form));
  }
  for (const sheafnn::NetworkKind& kind : sheafnn::network_kinds) {
    if (kind.deterministic != sheafnn::ModelOptions::kind.deterministic) print_kind(kind);
  }
}

/// The options of a network and of its training by their names on the command line, with the values of a preset, or
/// their defaults.
template <class Options>
std::vector<std::pair<std::string, std::string>> values_of_preset(std::optional<sheafnn::Preset> preset,
                                                                  Options options) {
  sheafnn::TrainOptions training;
  options.features = 100;  // with fewer than 30 columns presets have other dropouts
  if (preset) {
    sheafnn::apply(*preset, options, /*bayesian*/ true, training);
    training.stop_on = sheafnn::choose_stop_on({}, *preset);
  }
  std::vector<std::pair<std::string, std::string>> values;
  const auto add = [&](const sheafnn::Option& option, const auto& field) {
    const std::string flag = programs::flag_of(option);
    values.emplace_back(flag.empty() ? option.key : flag, shown(field));
  };
  for_each_option(add, options);
  for_each_option(add, training);
  return values;
}
/// A row for each option that a preset sets, a column for each preset.
template <class Options>
std::string preset_table(const Options& options) {
  std::vector<std::vector<std::pair<std::string, std::string>>> columns = {values_of_preset({}, options)};
  std::string head = "| | `none`", rule = "| --- | ---";
  for (std::size_t i = 0; i < names_of(sheafnn::Preset()).size(); ++i) {
    columns.push_back(values_of_preset(sheafnn::Preset(i), options));
    head += " | " + code(std::string(names_of(sheafnn::Preset())[i]));
    rule += " | ---";
  }
  std::string rows;
  for (std::size_t row = 0; row < columns[0].size(); ++row) {
    bool set = false;
    std::string line = "| " + code(columns[0][row].first);
    for (const auto& column : columns) {
      set = set || column[row].second != columns[0][row].second;
      line += " | " + column[row].second;
    }
    if (set) rows += line + " |\n";
  }
  return head + " |\n" + rule + " |\n" + rows;
}
void print_presets() {
  std::printf(
      "\n## Presets\n\n"
      "What presets set, of Bayesian networks and data with 30 feature columns or more "
      "([how a preset is chosen](training.md#presets)).\n"
      "Options that are not in a table keep their defaults, the column `none`. `csnn` has no `--layer-learners`; "
      "`norm` is set by `--layer-norm`.\n");
  std::map<std::string, std::string> title_of;  // of a table
  const auto print_kind = [&]<class Options>(const Options& options) {
    const std::string title(Options::kind.deterministic), table = preset_table(options);
    const auto [place, is_new] = title_of.emplace(table, title);
    std::printf("\n### Presets of %s\n\n%s",
                (code(std::string(Options::kind.deterministic)) + " and " +
                 code(std::string(Options::kind.bayesian)))
                    .c_str(),
                is_new ? table.c_str() : ("The same as of `" + place->second + "`.\n").c_str());
  };
  const sheafnn::NetworkOptions networks;
  sheafnn::for_each_kind(networks, [&]<class Options>(const Options& options) {
    if constexpr (!Options::kind.on_hypergraphs) print_kind(options);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "engines") {
    print_engines();
    return 0;
  }
  std::printf(
      "# Options\n\n"
      "All options of networks and trainings. `option` is the name in checkpoints and in Python\n"
      "(`SheafClassifier(network={\"add_hp\": True}, training={\"samples\": 8})`). `C++` is the member of the "
      "struct, which errors in C++ name.\n"
      "`command line` is the option of `train`, `train_mpi` and `uncertainty`.\n\n"
      "The default holds without a preset, as in C++ and with `--preset none`. Programs and Python begin with the "
      "preset `auto`, which sets sizes,\n"
      "rates, decays, dropouts and the KL weight for the graph ([Training](training.md)). `auto` as a default "
      "means that the option is not set: leave\n"
      "it out, or give `None` in Python.\n\n"
      "An option that is `on` or `off` is set by `--add-lp` and unset by `--no-add-lp`, and is `True` or `False` "
      "in Python. `--edge-weights` and\n"
      "`--separate-encoder` take `on`, `off` or `auto`; the residual of cooperative networks has `--no-residual` "
      "only.\n"
      "Python's classifier has parameters of its own for `layers`, `channels`, `epochs`, `patience`, "
      "`learning_rate`, `kl_maximum` (`kl_weight`),\n"
      "`threads` and `seed` (`random_state`). It takes features, classes and the plan of features from the "
      "data.\n\n"
      "Files from before the version in the last column, where `next` follows " SHEAFNN_VERSION_STRING
      ", have the default, or what their networks did then\n"
      "([Old files](reliability.md#old-files)). Which options suit a graph: [Training](training.md) and\n"
      "[Which network](networks.md). Where networks run: [Networks](networks.md#where-each-runs).\n\n"
      "`scripts/option_page.cpp` prints this page from the declarations beside the structs "
      "(`core/option.hpp`).\n");
  print_presets();
  const sheafnn::NetworkOptions networks;
  const auto print_kind = []<class Options>(const Options& options) {
    const sheafnn::NetworkKind& kind = Options::kind;
    std::string about = sheafnn::detail::concat(code(std::string(kind.options)), ", of the models ",
                                                code(std::string(kind.bayesian)), " and ",
                                                code(std::string(kind.deterministic)), ".");
    if constexpr (std::same_as<Options, sheafnn::CooperativeOptions>) {
      about += " On the command line, `--layer-norm` and `--batch-norm` choose the `norm`.";
    }
    if constexpr (std::same_as<Options, sheafnn::HypergraphOptions>) {
      about += " They have no presets. On the command line, `--projection` draws the numbers of `projection`.";
    }
    print_table(options, kind.title, about);
  };
  sheafnn::for_each_kind(networks, print_kind);
  print_table(sheafnn::TrainOptions(), "Training",
              "`TrainOptions`, of all models. Python has `random_state` for `seed`.");
  print_table(
      sheafnn::SamplingOptions(), "Drawn neighbours",
      "`SamplingOptions`, of `train_on_samples()`, the program `large_graph` and `SampledClassifier`\n([large "
      "graphs](large_graphs.md)).");
  print_table(
      sheafnn::EdgeSplitOptions(), "Splits of edges",
      "`EdgeSplitOptions`, of `split_links()`, `split_edges()` and the program `links` ([Links](edges.md)).");
}
