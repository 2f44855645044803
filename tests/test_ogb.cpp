// Folders of the Open Graph Benchmark (io/ogb.hpp).
#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/npy_writer.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "temporary_folder.hpp"

namespace {

using sheafnn::Index;

/// A folder with four nodes, three edges, two features and two classes; the class of node 3 is unknown.
class Folder {
 public:
  Folder() {
    std::filesystem::create_directories(raw());
    pack("raw/num-node-list", "4\n");
    pack("raw/num-edge-list", "3\n");
    pack("raw/edge", "0,1\n2,1\n3,0\n");
    pack("raw/node-feat", "0.5,0\n0,-1.25\n3,0\n0,1e-3\n");
    pack("raw/node-label", "1\n0\n1\nnan\n");
    pack("raw/node_year", "2014\n2015\n2016\n2017\n");
    for (const char* name : {"by_time", "other"}) {
      std::filesystem::create_directories(folder_ / "split" / name);
      pack(std::string("split/") + name + "/train", "1\n0\n");
      pack(std::string("split/") + name + "/valid", "2\n");
      pack(std::string("split/") + name + "/test", "");
    }
  }
  void pack(const std::string& name, const std::string& text) const {
    const gzFile file = gzopen((folder_ / (name + ".csv.gz")).c_str(), "wb");
    REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
    REQUIRE(gzclose(file) == Z_OK);
  }
  void remove(const std::string& name) const { std::filesystem::remove(folder_ / name); }
  [[nodiscard]] std::filesystem::path raw() const { return folder_ / "raw"; }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  [[nodiscard]] const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
};

void check_task(const sheafnn::Dataset& data) {
  CHECK(data.node_count() == 4);
  CHECK(data.graph.edge_count() == 3);
  CHECK(data.class_count == 2);
  CHECK(data.labels == std::vector<std::int32_t>{1, 0, 1, -1});
  CHECK(data.feature_count() == 2);
  CHECK(std::vector<double>(data.features.values().begin(), data.features.values().end()) ==
        std::vector<double>{0.5, -1.25, 3, 1e-3});
  CHECK(std::vector<std::int32_t>(data.features.column_of().begin(), data.features.column_of().end()) ==
        std::vector<std::int32_t>{0, 1, 0, 1});
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[0].train == std::vector<std::int32_t>{0, 1});
  CHECK(data.splits[0].validation == std::vector<std::int32_t>{2});
  CHECK(data.splits[0].test.empty());
}

TEST_CASE("an OGB folder of compressed tables") {
  const Folder folder;
  const sheafnn::Dataset data = sheafnn::io::load_dataset(folder.path().string());
  check_task(data);
  CHECK(data.name == folder.path().filename().string());
  CHECK(data.graph.listed(data.graph.first_arc(2)));       // 2 → 1, as it is listed
  CHECK(!data.graph.listed(data.graph.first_arc(0) + 1));  // 0 → 3 is not
  CHECK(sheafnn::io::load_ogb(folder.path(), sheafnn::DatasetUse::own_splits).splits.empty());
  // Tables that were unpacked.
  folder.remove("raw/edge.csv.gz");
  folder.folder().write("raw/edge.csv", "0,1\r\n2,1\r\n3,0\r\n");
  check_task(sheafnn::io::load_ogb(folder.path()));
  // Without labels it is a graph to predict.
  folder.remove("raw/node-label.csv.gz");
  CHECK(sheafnn::io::load_ogb(folder.path(), sheafnn::DatasetUse::prediction).labels.empty());
}

