/// \file
/// What the command-line programs share: one-line errors with exit code 2, options of the synthetic graph.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <string>

namespace programs {

inline constexpr int exit_bad_input = 2;

/// Parses the command line, runs `body`, and turns errors into one line on stderr and exit code 2.
template <class Body>
int run_program(CLI::App& app, int argc, char** argv, const Body& body) {
  try {
    app.parse(argc, argv);
    body();
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "%s: %s; --help lists the options\n", app.get_name().c_str(), error.what());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory; a smaller graph, fewer channels or layers may fit\n",
                 app.get_name().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
  }
  return exit_bad_input;
}

/// Checks, before anything costly is done, that a file can be put there.
///
/// \throws std::invalid_argument  its folder does not exist
inline void require_folder_of(const char* option, const std::string& file) {
  if (file.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  sheafnn::require(folder.empty() || std::filesystem::is_directory(folder), option, file,
                   "its folder does not exist");
}

/// --dataset and the options of the generated graph.
inline void add_dataset_options(CLI::App& app, std::string& dataset, sheafnn::SyntheticOptions& synthetic) {
  app.add_option("--dataset", dataset, "karate, synthetic, an .npz file or a Geom-GCN folder")
      ->capture_default_str();
  const auto group = app.add_option_group("Synthetic graph", "used with --dataset synthetic");
  group->add_option("--synthetic-nodes", synthetic.nodes, "nodes")->capture_default_str();
  group->add_option("--synthetic-classes", synthetic.classes, "classes, 2 to 1000")->capture_default_str();
  group->add_option("--synthetic-features", synthetic.features, "size of the vocabulary")->capture_default_str();
  group->add_option("--synthetic-words", synthetic.words, "words per node, 1 to 1000")->capture_default_str();
  group->add_option("--synthetic-degree", synthetic.degree, "mean degree")->capture_default_str();
  group->add_option("--synthetic-homophily", synthetic.homophily, "share of edges within a class, 0 to 1")
      ->capture_default_str();
  group->add_option("--synthetic-class-cycle", synthetic.class_cycle,
                    "share of the other edges that join a class and the next, 0 to 1")
      ->capture_default_str();
  group->add_option("--synthetic-feature-noise", synthetic.feature_noise, "share of words of no class, 0 to 1")
      ->capture_default_str();
  group->add_option("--synthetic-degree-noise", synthetic.degree_noise, "spread of log degrees, 0 to 2")
      ->capture_default_str();
  group->add_option("--synthetic-seed", synthetic.seed, "seed of the graph")->capture_default_str();
}

}  // namespace programs
