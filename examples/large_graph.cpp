/// \file
/// Trains a sheaf network on drawn neighbours of a graph that may be larger than memory. Of its folder of .npy arrays, only
/// the rows that a step needs are read.
///
///     graph_folder generate --folder big --nodes 10000000
///     large_graph big --fan-outs 10,5 --batch-size 512 --steps 100 --evaluated 10000 --epochs 5
#include <CLI/CLI.hpp>
#include <cstdio>
#include <sheafnn/io/folder_rows.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <string>
#include <string_view>
#include <tuple>

#include "models/option_flags.hpp"
#include "models/program.hpp"
#include "models/registry.hpp"
#include "models/sampled.hpp"
#include "models/trained_network.hpp"

namespace {

struct Settings : programs::SampledDefaults {
  std::string folder, save, model = "nsd", maps = "special-orthogonal";
  int stalk_dimension = 3;
};

void train(const Settings& s, const sheafnn::io::FolderRows& rows) {
  sheafnn::TrainOptions options = s.train;
  options.on_epoch = [](const sheafnn::EpochReport& epoch) {
    std::printf("epoch %td: loss %.4f, validation loss %.4f, accuracy %.1f %%\n", epoch.epoch, epoch.loss,
                epoch.validation_loss, 100 * epoch.validation_accuracy);
    std::fflush(stdout);
  };
  const std::string name = sheafnn::io::folder_name(s.folder);
  const programs::NetworkOutcome outcome = programs::find_model(s.model, s.maps, s.stalk_dimension)
                                               .train_on_samples({rows, name, rows.split(), s.network, s.sampling,
                                                                  options, programs::is_bayesian(s.model)});
  const sheafnn::TrainResult& result = outcome.result;
  std::printf("best epoch %td: test accuracy %.1f %%, test loss %.4f; %.2f s an epoch\n", result.best_epoch,
              100 * result.test_accuracy, result.test_nll, result.epoch_seconds);
  if (!s.save.empty()) sheafnn::io::write_safetensors(s.save, outcome.checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  auto& network = std::get<sheafnn::ModelOptions>(s.network);
  CLI::App app("Trains a sheaf network on drawn neighbours; see docs/large_graphs.md.", "large_graph");
  app.add_option("folder", s.folder, "folder of .npy arrays: indptr, indices, features, labels and masks")
      ->required();
  app.add_option("--model", s.model, "nsd, or bsnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  app.add_option("--maps", s.maps, "restriction maps: " + programs::joined(programs::maps_names))
      ->capture_default_str();
  app.add_option("--stalk-dim", s.stalk_dimension, "stalk dimension, 1 to 5")->capture_default_str();
  app.add_option("--fan-outs", s.sampling.fan_outs, programs::fan_outs_text)
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--save", s.save, "write the trained network to this .safetensors file");
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *app.add_option_group("Sampling"), s.sampling, all);
  programs::add_flags(app, *app.add_option_group("Model"), network,
                      [](std::string_view key) { return key != "classes"; });
  programs::add_flags(app, *app.add_option_group("Training"), s.train,
                      [](std::string_view key) { return key != "checkpoint_every"; });
  return programs::run_program(app, argc, argv, [&] {
    sheafnn::validate_fan_outs(s.sampling.fan_outs, "--fan-outs");
    programs::require_writable("--save", s.save);
    const sheafnn::io::FolderRows rows(s.folder);
    network.features = rows.feature_count();
    network.classes = rows.class_count();
    std::printf("%s: %td nodes, %td edges, %td features, %td classes; %zu training nodes\n", s.folder.c_str(),
                rows.node_count(), rows.edge_count(), rows.feature_count(), rows.class_count(),
                rows.split().train.size());
    train(s, rows);
  });
}
