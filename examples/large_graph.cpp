/// \file
/// Trains a sheaf network on drawn neighbours of a graph that may be larger than memory: a folder of .npy arrays, of which
/// only the rows that a step needs are read.
///
///     graph_folder generate --folder big --nodes 10000000
///     large_graph big --fan-outs 10,5 --batch-size 512 --steps 100 --evaluated 10000 --epochs 5
#include <CLI/CLI.hpp>
#include <cstdio>
#include <sheafnn/bsnn/model.hpp>
#include <sheafnn/bsnn/sampled_training.hpp>
#include <sheafnn/io/folder_rows.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <sheafnn/sheaf/families.hpp>
#include <string>
#include <string_view>

#include "models/option_flags.hpp"
#include "models/program.hpp"

namespace {

struct Settings {
  std::string folder, save, model = "nsd";
  sheafnn::SamplingOptions sampling;
  sheafnn::ModelOptions network;
  sheafnn::TrainOptions train;

  Settings() {
    network.channels = 16;
    network.layers = 2;
    train.epochs = 10;
    train.batch_size = 512;
    train.input_dropout = 0;
    train.dropout = 0.2;
    train.weight_decay = train.sheaf_decay = 0;
  }
};

template <class Model>
void train(const Settings& s, const sheafnn::io::FolderRows& rows) {
  Model model(s.network, s.train.seed);
  sheafnn::TrainOptions options = s.train;
  options.on_epoch = [](const sheafnn::EpochReport& epoch) {
    std::printf("epoch %td: loss %.4f, validation loss %.4f, accuracy %.1f %%\n", epoch.epoch, epoch.loss,
                epoch.validation_loss, 100 * epoch.validation_accuracy);
    std::fflush(stdout);
  };
  const sheafnn::TrainResult result = sheafnn::train_on_samples(model, rows, rows.split(), s.sampling, options);
  std::printf("best epoch %td: test accuracy %.1f %%, test loss %.4f; %.2f s an epoch\n", result.best_epoch,
              100 * result.test_accuracy, result.test_nll, result.epoch_seconds);
  if (s.save.empty()) return;
  const std::string name = sheafnn::io::folder_name(s.folder);
  sheafnn::io::write_safetensors(
      s.save,
      sheafnn::io::to_tensors(model, {{"dataset", name}, {"best_epoch", std::to_string(result.best_epoch)}}));
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Trains a sheaf network with maps in SO(3) on drawn neighbours; see docs/large_graphs.md.",
               "large_graph");
  app.add_option("folder", s.folder, "folder of .npy arrays: indptr, indices, features, labels and masks")
      ->required();
  app.add_option("--model", s.model, "nsd, or bsnn (Bayesian)")
      ->capture_default_str()
      ->check(CLI::IsMember({"nsd", "bsnn"}));
  app.add_option("--fan-outs", s.sampling.fan_outs,
                 "number of neighbours that are drawn for a node at distance 0, 1, ... of the targets (0: all)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--save", s.save, "write the trained network to this .safetensors file");
  const auto all = [](std::string_view) { return true; };
  programs::add_flags(app, *app.add_option_group("Sampling"), s.sampling, all);
  programs::add_flags(app, *app.add_option_group("Model"), s.network,
                      [](std::string_view key) { return key != "classes"; });
  programs::add_flags(app, *app.add_option_group("Training"), s.train,
                      [](std::string_view key) { return key != "checkpoint_every"; });
  return programs::run_program(app, argc, argv, [&] {
    sheafnn::validate_fan_outs(s.sampling.fan_outs, "--fan-outs");
    programs::require_writable("--save", s.save);
    const sheafnn::io::FolderRows rows(s.folder);
    s.network.features = rows.feature_count();
    s.network.classes = rows.class_count();
    std::printf("%s: %td nodes, %td edges, %td features, %td classes; %zu training nodes\n", s.folder.c_str(),
                rows.node_count(), rows.edge_count(), rows.feature_count(), rows.class_count(),
                rows.split().train.size());
    if (s.model == "bsnn") {
      train<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>>(s, rows);
    } else {
      train<sheafnn::Nsd<sheafnn::SpecialOrthogonal<3>>>(s, rows);
    }
  });
}
