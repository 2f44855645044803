/// \file
/// Draws what a trained model has learned, as SVG pictures and one HTML page. They show the graph with classes, uncertainty
/// and maps, histograms, spectrum, features along the layers, rejection and training. It reads what train and predict write,
/// needs gnuplot, and knows no models.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sheafnn/io/datasets.hpp>
#include <string>
#include <vector>

#include "explore/learned.hpp"
#include "explore/page.hpp"
#include "explore/pictures.hpp"
#include "models/class_names.hpp"
#include "models/data_options.hpp"
#include "models/program.hpp"
#include "models/sheaf_figures.hpp"

namespace {

using namespace explore;

struct Settings {
  std::string sheaf, dataset = "karate", report, output;
  sheafnn::SyntheticOptions synthetic;
  programs::DataOptions data;
  int split = -1;
  std::optional<std::uint64_t> seed;
};

/// The results of one training in a report of train --history, as --split and --seed name it.
///
/// \param dataset  its name, which the report has to have
/// \throws std::runtime_error  a report of another dataset or model, or with several such trainings
History read_history(const Settings& s, const std::string& dataset, const Learned& learned) {
  const std::string& path = s.report;
  using nlohmann::json;
  const sheafnn::io::Bytes bytes = sheafnn::io::read_file(path);
  const auto wrong = [&](const std::string& what) { sheafnn::io::detail::fail(path, what); };
  const json report = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!report.is_object() || !report.contains("splits") || !report["splits"].is_array()) {
    wrong("is not a report of train");
  }
  try {
    const std::string trained = report.at("dataset").get<std::string>();
    if (trained != programs::as_utf8(dataset))
      wrong(joined({"is a report of '", trained, "', but --dataset is '", dataset, "'"}));
    std::vector<std::pair<std::string, json>> found;
    for (const json& one : report["splits"]) {
      const auto split = one.at("split").get<std::int64_t>();
      const auto seed = (one.contains("seed") ? one : report.at("options")).at("seed").get<std::uint64_t>();
      if ((s.split >= 0 && split != s.split) || (s.seed && seed != *s.seed)) continue;
      found.emplace_back(joined({"split ", split, ", seed ", seed}), one);
    }
    if (found.size() > 1) {
      wrong(joined({"has ", found.size(), " such trainings; --split and --seed choose one: ", found[0].first, "; ",
                    found[1].first, found.size() > 2 ? "; …" : ""}));
    }
    for (const auto& [name, one] : found) {
      if (!one.contains("history")) wrong("has no history; train --history writes one");
      const std::string model = report.at("model").get<std::string>(), maps = report.at("maps").get<std::string>();
      if (model != learned.model || (!learned.cooperative() && maps != learned.family)) {
        wrong(joined({"is of ", model, " with ", maps, " maps, but --sheaf of ", learned.model, " with ",
                      learned.family, " maps"}));
      }
      const json& from = one["history"];
      History r;
      r.training = name;
      const std::pair<const char*, std::vector<double>*> columns[] = {{"loss", &r.objective},
                                                                      {"kl", &r.kl},
                                                                      {"validation_loss", &r.validation_loss}};
      for (const auto& [name, values] : columns) {
        for (const json& number : from.at(name)) {  // without validation nodes their loss is null
          const bool unknown = number.is_null() && values == &r.validation_loss;
          values->push_back(unknown ? std::nan("") : number.get<double>());
        }
        if (values->empty() || values->size() != r.objective.size()) wrong("has columns of different lengths");
      }
      r.best_epoch = one.at("best_epoch").get<Index>();
      return r;
    }
  } catch (const json::exception& error) {
    wrong(joined({"is not a report of train: ", error.what()}));
  }
  wrong(joined({"has no training", s.split >= 0 ? joined({" on split ", s.split}) : "",
                s.seed ? joined({" with seed ", *s.seed}) : ""}));
  return {};
}

