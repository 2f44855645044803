/// \file
/// Writing .npz files: archives read back by the library's own reader, sheaves and posteriors as arrays, nothing left
/// behind on errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "sheafnn/io/npz_archive.hpp"
#include "sheafnn/io/sheaf_file.hpp"
#include "sheafnn/io/zip.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "temporary_folder.hpp"

namespace test_sheaf_file {
namespace {

namespace io = sheafnn::io;
using sheafnn::CellularSheaf;
using sheafnn::Graph;
using sheafnn::Index;
using Doubles = std::vector<double>;
using Shape = std::vector<Index>;

/// The text of a 0-dimensional array of dtype <U, or what is wrong with it.
std::string text_in(const std::filesystem::path& path, const std::string& key) {
  const io::ZipArchive zip(path.string(), io::read_file(path));
  const io::ZipEntry* entry = zip.find(key + ".npy");
  if (entry == nullptr) return "no entry";
  const io::Bytes content = zip.read(*entry);
  const std::size_t header = 10 + content[8] + 256 * content[9];
  const std::string text(content.begin() + 10, content.begin() + static_cast<std::ptrdiff_t>(header));
  const std::size_t size = (content.size() - header) / 4;
  if (text.find("'descr': '<U" + std::to_string(size) + "'") == std::string::npos) return "another dtype: " + text;
  if (text.find("'shape': ()") == std::string::npos) return "another shape: " + text;
  if (header % 64 != 0 || text.back() != '\n') return "another header: " + text;
  std::string r;
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned char* c = content.data() + header + 4 * i;
    if (c[1] != 0 || c[2] != 0 || c[3] != 0) return "another character";
    r += static_cast<char>(c[0]);
  }
  return r;
}
Index files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}
template <class Error, class Body>
void check_error(const Body& body, const std::string& what) {
  try {
    body();
    FAIL("no error: ", what);
  } catch (const Error& error) {
    CHECK_MESSAGE(std::string(error.what()).find(what) != std::string::npos, std::string(error.what()));
  }
}

/// Four nodes, the last alone; edges that are not sorted.
Graph some_graph() {
  const sheafnn::Edge edges[] = {{2, 1}, {0, 2}, {0, 1}};
  return Graph(4, edges);
}

template <class Family>
void check_sheaf(const Shape& shape) {
  CAPTURE(Family::name);
  const test::TemporaryFolder folder;
  CellularSheaf<Family> sheaf = sheafnn::sheaf::random_sheaf<Family>(some_graph(), {.seed = 3});
  Doubles weights(3, 1.0);
  if constexpr (sheaf.has_edge_weights) {
    for (Index e = 0; e < 3; ++e) {
      weights[static_cast<std::size_t>(e)] = 0.25 * static_cast<double>(e + 1);
      sheaf.set_edge_weight(e, weights[static_cast<std::size_t>(e)]);
    }
  }
  io::write_sheaf(folder / "sheaf.npz", sheaf);
  const io::NpzArchive file(folder / "sheaf.npz");
  CHECK(file.names() == std::vector<std::string>{"format_version", "family", "stalk_dimension", "node_count",
                                                 "edges", "arcs", "maps", "edge_weights"});
  CHECK(text_in(folder / "sheaf.npz", "family") == Family::name);
  CHECK(file.array("stalk_dimension").values<double>() == Doubles{Family::stalk_dimension});
  CHECK(file.array("stalk_dimension").shape().empty());
  CHECK(file.array("node_count").values<double>() == Doubles{4});
  CHECK(file.array("edges").shape() == Shape{3, 2});
  CHECK(file.array("edges").values<double>() == Doubles{0, 1, 0, 2, 1, 2});
  CHECK(file.array("arcs").shape() == Shape{6, 2});
  CHECK(file.array("arcs").values<double>() == Doubles{0, 1, 0, 2, 1, 0, 1, 2, 2, 0, 2, 1});
  CHECK(file.array("edge_weights").values<double>() == weights);
  CHECK(file.array("maps").shape() == shape);
  const Doubles maps = file.array("maps").values<double>();
  bool same = true;
  for (Index a = 0; a < 6 && Family::map_size > 0; ++a) {
    const auto& map = sheaf.map(a);
    for (Index i = 0; i < map.rows(); ++i) {
      for (Index j = 0; j < map.cols(); ++j) {
        same = same && maps[static_cast<std::size_t>(a * map.size() + i * map.cols() + j)] == map(i, j);
      }
    }
  }
  CHECK(same);
}

}  // namespace

