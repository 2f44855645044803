/// \file
/// Files of distributed trainings that are wrong or cannot be written: folders of arrays, lists of edges,
/// rows of checkpoints, partitions.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/distributed/checkpoint.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/distributed/folder_partition.hpp"
#include "sheafnn/distributed/folder_writer.hpp"
#include "sheafnn/distributed/graph_folder.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/io/npy_writer.hpp"
#include "temporary_folder.hpp"

namespace test_folder_files {
namespace {

namespace mpi = sheafnn::distributed;
using sheafnn::Index;
using Numbers = std::vector<std::int64_t>;

mpi::Communicator& ranks() {
  static auto* const world = new mpi::Communicator;  // MPI ends before static objects do
  return *world;
}

/// The message of an exception, without the folder in front of names.
std::string said(const std::filesystem::path& folder, const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    std::string text = error.what();
    for (std::size_t at; (at = text.find(folder.string() + "/")) != std::string::npos;)
      text.replace(at, folder.string().size() + 1, "");
    const bool argument = dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
    return (argument ? "argument: " : "") + text;
  }
  return "nothing is thrown";
}
void write_numbers(const std::filesystem::path& path, const Numbers& values, std::vector<Index> shape = {}) {
  if (shape.empty()) shape = {static_cast<Index>(values.size())};
  const sheafnn::io::Bytes bytes = sheafnn::io::to_npy<std::int64_t>(shape, values);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
/// The path 0 – 1 – 2, two sparse features.
void write_path(const std::filesystem::path& folder) {
  write_numbers(folder / "indptr.npy", {0, 1, 3, 4});
  write_numbers(folder / "indices.npy", {1, 0, 2, 1});
  write_numbers(folder / "labels.npy", {0, 1, -1});
  write_numbers(folder / "train_mask.npy", {1, 0, 0});
  write_numbers(folder / "features_indptr.npy", {0, 1, 2, 3});
  write_numbers(folder / "features_indices.npy", {0, 1, 0});
  write_numbers(folder / "features_values.npy", {1, 2, 3});
  write_numbers(folder / "features_columns.npy", {2});
}

}  // namespace

TEST_CASE("a folder of arrays that do not fit is refused") {
  if (ranks().size() > 1) return;  // the rank that finds it says so, the others go on
  struct Case {
    const char* file;
    Numbers values;
    std::vector<Index> shape;
    const char* message;
  };
  const Case cases[] = {
      {"parts.npy", {}, {0}, "parts.npy: 0 entries; at least 2 are needed"},
      {"parts.npy", {0}, {}, "parts.npy: 1 entries; at least 2 are needed"},
      {"parts.npy", {0, 3}, {2, 1}, "parts.npy: 2 dimensions; must have one"},
      {"features_indices.npy",
       {0, (std::int64_t{1} << 32) + 1, 0},
       {},
       "argument: features_indices.npy[1]: 4294967297 is not allowed; must be at least 0 and below 2, the number "
       "of "
       "columns"},
      {"features_indices.npy",
       {0, 1, -1},
       {},
       "argument: features_indices.npy[2]: -1 is not allowed; must be at least 0 and below 2, the number of "
       "columns"},
      {"features_columns.npy",
       {(std::int64_t{1} << 32) + 2},
       {},
       "argument: features_columns.npy: 4294967298 is not allowed; must be between 0 and 2147483647"},
      {"features_columns.npy", {2, 2}, {}, "features_columns.npy: 2 entries; must be 1"},
      {"features_indptr.npy", {0, 1, 2, 3, 3}, {}, "features_indptr.npy: 5 entries; must be 4"},
      {"features_indptr.npy", {1, 1, 2, 3}, {}, "features_indptr.npy: entry 0 is 1; must be 0"},
      {"features_indptr.npy",
       {0, 1, 2, 2},
       {},
       "features_indptr.npy: entry 3 is 2; must be 3, the entries of features_indices.npy"},
      {"features_indptr.npy", {0, 1, 2, 3}, {2, 2}, "features_indptr.npy: 2 dimensions; must have one"},
      {"features_values.npy", {1, 2, 3, 4}, {}, "features_values.npy: 4 entries; must be 3"},
      {"features.npy", {1, 2, 3, 4}, {}, "features.npy: 4 rows; must be 3"},
      {"features.npy", {1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}, "features.npy: 4 rows; must be 3"},
      {"indptr.npy", {}, {0}, "indptr.npy: 0 entries; must be nodes + 1"},
      {"indptr.npy", {1, 1, 3, 4}, {}, "indptr.npy: entry 0 is 1; must be 0"},
      {"indptr.npy", {0, 1, 3, 3}, {}, "indptr.npy: entry 3 is 3; must be 4, the entries of indices.npy"},
      {"indptr.npy", {0, 1, 3, 4}, {4, 1}, "indptr.npy: 2 dimensions; must have one"},
      {"indices.npy", {1, 0, 2, 1}, {2, 2}, "indices.npy: 2 dimensions; must have one"},
      {"labels.npy", {0, 1, 0, 1, 0, 1}, {3, 2}, "labels.npy: 2 dimensions; must have one"},
      {"labels.npy", {0, 1}, {}, "labels.npy: 2 entries; must be 3"},
      {"labels.npy",
       {0, -2, 1},
       {},
       "argument: labels.npy[1]: -2 is not allowed; a label is −1 or a number of a class, below 1000000000"},
      {"train_mask.npy", {1, 0, 2}, {}, "argument: train_mask.npy[2]: 2 is not allowed; must be 0 or 1"},
      {"val_mask.npy", {0, -1, 0}, {}, "argument: val_mask.npy[1]: -1 is not allowed; must be 0 or 1"},
      {"test_mask.npy", {0, 0, 1, 0}, {}, "test_mask.npy: 4 entries; must be 3"},
      {"original.npy", {2, 1, 0, 3}, {}, "original.npy: 4 entries; must be 3"},
      {"original.npy", {2, 1, 0}, {3, 1}, "original.npy: 2 dimensions; must have one"},
  };
  const auto read = [](const std::filesystem::path& from) { return mpi::read_folder(ranks(), from); };
  for (const Case& c : cases) {
    CAPTURE(c.message);
    const test::TemporaryFolder folder;
    write_path(folder.path());
    REQUIRE(read(folder.path()).piece.features.entries() == 3);
    write_numbers(folder / c.file, c.values, c.shape);
    CHECK(said(folder.path(), [&] { static_cast<void>(read(folder.path())); }) == c.message);
  }
}

TEST_CASE("truth values number no nodes, and errors of features name their file") {
  if (ranks().size() > 1) return;
  const auto read = [](const std::filesystem::path& folder, const char* file, const sheafnn::io::Bytes& bytes) {
    std::ofstream(folder / file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return said(folder, [&] { static_cast<void>(mpi::read_folder(ranks(), folder)); });
  };
  for (const char* file : {"indices.npy", "features_indices.npy"}) {
    const test::TemporaryFolder folder;
    write_path(folder.path());
    const Index shape[] = {file[0] == 'i' ? 4 : 3};
    sheafnn::io::Bytes bytes = sheafnn::io::detail::npy_with_header("|b1", shape, 0);
    bytes.resize(bytes.size() + static_cast<std::size_t>(shape[0]));
    CHECK(read(folder.path(), file, bytes) ==
          std::string(file) + " from row 0 on: holds truth values; whole numbers are needed");
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Index dense[] = {3, 2}, sparse[] = {3};
  const test::TemporaryFolder folder;
  write_path(folder.path());
  CHECK(read(folder.path(), "features_values.npy",
             sheafnn::io::to_npy<double>(sparse, std::vector<double>{1, nan, 1})) ==
        "features_values.npy of the nodes from 0 on: features[1]: column 1 with value nan is not allowed; columns "
        "must "
        "increase within [0, 2) and values must be finite");
  CHECK(read(folder.path(), "features.npy",
             sheafnn::io::to_npy<double>(dense, std::vector<double>{1, 2, 3, nan, 5, 6})) ==
        "features.npy from row 0 on: features[1, 1]: nan is not allowed; features must be finite");
}

TEST_CASE("partition_folder refuses offsets that end elsewhere") {
  if (ranks().size() > 1) return;
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "in");
  write_path(folder / "in");
  const auto partition = [&] {
    return said(folder.path(),
                [&] { static_cast<void>(mpi::partition_folder(ranks(), folder / "in", folder / "out", 2)); });
  };
  CHECK(partition() == "nothing is thrown");
  write_numbers(folder / "in" / "features_indptr.npy", {0, 1, 2, 2});
  CHECK(partition() == "in/features_indptr.npy: entry 3 is 2; must be 3, the entries of in/features_indices.npy");
  write_numbers(folder / "in" / "indptr.npy", {0, 1, 3, 3});
  CHECK(partition() == "in/indptr.npy: entry 3 is 3; must be 4, the entries of in/indices.npy");
}

TEST_CASE("a list of edges has two node numbers in every line") {
  if (ranks().size() > 1) return;
  const auto convert = [](std::string_view text) {
    const test::TemporaryFolder folder;
    folder.write("edges.txt", text);
    return said(folder.path(), [&] {
      mpi::convert_edges(ranks(), folder / "edges.txt", folder / "graph", 4, 2);
      mpi::NpyFile targets(folder / "graph" / "indices.npy");
      std::string all;
      for (const std::int64_t v : targets.read<std::int64_t>(0, targets.rows())) all += std::to_string(v);
      throw std::runtime_error(all);
    });
  };
  for (const char* good :
       {"0 1\n1 2\n2 3\n", "0 1\n1 2\n2 3", "\n 0\t1 \r\n\r\n1   2\r\n  \n2 +3\r\n", "2 3\n1 0\n2 1\n1 1"})
    CHECK(convert(good) == "102132");
  CHECK(convert("") == "");
  CHECK(convert("0 1\n1 2\n3") == "edges.txt:3: '3' is not two node numbers");
  CHECK(convert("0 1\n1 2\n3\n") == "edges.txt:3: '3' is not two node numbers");
  CHECK(convert("0 1\n2 99999999999999999999") == "edges.txt:2: '2 99999999999999999999' is not two node numbers");
  CHECK(convert("0 1 2\n1 2 3\n") == "edges.txt:1: '0 1 2' is not two node numbers");
  CHECK(convert("0 1\n\n1,2\n") == "edges.txt:3: '1,2' is not two node numbers");
  CHECK(convert("0 1\n# 2 3\n") == "edges.txt:2: '# 2 3' is not two node numbers");
  CHECK(convert("0 1.5\n") == "edges.txt:1: '0 1.5' is not two node numbers");
  CHECK(convert("0 1\n3 4\n") == "edges.txt:2: node 4; node numbers are between 0 and 3");
  CHECK(convert("-1 2") == "edges.txt:1: node -1; node numbers are between 0 and 3");
}

TEST_CASE("values of all ranks are gathered in their order, few and many") {
  for (const std::size_t size : {0U, 1U, 7U, 20000U}) {
    CAPTURE(size);
    // Some ranks have nothing.
    const auto count = [&](int rank) { return rank % 3 == 1 ? 0 : size + static_cast<std::size_t>(rank); };
    std::vector<double> expected;
    for (int rank = 0; rank < ranks().size(); ++rank) {
      for (std::size_t i = 0; i < count(rank); ++i) expected.push_back(1e6 * rank + static_cast<double>(i));
    }
    std::vector<double> own;
    for (std::size_t i = 0; i < count(ranks().rank()); ++i)
      own.push_back(1e6 * ranks().rank() + static_cast<double>(i));
    const std::vector<double> all = ranks().gather(std::span<const double>(own));
    CHECK(all == (ranks().is_root() ? expected : std::vector<double>()));
  }
}

TEST_CASE("rows of a checkpoint and partitions are written whole or not at all") {
  if (ranks().size() > 1) return;
  const test::TemporaryFolder folder;
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  const sheafnn::Dataset data = sheafnn::karate_club();
  mpi::DistributedData part(ranks(), data, mpi::contiguous_partition(data.graph, 1));
  std::vector<double> predictions;
  for (Index i = 0; i < 2 * data.node_count(); ++i) predictions.push_back(static_cast<double>(i));
  const auto shard = [&](const std::string& name) {
    return said(folder.path(), [&] { mpi::detail::write_shard(part, folder / name, predictions, 2); });
  };
  CHECK(shard("rows.npy") == "nothing is thrown");
  mpi::NpyFile rows(folder / "rows.npy");
  CHECK(rows.rows() == 34);
  CHECK(rows.read<double>(33, 1) == std::vector<double>{33, 66, 67});
  mpi::write_partition(folder / "parts", {2, std::vector<std::int32_t>(34, 1)});
  CHECK(files() == 2);
  const sheafnn::io::Bytes old_rows = sheafnn::io::read_file(folder / "rows.npy"),
                           old_parts = sheafnn::io::read_file(folder / "parts");

  // A limit on the size of files makes writes fail as a full disk does.
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 20;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  predictions[5] = -1;
  const std::string of_rows = shard("rows.npy"), of_new = shard("new.npy"),
                    of_parts = said(folder.path(), [&] {
                      mpi::write_partition(folder / "parts", {2, std::vector<std::int32_t>(34, 0)});
                    });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  CHECK(of_rows == "rows.npy: cannot be written; File too large");
  CHECK(of_new == "new.npy: cannot be written; File too large");
  CHECK(of_parts == "parts: cannot be written; File too large");
  CHECK(files() == 2);
  CHECK(sheafnn::io::read_file(folder / "rows.npy") == old_rows);
  CHECK(sheafnn::io::read_file(folder / "parts") == old_parts);
}

}  // namespace test_folder_files
