// convert_ogb(): OGB folders as folders of .npy arrays (io/ogb_folder.hpp).
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "refusal.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/bsnn/sampled_training.hpp"
#include "sheafnn/io/folder_rows.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/ogb_folder.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_ogb_folder {
namespace {

using sheafnn::Index;

constexpr Index nodes = 60, columns = 3;

std::int32_t random_node(Index i) { return static_cast<std::int32_t>((tiny::number(4, i) + 1) / 2 * 47.99); }

/// 60 nodes, of which the last 12 have no edge; edges in one direction, both, or twice, and self-loops. Features are numbers
/// of single precision, labels 3, 5 and 8, or unknown.
struct Raw {
  test::TemporaryFolder folder;
  std::vector<std::int64_t> from, to;
  std::vector<float> features;
  std::vector<double> labels;

  explicit Raw(bool arrays) {
    for (Index e = 0; e < 200; ++e) {
      const bool repeated = e % 9 == 8;
      from.push_back(repeated ? to.back() : random_node(2 * e));
      to.push_back(repeated ? from[from.size() - 2] : e % 31 == 0 ? from.back() : random_node(2 * e + 1));
    }
    for (Index u = 0; u < nodes; ++u) {
      const double classes[] = {3, 5, 8};
      labels.push_back(u % 11 == 4 ? std::numeric_limits<double>::quiet_NaN() : classes[u % 3]);
      for (Index j = 0; j < columns; ++j) {
        features.push_back((u + j) % 4 == 0 ? 0.0F : static_cast<float>(tiny::number(5, u * columns + j)));
      }
    }
    std::filesystem::create_directories(folder / "raw");
    std::filesystem::create_directories(folder / "split/random");
    std::string sets[3];
    for (Index u = nodes - 1; u >= 0; --u) sets[u % 5 < 3 ? 0 : u % 5 - 2] += std::to_string(u) + "\n";
    const char* names[] = {"train", "valid", "test"};
    for (int k = 0; k < 3; ++k) folder.write(std::string("split/random/") + names[k] + ".csv", sets[k]);
    arrays ? write_arrays() : write_tables();
  }
  void write_tables() const {
    std::ostringstream edges, rows, of_nodes;
    rows.precision(9);
    for (std::size_t e = 0; e < from.size(); ++e) edges << from[e] << ',' << to[e] << '\n';
    for (std::size_t k = 0; k < features.size(); ++k)
      rows << features[k] << (k % columns == columns - 1 ? '\n' : ',');
    for (const double label : labels) of_nodes << label << '\n';
    folder.write("raw/num-node-list.csv", std::to_string(nodes) + "\n");
    folder.write("raw/edge.csv", edges.str());
    folder.write("raw/node-feat.csv", rows.str());
    folder.write("raw/node-label.csv", of_nodes.str());
  }
  void write_arrays() const {
    sheafnn::io::NpzWriter data, of_nodes;
    std::vector<std::int64_t> ends = from;
    ends.insert(ends.end(), to.begin(), to.end());
    data.add<std::int64_t>("edge_index", {2, static_cast<Index>(from.size())}, ends);
    data.add<float>("node_feat", {nodes, columns}, features);
    data.add<std::int64_t>("num_nodes_list", {1}, std::vector<std::int64_t>{nodes});
    data.write(folder / "raw/data.npz");
    of_nodes.add<double>("node_label", {nodes, 1}, labels);
    of_nodes.write(folder / "raw/node-label.npz");
  }
};

/// The rows of a folder are the rows of the dataset.
void check_rows(const sheafnn::io::FolderRows& rows, const sheafnn::Dataset& data) {
  const sheafnn::DatasetRows expected(data);
  REQUIRE(rows.node_count() == nodes);
  CHECK(rows.edge_count() == data.graph.edge_count());
  CHECK(rows.feature_count() == columns);
  CHECK(rows.class_count() == 3);
  CHECK(std::vector<std::int32_t>(rows.labels().begin(), rows.labels().end()) == data.labels);
  CHECK(rows.split().train == data.splits[0].train);
  CHECK(rows.split().validation == data.splits[0].validation);
  CHECK(rows.split().test == data.splits[0].test);
  const auto row = [](const sheafnn::GraphRows& of, Index u) {
    std::pair<std::vector<std::int32_t>, std::vector<double>> r;
    of.append_features(u, r.first, r.second);
    for (Index k = 0; k < of.degree(u); ++k) r.first.push_back(static_cast<std::int32_t>(of.neighbour(u, k)));
    return r;
  };
  for (Index u = 0; u < nodes; ++u) {
    std::pair<std::vector<std::int32_t>, std::vector<double>> in_memory = row(expected, u);
    for (double& value : in_memory.second) value = static_cast<double>(static_cast<float>(value));
    CHECK(row(rows, u) == in_memory);
  }
}

/// Names in the folder around a converted one.
std::vector<std::string> left(const test::TemporaryFolder& folder) {
  std::vector<std::string> r;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    r.push_back(entry.path().filename().string());
  }
  return r;
}

}  // namespace