TEST_CASE("arrays written to .npz files are read back") {
  const test::TemporaryFolder folder;
  const Doubles doubles = {1.5, -2, 1e300, std::numeric_limits<double>::denorm_min(), 0, 7};
  const std::vector<float> floats = {0.1f, -3};
  const std::vector<std::int64_t> longs = {std::int64_t{1} << 60, -1, 0};
  const std::vector<std::int32_t> ints = {-7, 2147483647};
  io::NpzWriter writer;
  writer.add<double>("matrix", {3, 2}, doubles);
  writer.add<double>("cube", {1, 2, 3}, doubles);
  writer.add<float>("floats", {2}, floats);
  writer.add<std::int64_t>("longs", {3, 1}, longs);
  writer.add<std::int32_t>("ints_2", {2}, ints);
  writer.add<double>("number", {}, std::span(doubles).first(1));
  writer.add<double>("nothing", {0, 5}, {});
  writer.add("text", "special-orthogonal");
  writer.write(folder / "arrays.npz");
  const io::NpzArchive file(folder / "arrays.npz");
  CHECK(file.names() ==
        std::vector<std::string>{"matrix", "cube", "floats", "longs", "ints_2", "number", "nothing", "text"});
  CHECK(file.array("matrix").values<double>() == doubles);
  CHECK(file.array("matrix").shape() == Shape{3, 2});
  CHECK(file.array("cube").values<double>() == doubles);
  CHECK(file.array("cube").shape() == Shape{1, 2, 3});
  CHECK(file.array("floats").values<float>() == floats);
  CHECK(file.array("floats").dtype().substr(1) == "f4");
  CHECK(file.array("longs").values<std::int64_t>() == longs);
  CHECK(file.array("ints_2").values<std::int64_t>() == std::vector<std::int64_t>{-7, 2147483647});
  CHECK(file.array("ints_2").dtype().substr(1) == "i4");
  CHECK(file.array("number").shape().empty());
  CHECK(file.array("number").values<double>() == Doubles{1.5});
  CHECK(file.array("nothing").shape() == Shape{0, 5});
  CHECK(text_in(folder / "arrays.npz", "text") == "special-orthogonal");
  // The same content is the same file; a writer may be used again.
  writer.write(folder / "again.npz");
  CHECK(io::read_file(folder / "again.npz") == io::read_file(folder / "arrays.npz"));
  io::NpzWriter().write(folder / "empty.npz");
  CHECK(io::NpzArchive(folder / "empty.npz").names().empty());
}

TEST_CASE("arrays that cannot be written") {
  io::NpzWriter writer;
  const Doubles two = {1, 2};
  writer.add<double>("taken", {2}, two);
  using Error = std::invalid_argument;
  check_error<Error>([&] { writer.add<double>("taken", {2}, two); }, "taken");
  check_error<Error>([&] { writer.add<double>("", {2}, two); }, "key");
  check_error<Error>([&] { writer.add<double>("../up", {2}, two); }, "../up");
  check_error<Error>([&] { writer.add<double>("short", {3}, two); }, "the shape has 3");
  check_error<Error>([&] { writer.add<double>("negative", {-1, -2}, two); }, "at least 0");
  check_error<Error>(
      [&] {
        writer.add<double>("large", {Index{1} << 32, Index{1} << 32}, Doubles());
      },
      "shape[1]");
  check_error<Error>(
      [&] {
        writer.add<double>("none", {0, Index{1} << 32, Index{1} << 32}, Doubles());
      },
      "shape[2]");
  check_error<Error>([&] { writer.add("text", "λ"); }, "ASCII");
  check_error<Error>([&] { writer.add("text", ""); }, "ASCII");
  // What was refused is not in the file.
  const test::TemporaryFolder folder;
  writer.write(folder / "one.npz");
  CHECK(io::NpzArchive(folder / "one.npz").names() == std::vector<std::string>{"taken"});
}