/// The names of the classes in a file of train --sheaf or predict --sheaf; empty without names.
std::vector<std::string> read_class_names(const std::string& path, const sheafnn::io::NpzArchive& file) {
  if (!file.contains("class_names")) return {};
  std::string record;
  for (const std::int64_t byte : file.array("class_names").values<std::int64_t>())
    record += static_cast<char>(byte);
  const std::vector<Index> shape = file.array("probabilities").shape();
  if (shape.size() != 2) return {};
  return sheafnn::io::saved_class_names(path, {{"class_names", record}}, shape[1]);
}

void run(Settings& settings) {
  const programs::Interruption interruption;
  const std::filesystem::path folder = settings.output;
  const bool exists = std::filesystem::exists(folder);
  sheafnn::require(!exists || std::filesystem::is_directory(folder), "--output", settings.output,
                   "is not a folder");
  const std::filesystem::path unslashed = folder.filename().empty() ? folder.parent_path() : folder;
  programs::require_writable("--output", exists ? folder / "index.html" : unslashed);
  require_apart_from_page(folder, {{"--sheaf", settings.sheaf},
                                   {"--report", settings.report},
                                   {"--dataset", settings.dataset}});
  sheafnn::Dataset data =
      settings.split >= 0
          ? programs::load_training_data(settings.dataset, settings.synthetic, settings.data)
          : programs::load(settings.dataset, settings.synthetic, sheafnn::DatasetUse::prediction, settings.data);
  const sheafnn::io::NpzArchive archive(settings.sheaf);
  const std::vector<std::string> class_names = read_class_names(settings.sheaf, archive);
  const std::vector<Index> classes =
      archive.contains("probabilities") ? archive.array("probabilities").shape() : std::vector<Index>{};
  programs::take_class_names(data, class_names, classes.size() == 2 ? classes[1] : 0);
  const Learned learned = read_learned(archive, data);
  if (data.class_names.empty()) data.class_names = class_names;  // of what is predicted
  for (std::string& name : data.class_names) name = programs::as_utf8(name);
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(data.node_count()));
  std::iota(nodes.begin(), nodes.end(), 0);
  std::string nodes_name = "labelled nodes";
  if (settings.split >= 0) {
    const Index count = static_cast<Index>(data.splits.size());
    sheafnn::require(settings.split < count, "--split", settings.split,
                     joined({data.name, " has ", count, " splits"}));
    nodes = data.splits[static_cast<std::size_t>(settings.split)].test;
    nodes_name = joined({"test nodes of split ", settings.split});
  }
  History history;
  if (!settings.report.empty()) history = read_history(settings, data.name, learned);
  const Exploration shown =
      explore_model(data, learned, nodes, nodes_name, settings.report.empty() ? nullptr : &history);
  const std::string index = page("What was learned on " + data.name, shown);

  std::filesystem::create_directory(folder);
  for (const Picture& picture : shown.pictures) sheafnn::io::write_text(folder / picture.file, picture.svg);
  sheafnn::io::write_text(folder / "index.html", index);
  if (learned.use) programs::print_sheaf_use({*learned.use}, " in training");
  std::printf("%zu pictures: %s\n", shown.pictures.size(), (folder / "index.html").string().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Draws what a trained model has learned, with gnuplot, and writes a page that shows it.",
               "explore");
  app.add_option("--sheaf", s.sheaf, ".npz file written by train --sheaf or predict --sheaf")->required();
  programs::add_dataset_options(app, s.dataset, s.synthetic, s.data);
  programs::add_split_options(app, s.data);
  auto* split =
      app.add_option("--split", s.split,
                     "measure accuracies on the test nodes of this split (default: on all labelled nodes)")
          ->check(programs::between<sheafnn::Index>(0, 1'000'000));
  for (const char* option : {"--make-splits", "--exchange-masks"}) app.get_option(option)->needs(split);
  auto* report =
      app.add_option("--report", s.report, "draw the training in this file, written by train --history --report");
  app.add_option("--seed", s.seed, "draw the training with this seed, where the split has several")->needs(report);
  app.add_option("--output", s.output, "folder for index.html and its pictures, created if it does not exist")
      ->required();
  return programs::run_program(app, argc, argv, [&] {
    programs::refuse_idle_dataset_options(app, s.dataset);
    run(s);
  });
}
