/// \file
/// --dataset and what belongs to it: options of text files, of generated graphs and of random splits.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/splits.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <sheafnn/graph/synthetic_hypergraph.hpp>
#include <sheafnn/io/csv.hpp>
#include <sheafnn/io/datasets.hpp>
#include <sheafnn/io/given_sheaf_file.hpp>
#include <sheafnn/io/hypergraph.hpp>
#include <sheafnn/io/lines.hpp>
#include <sheafnn/sheaf/planted_options.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/node_data.hpp"
#include "models/planted_data.hpp"
#include "models/program.hpp"
#include "models/registry.hpp"

namespace programs {

/// How a dataset is read, and which splits are made of it.
struct DataOptions {
  sheafnn::io::TextOptions text;
  std::string make_splits;  ///< TRAIN/VALIDATION/TEST in percent; empty: the dataset's splits
  sheafnn::RandomSplitOptions splits;
  bool exchange_masks = false;
  std::string given_sheaf;          ///< a file with the maps of networks with given maps
  std::string stalks, edge_stalks;  ///< "author=1,paper=3": stalk dimensions of types
  PlantedSettings planted;
  sheafnn::SyntheticHypergraphOptions hypergraph;  ///< of --dataset synthetic for networks on hypergraphs
};

/// The networks that work on hypergraphs: "shgnn or bshgnn".
[[nodiscard]] inline std::string hypergraph_models() {
  constexpr const sheafnn::NetworkKind& kind = sheafnn::HypergraphOptions::kind;
  return sheafnn::detail::concat(kind.deterministic, " or ", kind.bayesian);
}

/// Comma-separated words, as a record of a CSV file; an empty text has no words.
///
/// \throws std::runtime_error  naming the option: a quote that is not closed, or several lines
[[nodiscard]] inline std::vector<std::string> parse_words(const std::string& option, const std::string& text) {
  sheafnn::io::CsvReader record(option, {text.begin(), text.end()}, ',');
  std::vector<std::string> words;
  if (record.next()) words = record.fields();
  if (record.next())
    sheafnn::io::detail::fail(option, "has several lines; expected words with commas between them");
  return words;
}

/// Names of --target. \throws as parse_words() and io::check_target_names()
[[nodiscard]] inline std::vector<std::string> parse_targets(const std::string& text) {
  std::vector<std::string> names = parse_words("--target", text);
  sheafnn::io::check_target_names("--target", names);
  return names;
}

inline constexpr const char *text_group = "Text files", *type_group = "Types",
                            *synthetic_group = "Synthetic graph", *planted_group = "Planted sheaf";

/// Options that only some planted tasks use, and these tasks.
struct PlantedOptionUse {
  const char* option;
  std::string_view tasks;
};
inline constexpr std::string_view framed_tasks =
    "planted-frames, planted-unreliable, planted-diagonal, planted-general-linear";
inline constexpr PlantedOptionUse planted_option_uses[] = {{"--planted-stalk-dim", framed_tasks},
                                                           {"--planted-spread", framed_tasks},
                                                           {"--planted-curvature", "planted-frames"},
                                                           {"--planted-neighbour-share", "planted-frames"},
                                                           {"--planted-least-concentration", "planted-unreliable"},
                                                           {"--planted-most-concentration", "planted-unreliable"}};

/// The options of tasks with a planted sheaf.
inline void add_planted_options(CLI::App& app, PlantedSettings& planted) {
  const auto group =
      app.add_option_group(planted_group, "used with --dataset planted-frames, planted-geometric, ...");
  sheafnn::PlantedOptions& o = planted.options;
  group->add_option("--planted-nodes", o.nodes, "number of nodes, at least 12")->capture_default_str();
  group
      ->add_option(
          "--planted-stalk-dim", planted.stalk_dimension,
          "stalk dimension d, 2 to 5, or 1 to 5 for diagonal maps; planted-geometric has 2, planted-signed 1")
      ->capture_default_str();
  group
      ->add_option("--planted-classes", o.classes,
                   "number of classes, 2 to d + 1, or 2 to 100 where d is 2; 0: d + 1")
      ->capture_default_str();
  group->add_option("--planted-degree", o.degree, "mean degree, 1 to a quarter of the number of nodes")
      ->capture_default_str();
  group
      ->add_option(
          "--planted-spread", o.spread,
          "standard deviation of the frames' parameters, 0 to 4; logarithms of diagonal entries have half of it")
      ->capture_default_str();
  group->add_option("--planted-curvature", o.curvature, "curvature of the frames' transports, 0 to 4; 0: flat")
      ->capture_default_str();
  group
      ->add_option("--planted-neighbour-share", o.neighbour_share,
                   "probability, 0 to 1, that a vector shows the class of a neighbour; 0: labels are not drawn, "
                   "but follow from transported sums")
      ->capture_default_str();
  group
      ->add_option("--planted-noise", o.noise, "standard deviation of the vectors' noise in the features, 0 to 10")
      ->capture_default_str();
  group
      ->add_option(
          "--planted-hidden-columns", o.hidden_columns,
          "number of columns of a random smooth map that show the frames, 0 to 1000; 0: the frames' own columns")
      ->capture_default_str();
  group
      ->add_option("--planted-least-concentration", o.least_concentration,
                   "least concentration of an edge, at least 0 and below 1")
      ->capture_default_str();
  group
      ->add_option("--planted-most-concentration", o.most_concentration,
                   "largest concentration of an edge, at least 0 and below 1")
      ->capture_default_str();
  group->add_option("--planted-seed", o.seed, "seed of the task")->capture_default_str();
  group->add_option("--planted-truth", planted.truth,
                    "write the true sheaf to this .npz file, with the edges' concentrations where they vary");
}

/// --dataset and the options of the generated graph.
inline void add_dataset_options(CLI::App& app, std::string& dataset, sheafnn::SyntheticOptions& synthetic,
                                DataOptions& data) {
  app.add_option(
         "--dataset", dataset,
         "karate, synthetic, " + joined(sheafnn::planted_names) +
             ", an .npz file, a folder with nodes.csv and edges.csv (or hyperedges.csv), or a Geom-GCN or OGB "
             "folder")
      ->capture_default_str();
  app.add_option("--given-sheaf", data.given_sheaf,
                 ".npz file with the restriction maps of the data's edges, for the models " +
                     given_sheaf_models());
  app.add_option_function<std::string>(
      "--missing-labels",
      [&data](const std::string& words) { data.text.missing_labels = parse_words("--missing-labels", words); },
      "comma-separated words for an unknown label, besides -1 and an empty label; all other words are classes "
      "(default: NA, None and the like are refused)");
  const auto text = app.add_option_group(text_group, "used where --dataset is a folder with an edge list");
  text->add_option("--label", data.text.label, "name of the column with the labels")->capture_default_str();
  text->add_option_function<std::string>(
      "--ignore-columns",
      [&data](const std::string& names) { data.text.ignored_columns = parse_words("--ignore-columns", names); },
      "comma-separated names of columns of nodes.csv that are not read, such as texts and dates");
  text->add_option_function<std::string>(
      "--ignore-edge-columns",
      [&data](const std::string& names) {
        data.text.ignored_edge_columns = parse_words("--ignore-edge-columns", names);
      },
      "the same of edges.csv, such as weights");
  text->add_flag("--identity-features", data.text.identity_features,
                 "use one-hot node numbers as features, instead of the files' features (default: off)");
  const auto group = app.add_option_group(synthetic_group, "used with --dataset synthetic");
  // Graphs and hypergraphs have defaults of their own.
  const auto add = [&](const char* name, auto& of_graph, auto& of_hypergraph, const std::string& text) {
    group->add_option(name, of_graph, text)
        ->capture_default_str()
        ->each([&of_hypergraph](const std::string& value) { CLI::detail::lexical_cast(value, of_hypergraph); });
  };
  sheafnn::SyntheticHypergraphOptions& hypergraph = data.hypergraph;
  add("--synthetic-nodes", synthetic.nodes, hypergraph.nodes, "number of nodes");
  add("--synthetic-classes", synthetic.classes, hypergraph.classes, "number of classes, 2 to 1000");
  add("--synthetic-features", synthetic.features, hypergraph.features,
      "number of features, the size of the vocabulary");
  add("--synthetic-words", synthetic.words, hypergraph.words, "number of words per node, 1 to 1000");
  group->add_option("--synthetic-degree", synthetic.degree, "mean degree")->capture_default_str();
  group
      ->add_option("--synthetic-hyperedges", hypergraph.hyperedges,
                   "of a hypergraph: number of hyperedges, 0 to 2^30")
      ->capture_default_str();
  group
      ->add_option("--synthetic-least-size", hypergraph.least_size,
                   "of a hypergraph: least number of members of a hyperedge, at least 1")
      ->capture_default_str();
  group
      ->add_option("--synthetic-largest-size", hypergraph.largest_size,
                   "of a hypergraph: largest number of members, at most half of a class")
      ->capture_default_str();
  add("--synthetic-homophily", synthetic.homophily, hypergraph.homophily,
      sheafnn::detail::concat(
          "share of edges within a class, 0 to 1; of a hypergraph share of members of its class, ",
          hypergraph.homophily, " by default"));
  group
      ->add_option("--synthetic-class-cycle", synthetic.class_cycle,
                   "share of the edges between classes that join a class and the next class, 0 to 1")
      ->capture_default_str();
  add("--synthetic-feature-noise", synthetic.feature_noise, hypergraph.feature_noise,
      "share of the words that belong to no class, 0 to 1");
  group
      ->add_option("--synthetic-degree-noise", synthetic.degree_noise,
                   "spread of the logarithms of the degrees, 0 to 2")
      ->capture_default_str();
  add("--synthetic-seed", synthetic.seed, hypergraph.seed, "seed of the graph");
  add_planted_options(app, data.planted);
}

/// The types of edges and nodes, for programs that train.
inline void add_type_options(CLI::App& app, DataOptions& data) {
  const auto group =
      app.add_option_group(type_group, "of edges and nodes, in folders with an edge list and .npz files");
  auto* types =
      group->add_flag("--edge-types", data.text.edge_types,
                      "read types of edges (column type of edges.csv, or key edge_types); each has weights of "
                      "the sheaf learner, or maps of --given-sheaf (default: off)");
  group->add_option(
      "--stalks", data.stalks,
      "stalk dimensions of types of nodes, e.g. author=1,paper=3; other types have --stalk-dim. Types are the "
      "column type of nodes.csv, or the key node_types");
  group
      ->add_option("--edge-stalks", data.edge_stalks,
                   "stalk dimensions of types of edges, e.g. cites=2; other types have --stalk-dim")
      ->needs(types);
}

/// The stalk dimension of every type.
///
/// \param option, text  of the command line: TYPE=DIMENSION with commas between them
/// \param largest       of types that the text leaves out
/// \throws std::invalid_argument  another text, a type that is not there or that is named twice
[[nodiscard]] inline std::vector<sheafnn::Index> parse_stalks(const std::string& option, const std::string& text,
                                                              const std::vector<std::string>& types,
                                                              sheafnn::Index largest) {
  std::vector<sheafnn::Index> r(types.size(), largest);
  std::set<std::size_t> given;
  for (const std::string& word : parse_words(option, text)) {
    const std::size_t at = std::min(word.rfind('='), word.size());
    sheafnn::Index dimension = 0;
    const bool good = at + 1 < word.size() && sheafnn::io::detail::parse_number(word.substr(at + 1), dimension);
    sheafnn::require(good, option, word, "expected TYPE=DIMENSION, as in author=1,paper=3");
    const auto found = std::find(types.begin(), types.end(), word.substr(0, at));
    sheafnn::require(found != types.end(), option, word, "the data have no such type");
    sheafnn::require_between(option, dimension, 1, largest);
    const auto type = static_cast<std::size_t>(found - types.begin());
    sheafnn::require(given.insert(type).second, option, word, "the type is named twice");
    r[type] = dimension;
  }
  return r;
}

/// Checks that what looks like the name of a planted task, and is not a file or folder, is one.
///
/// \throws std::invalid_argument  it is not; names the planted tasks
inline void refuse_unknown_planted(const std::string& dataset) {
  std::error_code error;
  if (!dataset.starts_with("planted") || std::filesystem::exists(dataset, error)) return;
  sheafnn::require_planted(dataset, "--dataset");
}

/// Checks that no option of one kind of dataset was given with another.
///
/// \param app         after parsing
/// \param hypergraph  is the dataset for a network on hypergraphs?
/// \throws std::invalid_argument  naming the option, its value and what it belongs to; no planted task of that name
inline void refuse_idle_dataset_options(const CLI::App& app, const std::string& dataset, bool hypergraph = false) {
  const bool planted = sheafnn::is_planted(dataset);
  refuse_unknown_planted(dataset);
  const bool made = dataset == "karate" || dataset == "synthetic" || planted;
  const bool npz = std::filesystem::path(dataset).extension() == ".npz";
  const sheafnn::io::JoinedBy joined = made || npz ? sheafnn::io::JoinedBy() : sheafnn::io::joined_by(dataset);
  const bool text = joined.edges || joined.hyperedges;
  const auto refuse = [](const CLI::Option* option, const std::string& owner) {
    if (option->count() == 0) return;
    sheafnn::throw_invalid_argument(option->get_name(), option->as<std::string>(), "belongs to " + owner);
  };
  const auto refuse_group = [&](const char* group, const char* owner) {
    for (const CLI::Option* option : app.get_option_group(group)->get_options()) refuse(option, owner);
  };
  if (!text) refuse_group(text_group, "a --dataset of text files");
  const bool typed = !hypergraph && (text || npz);
  for (const char* name :
       {"--edge-types", "--stalks", "--edge-stalks", "--edge-labels", "--edge-target", "--ignore-edge-columns"}) {
    const CLI::Option* option = app.get_option_no_throw(name);
    if (!typed && option != nullptr) refuse(option, "a graph, whose --dataset is of text files or an .npz file");
  }
  if (made) refuse(app.get_option("--missing-labels"), "a --dataset of files");
  if (dataset != "synthetic") refuse_group(synthetic_group, "--dataset synthetic");
  for (const char* name : {"--synthetic-degree", "--synthetic-class-cycle", "--synthetic-degree-noise"}) {
    if (hypergraph) refuse(app.get_option(name), "a graph; the network works on hypergraphs");
  }
  for (const char* name : {"--synthetic-hyperedges", "--synthetic-least-size", "--synthetic-largest-size"}) {
    if (!hypergraph) refuse(app.get_option(name), "a hypergraph, for --model " + hypergraph_models());
  }
  if (!planted) refuse_group(planted_group, "a planted --dataset, such as planted-frames");
  for (const auto& [option, tasks] : planted_option_uses) {
    if (tasks.find(dataset) == std::string_view::npos)
      refuse(app.get_option(option), "--dataset " + std::string(tasks));
  }
}

/// The splits that training is to draw itself.
inline void add_split_options(CLI::App& app, DataOptions& data) {
  const auto group = app.add_option_group("Splits", "from the dataset or drawn at random");
  auto* make = group->add_option("--make-splits", data.make_splits,
                                 "draw splits with these percentages of training, validation and test nodes, e.g. "
                                 "60/20/20; the last two may be 0");
  group
      ->add_flag("--stratified,!--no-stratified", data.splits.stratified,
                 "draw every class with the percentages of --make-splits (default: on)")
      ->needs(make);
  group->add_option("--split-count", data.splits.count, "number of splits to draw, 1 to 1000")
      ->capture_default_str()
      ->needs(make);
  group->add_option("--split-seed", data.splits.seed, "seed of the splits that are drawn")
      ->capture_default_str()
      ->needs(make);
  group->add_flag("--exchange-masks", data.exchange_masks,
                  "train on the validation nodes, validate on the test nodes, test on the training nodes "
                  "(default: off)");
}

/// "60/20/20" as shares of 1.
///
/// \throws std::invalid_argument  anything else than three percentages that sum to 100 and start with a positive one
inline void parse_shares(const std::string& text, sheafnn::RandomSplitOptions& splits) {
  double* const shares[] = {&splits.train, &splits.validation, &splits.test};
  const std::vector<std::string_view> parts = sheafnn::io::detail::split_fields(text, '/');
  bool good = parts.size() == 3;
  double sum = 0;
  for (std::size_t k = 0; good && k < 3; ++k) {
    double percent = 0;
    good = sheafnn::io::detail::parse_number(parts[k], percent) && percent >= 0;
    sum += percent;
    *shares[k] = percent / 100;
  }
  sheafnn::require(good && splits.train > 0 && std::abs(sum - 100) < 1e-10, "--make-splits", text,
                   "expected three percentages that sum to 100, as in 60/20/20; only the first must not be 0");
}

/// Checks that a dataset is a graph, or a hypergraph.
///
/// \param hypergraph  what it must be
/// \throws std::invalid_argument  it is the other
/// \throws std::runtime_error     an .npz file that cannot be read
inline void require_joined(const std::string& dataset, bool hypergraph) {
  const sheafnn::io::JoinedBy joined = sheafnn::io::joined_by(dataset);
  if (!hypergraph) {
    sheafnn::require(!joined.hyperedges || joined.edges, "--dataset", dataset,
                     sheafnn::detail::concat("it is a hypergraph; the networks on hypergraphs are ",
                                             hypergraph_models()));
    return;
  }
  std::error_code error;
  const bool graph =
      dataset == "karate" || sheafnn::is_planted(dataset) || std::filesystem::exists(dataset, error);
  sheafnn::require(dataset == "synthetic" || joined.hyperedges || !graph, "--dataset", dataset,
                   sheafnn::detail::concat("it has no hyperedges; ", hypergraph_models(),
                                           " reads an .npz file with incidence, or a folder with hyperedges.csv"));
}

/// Loads a dataset; what is wrong with a generated graph is said of its options.
///
/// \tparam GraphType  Graph, or Hypergraph
/// \throws as io::load_dataset(), io::load_hypergraph(), planted_data() and require_joined()
template <class GraphType = sheafnn::Graph>
[[nodiscard]] sheafnn::NodeDataset<GraphType> load(const std::string& dataset,
                                                   const sheafnn::SyntheticOptions& synthetic,
                                                   sheafnn::DatasetUse use, const DataOptions& options) {
  constexpr bool hypergraph = std::is_same_v<GraphType, sheafnn::Hypergraph>;
  refuse_unknown_planted(dataset);
  require_joined(dataset, hypergraph);
  const bool planted = sheafnn::is_planted(dataset);
  sheafnn::require(!planted || options.text.targets.empty(), "--target", dataset,
                   "planted tasks have classes only");
  try {
    if constexpr (hypergraph) {
      return sheafnn::io::load_hypergraph(dataset, options.hypergraph, use, options.text);
    } else {
      sheafnn::Dataset data = planted ? planted_data(dataset, options.planted)
                                      : sheafnn::io::load_dataset(dataset, synthetic, use, options.text);
      if (!options.given_sheaf.empty()) {
        data.given_sheaf = std::make_shared<const sheafnn::GivenMapArrays>(
            sheafnn::io::read_given_sheaf(options.given_sheaf, data.graph, data.edge_type_names));
      }
      return data;
    }
  } catch (const std::invalid_argument& error) {
    if (!planted && dataset != "synthetic") throw;
    const std::string message = error.what();
    const std::size_t end = std::min(message.find(':'), message.size());
    std::string member = message.substr(0, end);
    if (member == "stalk_dimension") member = "stalk_dim";
    throw std::invalid_argument(option_name((planted ? "planted_" : "synthetic_") + member) + message.substr(end));
  }
}

/// Loads what a model is trained on.
///
/// \tparam GraphType  Graph, or Hypergraph
/// \throws std::runtime_error, std::invalid_argument  bad input, or a dataset without splits when none are to be made
template <class GraphType = sheafnn::Graph>
[[nodiscard]] sheafnn::NodeDataset<GraphType> load_training_data(const std::string& dataset,
                                                                 const sheafnn::SyntheticOptions& synthetic,
                                                                 DataOptions& options) {
  const bool make = !options.make_splits.empty();
  if (make) parse_shares(options.make_splits, options.splits);
  sheafnn::require_between("--split-count", options.splits.count, 1, 1000);
  sheafnn::NodeDataset<GraphType> data =
      load<GraphType>(dataset, synthetic, make ? sheafnn::DatasetUse::own_splits : sheafnn::DatasetUse::training,
                      options);
  if (make) data.splits = sheafnn::random_splits(data, options.splits);
  sheafnn::require(!data.splits.empty(), data.name + ": splits", 0,
                   "training needs a split; --make-splits 60/20/20 draws splits");
  if (options.exchange_masks) {
    data.splits = sheafnn::exchange_sets(std::move(data.splits), "--exchange-masks: " + data.name + ": splits");
  }
  return data;
}

/// Calls load() for the graph of a model: f.operator()<Graph>() or f.operator()<Hypergraph>().
template <class F>
[[nodiscard]] AnyDataset load_for(std::string_view model, const F& f) {
  if (sheafnn::is_on_hypergraphs(model)) return f.template operator()<sheafnn::Hypergraph>();
  return f.template operator()<sheafnn::Graph>();
}

/// One line about self-loops and repeated pairs in a list of pairs, if there are any.
///
/// \param graph  of the pairs
/// \param list   where they are from, with a colon and a blank
/// \param what   is repeated: an edge
inline void print_dropped_pairs(const sheafnn::Graph& graph, const std::string& list, const char* what) {
  const sheafnn::Index loops = graph.dropped_self_loops(), repeated = graph.merged_duplicates();
  if (loops == 0 && repeated == 0) return;
  std::string text;
  if (loops > 0) text += sheafnn::detail::concat(loops, loops == 1 ? " self-loop" : " self-loops", " dropped");
  if (repeated > 0) {
    text += sheafnn::detail::concat(loops > 0 ? ", " : "", repeated, repeated == 1 ? " pair" : " pairs",
                                    " merged that repeat ", what, " in either direction");
  }
  std::printf("%s%s\n", list.c_str(), text.c_str());
}
/// The same of the edge list of a dataset.
inline void print_dropped_pairs(const sheafnn::Dataset& data) {
  print_dropped_pairs(data.graph, data.name + ": edge list: ", "an edge");
}
/// The hyperedges of a dataset are as they were listed.
inline void print_dropped_pairs(const sheafnn::HypergraphDataset&) {}

}  // namespace programs