TEST_CASE("a converted OGB folder is the graph that the loader reads") {
  for (const bool arrays : {false, true}) {
    CAPTURE(arrays);
    const Raw raw(arrays);
    const sheafnn::Dataset data = sheafnn::io::load_ogb(raw.folder.path());
    const test::TemporaryFolder made;
    sheafnn::io::Bytes expected;
    for (const Index arcs :
         {Index{1} << 24, Index{40}, Index{1}}) {  // one range, several, one for each node with arcs
      CAPTURE(arcs);
      const std::filesystem::path folder = made / std::to_string(arcs);
      const sheafnn::io::OgbConverted counts = sheafnn::io::convert_ogb(raw.folder.path(), folder, {.arcs = arcs});
      CHECK(counts.nodes == nodes);
      CHECK(counts.edges == data.graph.edge_count());
      CHECK(counts.features == columns);
      CHECK(counts.self_loops == data.graph.dropped_self_loops());
      CHECK(counts.duplicates == data.graph.merged_duplicates());
      CHECK(counts.class_names == std::vector<std::string>{"3", "5", "8"});
      check_rows(sheafnn::io::FolderRows(folder), data);
      const sheafnn::io::Bytes indices = sheafnn::io::read_file(folder / "indices.npy");
      if (expected.empty()) expected = indices;
      CHECK(indices == expected);
    }
    CHECK(left(made).size() == 3);
  }
}

TEST_CASE("a training on a converted folder is the training in memory") {
  using Model = sheafnn::Nsd<sheafnn::Diagonal<2>, double>;
  const Raw raw(true);
  const sheafnn::Dataset data = sheafnn::io::load_ogb(raw.folder.path());
  const test::TemporaryFolder made;
  sheafnn::io::convert_ogb(raw.folder.path(), made / "big", {.split = "random"});
  const sheafnn::io::FolderRows rows(made / "big");
  const auto train = [&](const sheafnn::GraphRows& of) {
    Model model({.features = columns, .channels = 4, .layers = 2, .classes = 3}, 1);
    return sheafnn::train_on_samples(model, of, data.splits[0], {.fan_outs = {3, 2}},
                                     {.epochs = 3, .batch_size = 8});
  };
  const sheafnn::TrainResult in_memory = train(sheafnn::DatasetRows(data)), on_disk = train(rows);
  REQUIRE(on_disk.history.size() == 3);
  for (std::size_t t = 0; t < 3; ++t) CHECK(on_disk.history[t].loss == in_memory.history[t].loss);
  CHECK(on_disk.test_nll == in_memory.test_nll);
}