TEST_CASE("an OGB folder of arrays") {
  const Folder folder;
  for (const char* name : {"edge", "node-feat", "node-label", "num-node-list"})
    folder.remove(std::string("raw/") + name + ".csv.gz");
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  const auto write = [&](const std::vector<std::int64_t>& ends) {
    sheafnn::io::NpzWriter writer;
    writer.add<std::int64_t>("edge_index", {2, 3}, ends);
    writer.add<float>("node_feat", {4, 2}, std::vector<float>{0.5F, 0, 0, -1.25F, 3, 0, 0, 1e-3F});
    writer.add<std::int64_t>("num_nodes_list", {1}, std::vector<std::int64_t>{4});
    writer.write(folder.raw() / "data.npz");
  };
  write({0, 2, 3, 1, 1, 0});
  sheafnn::io::NpzWriter labels;
  labels.add<double>("node_label", {4, 1}, std::vector<double>{1, 0, 1, unknown});
  labels.write(folder.raw() / "node-label.npz");
  const sheafnn::Dataset data = sheafnn::io::load_ogb(folder.path());
  CHECK(data.labels == std::vector<std::int32_t>{1, 0, 1, -1});
  CHECK(data.graph.edge_count() == 3);
  CHECK(data.features.values()[3] == static_cast<double>(1e-3F));
  CHECK(data.splits.size() == 2);
  write({0, 2, 3, 1, 4, 0});
  CHECK(test::message_of<std::runtime_error>([&] {
          static_cast<void>(sheafnn::io::load_ogb(folder.path()));
        }).ends_with("edge 1 has node 4; node numbers must be between 0 and 3"));
}

TEST_CASE("what is wrong in an OGB folder is named") {
  const auto message = [](const auto& spoil) {
    const Folder folder;
    spoil(folder);
    std::string r =
        test::message_of<std::runtime_error>([&] { static_cast<void>(sheafnn::io::load_ogb(folder.path())); });
    const std::string name = folder.path().string() + "/";
    for (std::size_t at; (at = r.find(name)) != std::string::npos;) r.erase(at, name.size());
    return r;
  };
  const auto table = [](const char* name, const char* text) {
    return [=](const Folder& folder) { folder.pack(name, text); };
  };
  CHECK(message([](const Folder&) {}) == "nothing was thrown");
  CHECK(message(table("raw/num-node-list", "4\n5\n")) ==
        "raw/num-node-list.csv.gz:2: there are several graphs; a task on the nodes of one graph is supported");
  CHECK(message(table("raw/num-node-list", "0\n")) ==
        "raw/num-node-list.csv.gz:1: '0' is no number of nodes, 1 to 2147483647");
  CHECK(message(table("raw/edge", "0,1\n2,4\n")) ==
        "raw/edge.csv.gz:2: node 4 is not allowed; node numbers must be between 0 and 3");
  CHECK(message(table("raw/edge", "0,1,2\n")) == "raw/edge.csv.gz:1: has 3 fields; expected 2");
  CHECK(message(table("raw/edge", "0,x\n")) == "raw/edge.csv.gz:1: 'x' is not a node number");
  CHECK(message(table("raw/node-feat", "1,2\n1\n3,4\n5,6\n")) ==
        "raw/node-feat.csv.gz:2: has 1 fields; expected 2");
  CHECK(message(table("raw/node-feat", "1,2\n1,nan\n3,4\n5,6\n")) ==
        "raw/node-feat.csv.gz:2: feature 1 is 'nan'; it must be a finite number");
  CHECK(message(table("raw/node-feat", "1,2\n")) ==
        "raw/node-feat.csv.gz: has 1 rows; must be the number of nodes, 4");
  CHECK(message(table("raw/node-label", "1,0\n")) ==
        "raw/node-label.csv.gz:1: has 2 labels; one class for each node is supported");
  CHECK(message(table("raw/node-label", "1\n0\n")) ==
        "raw/node-label.csv.gz: has 2 labels; must be the number of nodes, 4");
  CHECK(message(table("raw/edge-feat", "1\n2\n3\n")) ==
        "raw/edge-feat.csv.gz: features of edges are not read; write edges.csv with them");
  CHECK(message(table("split/other/valid", "7\n")) ==
        "split/other/valid.csv.gz:1: node 7 is not allowed; node numbers must be between 0 and 3");
  CHECK(message([](const Folder& folder) { folder.remove("split/other/test.csv.gz"); }) ==
        "split/other/test.csv.gz: cannot be opened");
  CHECK(message([](const Folder& folder) {
          std::filesystem::resize_file(folder.raw() / "edge.csv.gz",
                                       std::filesystem::file_size(folder.raw() / "edge.csv.gz") - 9);
        }).starts_with("raw/edge.csv.gz: is damaged or ends too early"));
  CHECK(message([](const Folder& folder) { folder.remove("raw/num-node-list.csv.gz"); }) ==
        "raw/num-node-list.csv.gz: cannot be opened");
}

}  // namespace
