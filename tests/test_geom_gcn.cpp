// Geom-GCN folders: both feature forms, splits in order, and messages that name file and line.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "npz_writer.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/geom_gcn.hpp"
#include "temporary_folder.hpp"

namespace test_geom_gcn {
namespace {

using namespace sheafnn;
using namespace sheafnn::rotation;
using io::GeomGcnFeatures;

const char* const edges_file = "out1_graph_edges.txt";
const char* const nodes_file = "out1_node_feature_label.txt";

const std::string edge_text = "node_id\tnode_id\n0\t1\n1\t0\n1\t2\n2\t2\n3\t2\n";
const std::string dense_text = "node_id\tfeature\tlabel\n2\t0,0,1\t0\n0\t1,0,1\t0\n3\t1,1,1\t1\n1\t0,1,0\t1\n";
const std::string index_text = "node_id\tfeature\tlabel\n2\t2\t0\n0\t2,0\t0\n3\t0,1,2\t1\n1\t1\t1\n";

test::Bytes split_bytes(const std::vector<int>& train, const std::vector<int>& validation,
                        const std::vector<int>& rest) {
  return test::ZipWriter({.deflate = true, .zip64_local = true})
      .add("train_mask.npy", test::npy<int>({train.size()}, train, {"|b1"}))
      .add("val_mask.npy", test::npy<int>({train.size()}, validation, {"|b1"}))
      .add("test_mask.npy", test::npy<int>({train.size()}, rest, {"|b1"}))
      .finish();
}

// A path of four nodes with three features and two splits, numbered 2 and 10.
struct SmallFolder : test::TemporaryFolder {
  explicit SmallFolder(const std::string& nodes = dense_text, const std::string& edges = edge_text) {
    write(edges_file, edges);
    write(nodes_file, nodes);
    write("small_split_0.6_0.2_10.npz", split_bytes({0, 1, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 1}));
    write("small_split_0.6_0.2_2.npz", split_bytes({1, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}));
    write("notes.txt", "not a part of the dataset");
  }
};

void check_small(const Dataset& data) {
  CHECK(data.node_count() == 4);
  CHECK(data.feature_count() == 3);
  CHECK(data.class_count == 2);
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 0, 1});
  const std::vector<std::int32_t> columns(data.features.column_of().begin(), data.features.column_of().end());
  CHECK(columns == std::vector<std::int32_t>{0, 2, 1, 2, 0, 1, 2});
  const std::vector<double> values(data.features.values().begin(), data.features.values().end());
  CHECK(values == std::vector<double>(7, 1.0));
  const std::vector<Index> offsets(data.features.offsets().begin(), data.features.offsets().end());
  CHECK(offsets == std::vector<Index>{0, 2, 3, 4, 7});
  const std::vector<Edge> edges(data.graph.edges().begin(), data.graph.edges().end());
  CHECK(edges == std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}});
  CHECK(data.graph.merged_duplicates() == 1);
  CHECK(data.graph.dropped_self_loops() == 1);
  for (const Index arc : {0, 1, 2, 5}) CHECK(data.graph.listed(arc));  // 0→1, 1→0, 1→2, 3→2
  for (const Index arc : {3, 4}) CHECK_FALSE(data.graph.listed(arc));
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[0].train == std::vector<std::int32_t>{0, 1});  // split 2 before split 10
  CHECK(data.splits[1].train == std::vector<std::int32_t>{1, 2});
  CHECK(data.splits[1].validation == std::vector<std::int32_t>{0});
  CHECK(data.splits[1].test == std::vector<std::int32_t>{3});
}

// The message with the folder taken off its front, or "no error".
std::string message_of(const test::TemporaryFolder& folder, GeomGcnFeatures form = GeomGcnFeatures::automatic) {
  try {
    static_cast<void>(io::load_geom_gcn(folder.path(), form));
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    const std::string front = folder.path().string();
    REQUIRE(message.starts_with(front));
    return message.substr(front.size() + 1);
  }
  return "no error";
}
std::string message_of_nodes(const std::string& nodes, GeomGcnFeatures form = GeomGcnFeatures::automatic) {
  return message_of(SmallFolder("node_id\tfeature\tlabel\n" + nodes), form);
}
std::string message_of_edges(const std::string& edges) {
  return message_of(SmallFolder(dense_text, "node_id\tnode_id\n" + edges));
}

}  // namespace

TEST_CASE("Geom-GCN: dense and index form give the same dataset") {
  check_small(io::load_geom_gcn(SmallFolder(dense_text).path()));
  check_small(io::load_geom_gcn(SmallFolder(index_text).path()));
  check_small(io::load_geom_gcn(SmallFolder(dense_text).path(), GeomGcnFeatures::dense));
  check_small(io::load_geom_gcn(SmallFolder(index_text).path(), GeomGcnFeatures::indices));
  const SmallFolder folder;
  check_small(io::load_dataset(folder.path().string()));
  const Dataset data = io::load_geom_gcn(folder.path() / "");
  check_small(data);
  CHECK(data.name == folder.path().filename().string());
}