TEST_CASE("a converter refuses what the loader refuses, and leaves nothing behind") {
  const test::TemporaryFolder made;
  const auto messages = [&](const Raw& raw, const sheafnn::io::OgbConversion& options = {}) {
    const auto without_folder = [&](std::string text) {
      const std::string name = raw.folder.path().string() + "/";
      for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.erase(at, name.size());
      return text;
    };
    const auto of = [&](const auto& call) { return without_folder(test::message_of<std::exception>(call)); };
    const std::string loader = of([&] { static_cast<void>(sheafnn::io::load_ogb(raw.folder.path())); }),
                      converter = of([&] {
                        static_cast<void>(sheafnn::io::convert_ogb(raw.folder.path(), made / "big", options));
                      });
    CHECK(left(made).empty());
    return std::pair(loader, converter);
  };
  const std::pair<const char*, const char*> tables[] = {
      {"raw/num-node-list.csv", "60\n3\n"}, {"raw/edge.csv", "0,60\n"},        {"raw/edge.csv", "0\n"},
      {"raw/node-feat.csv", "1,nan\n"},     {"raw/node-feat.csv", "1,2\n"},    {"raw/node-label.csv", "1\n2\n"},
      {"raw/node-label.csv", "1,2\n"},      {"raw/edge-feat.csv", "1\n"},      {"split/random/train.csv", ""},
      {"split/random/test.csv", "1\n"},     {"split/random/valid.csv", "70\n"}};
  for (const auto& [name, text] : tables) {
    const Raw raw(false);
    raw.folder.write(name, text);
    const auto [loader, converter] = messages(raw);
    CHECK(converter != "nothing was thrown");
    CHECK(converter == loader);
  }
  {
    Raw raw(false);  // a label in the middle that is no class, and only one class
    raw.labels.assign(nodes, 2);
    raw.write_tables();
    CHECK(messages(raw).second.ends_with("class_count: 1 is not allowed; at least two classes are needed"));
    std::string labels;
    for (Index u = 0; u < nodes; ++u) labels += u == 33 ? "?\n" : "7\n";
    raw.folder.write("raw/node-label.csv", labels);
    const auto [loader, converter] = messages(raw);
    CHECK(converter.starts_with("raw/node-label.csv.gz: node 33: label '?'"));
    CHECK(converter == loader);
  }
  {
    Raw raw(true);
    raw.to[3] = nodes;
    raw.write_arrays();
    const auto [loader, converter] = messages(raw);
    CHECK(converter == "raw/data.npz: edge_index: edge 3 has node 60; node numbers must be between 0 and 59");
    CHECK(converter == loader);
    raw.to[3] = 0;
    raw.features[7] = std::numeric_limits<float>::infinity();
    raw.write_arrays();
    CHECK(messages(raw).second ==
          "raw/data.npz: node_feat: feature 1 of node 2 is inf; it must be a finite number");
  }
  {
    const Raw raw(false);
    raw.folder.write("raw/node-feat.csv", "1e39,2\n");
    CHECK(messages(raw).second ==
          "raw/node-feat.csv:1: feature 0 is 1e+39, which is too large for single precision");
    CHECK(messages(raw, {.split = "time"}).second == "split: has no split 'time'; it has random");
    std::filesystem::create_directories(raw.folder / "split/time");
    CHECK(messages(raw).second == "split: has 2 splits, random, time; name one of them (OgbConversion::split)");
    std::filesystem::remove_all(raw.folder / "split");
    CHECK(messages(raw).second == "split: has no split; training needs one");
  }
  const Raw raw(false);
  CHECK(messages(raw, {.arcs = 0}).second == "arcs: 0 is not allowed; must be at least 1");
  made.write("old", "text");
  CHECK(test::message_of<std::runtime_error>([&] {
          static_cast<void>(sheafnn::io::convert_ogb(raw.folder.path(), made.path()));
        }) == made.path().string() + ": exists already; name a new folder");
  CHECK(test::message_of<std::runtime_error>([&] {
          static_cast<void>(sheafnn::io::convert_ogb(raw.folder / "none", made / "big"));
        }) == (raw.folder / "none").string() + ": no such folder");
}

TEST_CASE("a conversion that its caller ends leaves nothing behind") {
  const Raw raw(false);
  const test::TemporaryFolder made;
  struct Ended {};
  CHECK_THROWS_AS(static_cast<void>(sheafnn::io::convert_ogb(raw.folder.path(), made / "big",
                                                             {.between_pieces = [] { throw Ended(); }})),
                  Ended);
  CHECK(left(made).empty());
  Index calls = 0;
  sheafnn::io::convert_ogb(raw.folder.path(), made / "big", {.between_pieces = [&] { ++calls; }});
  CHECK(calls > 0);
  CHECK(left(made).size() == 1);
}

}  // namespace test_ogb_folder