TEST_CASE("texts are read back, and nothing else as a text") {
  const test::TemporaryFolder folder;
  io::NpzWriter writer;
  const Doubles two = {1, 2};
  writer.add("family", "special-orthogonal");
  writer.add<double>("numbers", {2}, two);
  writer.write(folder / "text.npz");
  const io::NpzArchive file(folder / "text.npz");
  CHECK(file.text("family") == "special-orthogonal");
  using Error = std::runtime_error;
  check_error<Error>([&] { (void)file.text("numbers"); }, "numbers: has element type '<f8' and 1 extents");
  check_error<Error>([&] { (void)file.text("nothing"); }, "key 'nothing' is missing");
  io::Bytes content = io::to_npy("ab");
  CHECK(io::npy_text("x", content) == "ab");
  content[content.size() - 3] = 1;  // the second character becomes 256 + 'b'
  check_error<Error>([&] { (void)io::npy_text("x", content); }, "x: holds character 354");
  content.pop_back();
  check_error<Error>([&] { (void)io::npy_text("x", content); }, "does not fit its 7 bytes");
  // As NumPy writes on big-endian machines.
  content = io::to_npy("ab");
  std::replace(content.begin(), content.begin() + 64, static_cast<unsigned char>('<'),
               static_cast<unsigned char>('>'));
  std::reverse(content.end() - 8, content.end() - 4);
  std::reverse(content.end() - 4, content.end());
  CHECK(io::npy_text("x", content) == "ab");
}

TEST_CASE("errors leave files as they were") {
  const test::TemporaryFolder folder;
  const auto sheaf = sheafnn::sheaf::random_sheaf<sheafnn::Diagonal<2>>(some_graph(), {.seed = 3});
  const std::filesystem::path old = folder.write("sheaf.npz", "old");
  const sheafnn::NamedMatrix wrong{"sigma", 2, Doubles(11)};
  check_error<std::invalid_argument>([&] { io::write_sheaf(old, sheaf, std::span(&wrong, 1)); },
                                     "expected 2 for each of 6 arcs");
  const sheafnn::NamedMatrix taken{"maps", 1, Doubles(6)};
  check_error<std::invalid_argument>([&] { io::write_sheaf(old, sheaf, std::span(&taken, 1)); }, "maps");
  CHECK(io::read_file(old) == io::Bytes{'o', 'l', 'd'});
  check_error<std::runtime_error>([&] { io::write_sheaf(folder / "nowhere/sheaf.npz", sheaf); },
                                  "nowhere/sheaf.npz");
  check_error<std::runtime_error>([&] { io::write_sheaf(folder.path(), sheaf); }, "not a regular file");
  CHECK(files_in(folder.path()) == 1);
  io::write_sheaf(old, sheaf);
  CHECK(io::NpzArchive(old).contains("maps"));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("sheaf files") {
  check_sheaf<sheafnn::Identity<2>>({6, 0});
  check_sheaf<sheafnn::Diagonal<2>>({6, 2});
  check_sheaf<sheafnn::SpecialOrthogonal<3>>({6, 3, 3});
  check_sheaf<sheafnn::GeneralLinear<2>>({6, 2, 2});
  check_sheaf<sheafnn::GeneralLinear<1>>({6, 1});
  check_sheaf<sheafnn::Conformal<2>>({6, 2, 2});
}

TEST_CASE("sheaf files with the spread of a posterior, and in single precision") {
  const test::TemporaryFolder folder;
  const auto sheaf = sheafnn::sheaf::random_sheaf<sheafnn::Diagonal<2>, float>(some_graph(), {.seed = 3});
  sheafnn::PosteriorParameters posterior;
  posterior.spread = {{"sigma", 2, Doubles(12)}, {"kappa", 1, {1, 2, 3, 4, 5, 6}}};
  for (std::size_t i = 0; i < 12; ++i) posterior.spread[0].values[i] = static_cast<double>(i) / 3;
  io::write_sheaf(folder / "sheaf.npz", sheaf, posterior);
  const io::NpzArchive file(folder / "sheaf.npz");
  CHECK(file.array("sigma").shape() == Shape{6, 2});
  CHECK(file.array("sigma").values<double>() == posterior.spread[0].values);
  CHECK(file.array("kappa").shape() == Shape{6});
  CHECK(file.array("kappa").values<double>() == posterior.spread[1].values);
  CHECK(file.array("maps").dtype().substr(1) == "f4");
  CHECK(file.array("maps").values<float>()[0] == sheaf.map(0)(0));
  // A graph without edges.
  io::write_sheaf(folder / "lonely.npz", CellularSheaf<sheafnn::SpecialOrthogonal<2>>(Graph(3, {})));
  CHECK(io::NpzArchive(folder / "lonely.npz").array("maps").shape() == Shape{0, 2, 2});
}

}  // namespace test_sheaf_file