TEST_CASE("Geom-GCN: labels may be unknown") {
  test::TemporaryFolder folder;
  folder.write(edges_file, edge_text);
  folder.write(nodes_file, "node_id\tfeature\tlabel\n2\t0,0,1\t-1\n0\t1,0,1\t0\n3\t1,1,1\t1\n1\t0,1,0\t-1\n");
  const Dataset data = io::load_dataset(folder.path().string(), {}, DatasetUse::prediction);
  CHECK(data.labels == std::vector<std::int32_t>{0, -1, -1, 1});
  CHECK(data.class_count == 2);
}

TEST_CASE("Geom-GCN: labels that are not 0, 1, ... have names, and words may mean an unknown one") {
  test::TemporaryFolder folder;
  folder.write(edges_file, edge_text);
  folder.write(nodes_file, "node_id\tfeature\tlabel\n2\t0,0,1\t?\n0\t1,0,1\t7\n3\t1,1,1\t11\n1\t0,1,0\t7.0\n");
  Dataset data = io::load_geom_gcn(folder.path(), GeomGcnFeatures::automatic, DatasetUse::training,
                                   std::vector<std::string>{"?"});
  CHECK(data.labels == std::vector<std::int32_t>{0, 0, -1, 1});
  CHECK(data.class_names == std::vector<std::string>{"7", "11"});
  data = io::load_dataset(folder.path().string(), {}, DatasetUse::training,
                          {.missing_labels = std::vector<std::string>{}});
  CHECK(data.class_names == std::vector<std::string>{"11", "7", "7.0", "?"});
}

TEST_CASE("Geom-GCN: for prediction, no splits are needed") {
  test::TemporaryFolder folder;
  folder.write(edges_file, edge_text);
  folder.write(nodes_file, dense_text);
  const Dataset data = io::load_dataset(folder.path().string(), {}, DatasetUse::prediction);
  CHECK(data.splits.empty());
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 0, 1});
  CHECK(data.graph.edge_count() == 3);
  CHECK(io::load_dataset(folder.path().string()).splits.empty());
}

TEST_CASE("Geom-GCN: Windows line ends, blank lines and no newline at the end") {
  std::string nodes = dense_text;
  for (std::size_t i = 0; (i = nodes.find('\n', i)) != std::string::npos; i += 3) nodes.replace(i, 1, "\r\n\n");
  nodes.erase(nodes.size() - 3);
  check_small(io::load_geom_gcn(SmallFolder(nodes).path()));
}

TEST_CASE("Geom-GCN: the form of the features is recognised") {
  const auto feature_count = [](const std::string& a, const std::string& b, const std::string& c,
                                const std::string& d, GeomGcnFeatures form = GeomGcnFeatures::automatic) {
    const SmallFolder folder("h\n0\t" + a + "\t0\n1\t" + b + "\t1\n2\t" + c + "\t0\n3\t" + d + "\t1\n");
    return io::load_geom_gcn(folder.path(), form).feature_count();
  };
  CHECK(feature_count("0,1", "1,0", "1,1", "0,1") == 2);    // all 0 or 1
  CHECK(feature_count("0,1.5", "2,3", "4,5", "6,7") == 2);  // not whole
  CHECK(feature_count("0,-1", "2,3", "4,5", "6,7") == 2);   // negative
  CHECK(feature_count("0,7", "3,3", "4,5", "6,7") == 2);    // repeats a value: counts
  CHECK(feature_count("0,7", "2,3", "4,5", "6,7") == 8);    // distinct whole numbers: indices
  CHECK(feature_count("0,1", "1", "0", "") == 2);           // different lengths: indices
  CHECK(feature_count("5", "5,5", "", "931") == 932);       // a repeated index counts once
  CHECK(feature_count("0,1", "1,0", "1,1", "0,1", GeomGcnFeatures::indices) == 2);
  CHECK(feature_count("0,7", "2,3", "4,5", "6,7", GeomGcnFeatures::dense) == 2);
}

TEST_CASE("Geom-GCN: bad files are named with line, value and limit") {
  const std::string at = std::string(nodes_file) + ":";
  const std::string rest = "1\t1\t1\n2\t1\t0\n3\t1\t1\n";
  CHECK(message_of_nodes("0\t1\n" + rest) ==
        at + "2: has 2 tab-separated fields; expected node, features and label");
  CHECK(message_of_nodes("x\t1\t0\n" + rest) == at + "2: 'x' is not a node number");
  CHECK(message_of_nodes("1\t1\t1\n0\t1\tNA\n2\t1\t0\n3\t1\t1\n")
            .starts_with(at + "3: label 'NA' is not allowed; it usually means a missing value"));
  CHECK(message_of_nodes("0\t1\t-2\n" + rest).starts_with(at + "2: label -2 is not allowed; numbers must be "));
  CHECK(message_of_nodes("0\t1,zwei\t0\n" + rest) == at + "2: feature 1 is 'zwei'; it must be a finite number");
  CHECK(message_of_nodes("0\t1,nan\t0\n" + rest) == at + "2: feature 1 is 'nan'; it must be a finite number");
  CHECK(message_of_nodes("0\tinf\t0\n" + rest) == at + "2: feature 0 is 'inf'; it must be a finite number");
  CHECK(message_of_nodes("0\t1,\t0\n" + rest) == at + "2: feature 1 is ''; it must be a finite number");
  CHECK(message_of_nodes("4\t1\t0\n" + rest) == at + "2: node 4 is not allowed; the 4 nodes are numbered 0 to 3");
  CHECK(message_of_nodes("-1\t1\t0\n" + rest) ==
        at + "2: node -1 is not allowed; the 4 nodes are numbered 0 to 3");
  CHECK(message_of_nodes("3\t1\t0\n" + rest).starts_with(at + "5: node 3 was already listed at "));
  CHECK(message_of_nodes("0\t1,-2\t0\n" + rest).starts_with(at + "2: feature index -2 is not allowed"));
  CHECK(message_of_nodes("0\t1,10000000\t0\n" + rest).starts_with(at + "2: feature index 1e+07 is not allowed"));
  CHECK(message_of_nodes("0\t1,2\t0\n" + rest, GeomGcnFeatures::dense) ==
        at + "3: node 1 has 1 features; node 0 has 2");
  CHECK(message_of_nodes("") == std::string(nodes_file) + ": lists no node; the graph is empty");
  CHECK(message_of(SmallFolder("")) ==
        std::string(nodes_file) + ": is empty; expected a header line and one line per node");
  CHECK(message_of(SmallFolder("3\t1,1,1\t1\n" + rest)) ==
        at + "1: '3?1,1,1?1' is not a header; the names of the columns stand in the first line");
  CHECK(message_of(SmallFolder(dense_text, "0\t1\n1\t2\n")) ==
        std::string(edges_file) + ":1: '0?1' is not a header; the names of the columns stand in the first line");

  const std::string edge = std::string(edges_file) + ":";
  CHECK(message_of_edges("0\t1\n0 2\n") == edge + "3: has 1 tab-separated fields; expected two nodes");
  CHECK(message_of_edges("0\t1\n1\tb\n") == edge + "3: 'b' is not a node number");
  CHECK(message_of_edges("0\t4\n") == edge + "2: node 4 is not allowed; node numbers must be between 0 and 3");
  CHECK(message_of_edges("0\t99999999999999999999\n") == edge + "2: '99999999999999999999' is not a node number");
  CHECK(message_of_edges("2\t2\n") == std::string(edges_file) + ": the graph has no edge between different nodes");
}

TEST_CASE("Geom-GCN: missing and bad splits") {
  SmallFolder folder;
  folder.write("small_split_0.6_0.2_3.npz", split_bytes({1, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 0, 1}));
  CHECK(io::load_geom_gcn(folder.path(), GeomGcnFeatures::automatic, DatasetUse::own_splits).splits.empty());
  CHECK(message_of(folder) ==
        "small_split_0.6_0.2_3.npz: train_mask and val_mask overlap: both hold node 1 in split 0");
  folder.write("small_split_0.6_0.2_3.npz", split_bytes({1, 0}, {0, 1}, {0, 0}));
  CHECK(message_of(folder) ==
        "small_split_0.6_0.2_3.npz: train_mask: has shape (2,); masks need one row of length 4 per split (node "
        "numbers "
        "belong under a key such as train_idx)");
  folder.write("small_split_0.6_0.2_3.npz", test::ZipWriter().add("a.npy", test::npy<int>({1}, {1})).finish());
  CHECK(message_of(folder) == "small_split_0.6_0.2_3.npz: key 'train_mask' is missing");
  folder.write("small_split_0.6_0.2_3.npz", "PK");
  CHECK(message_of(folder).starts_with("small_split_0.6_0.2_3.npz: is not a zip archive"));
  std::filesystem::remove(folder / "small_split_0.6_0.2_3.npz");
  CHECK(message_of(folder) == "no error");
  folder.write("other_split_2.npz", "");
  CHECK(message_of(folder) == " split 2 appears twice: other_split_2.npz and small_split_0.6_0.2_2.npz");
  std::filesystem::rename(folder / "other_split_2.npz", folder / "other_split_b.npz");
  CHECK(message_of(folder).starts_with("other_split_b.npz: the name of a split must end in its number"));

  for (const char* name : {"other_split_b.npz", "small_split_0.6_0.2_2.npz", "small_split_0.6_0.2_10.npz"}) {
    std::filesystem::remove(folder / name);
  }
  CHECK(io::load_geom_gcn(folder.path()).splits.empty());
  std::filesystem::remove(folder / edges_file);
  CHECK(message_of(folder) == std::string(edges_file) + ": no such file");
  std::filesystem::remove(folder / nodes_file);
  CHECK(message_of(folder) == std::string(nodes_file) + ": no such file");
  CHECK_THROWS_WITH_AS(static_cast<void>(io::load_geom_gcn(folder / "none")),
                       ((folder / "none").string() + ": no such folder").c_str(), std::runtime_error);
}

}  // namespace test_geom_gcn
