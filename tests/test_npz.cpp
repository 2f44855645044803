// .npz files: zip, .npy and dataset level, well-formed in every supported form and damaged in every way.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <locale>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "npz_writer.hpp"
#include "refusal.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/npy_writer.hpp"
#include "sheafnn/io/npz.hpp"
#include "temporary_folder.hpp"

namespace test_npz {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;
using io::NpyArray;
using io::NpzArchive;
using io::ZipArchive;
using test::Bytes;
using test::npy;
using test::ZipWriter;

using Arrays = std::map<std::string, Bytes>;

// Four nodes, two features, a path of three edges, two splits.
Arrays small_arrays() {
  return {{"node_features", npy<double>({4, 2}, {1, 0, 0, 2, 0, 0, 3, 4}, {"<f4"})},
          {"node_labels", npy<int>({4}, {0, 1, 2, 1}, {"<i8"})},
          {"edges", npy<int>({3, 2}, {0, 1, 1, 2, 2, 3}, {"<i8"})},
          {"train_masks", npy<int>({2, 4}, {1, 1, 0, 0, 0, 0, 1, 1}, {"|b1"})},
          {"val_masks", npy<int>({2, 4}, {0, 0, 1, 0, 1, 0, 0, 0}, {"|b1"})},
          {"test_masks", npy<int>({2, 4}, {0, 0, 0, 1, 0, 1, 0, 0}, {"|b1"})}};
}

Bytes archive_of(const Arrays& arrays, const test::ZipOptions& options = {}) {
  ZipWriter writer(options);
  for (const auto& [key, content] : arrays) writer.add(key + ".npy", content);
  return writer.finish();
}
Bytes archive_with(const std::string& key, const Bytes& content) {
  Arrays arrays = small_arrays();
  arrays[key] = content;
  return archive_of(arrays);
}

Dataset load(const Bytes& bytes) { return io::detail::read_dataset(NpzArchive("t.npz", bytes), "t"); }

void check_small(const Dataset& data) {
  CHECK(data.node_count() == 4);
  CHECK(data.feature_count() == 2);
  CHECK(data.class_count == 3);
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 2, 1});
  const std::vector<Edge> edges(data.graph.edges().begin(), data.graph.edges().end());
  CHECK(edges == std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}});
  const std::vector<double> values(data.features.values().begin(), data.features.values().end());
  CHECK(values == std::vector<double>{1, 2, 3, 4});
  const std::vector<Index> offsets(data.features.offsets().begin(), data.features.offsets().end());
  CHECK(offsets == std::vector<Index>{0, 1, 2, 2, 4});
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[0].train == std::vector<std::int32_t>{0, 1});
  CHECK(data.splits[0].validation == std::vector<std::int32_t>{2});
  CHECK(data.splits[0].test == std::vector<std::int32_t>{3});
  CHECK(data.splits[1].train == std::vector<std::int32_t>{2, 3});
  CHECK(data.splits[1].validation == std::vector<std::int32_t>{0});
  CHECK(data.splits[1].test == std::vector<std::int32_t>{1});
}

// The same for an archive that may lack masks of validation or test nodes.
void check_small_without_missing(const NpzArchive& archive) {
  Dataset data = io::detail::read_dataset(archive, "t");
  for (std::size_t s = 0; s < data.splits.size(); ++s) {
    Split& split = data.splits[s];
    const auto replace_missing = [&](const char* key, std::vector<std::int32_t>& set, std::int32_t node) {
      if (archive.contains(key)) return;
      CHECK(set.empty());
      set = {node};
    };
    replace_missing("val_masks", split.validation, s == 0 ? 2 : 0);
    replace_missing("test_masks", split.test, s == 0 ? 3 : 1);
  }
  check_small(data);
}

// The message of the std::runtime_error that `action` throws, or "" where it returns; any other exception passes
// and fails the test. A message has to be one line that begins with the name of the file.
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.starts_with("t.npz: "));
    return message;
  }
  return "";
}

#define CHECK_MESSAGE_IS(bytes, message) CHECK_THROWS_WITH_AS(load(bytes), message, std::runtime_error)

}  // namespace

TEST_CASE("data sets: labels may be unknown") {
  const Dataset data = load(archive_with("node_labels", npy<int>({4}, {0, -1, 2, -1}, {"<i8"})));
  CHECK(data.labels == std::vector<std::int32_t>{0, -1, 1, -1});
  CHECK(data.class_names == std::vector<std::string>{"0", "2"});
  CHECK(data.class_count == 2);
  CHECK(data.splits[0].test == std::vector<std::int32_t>{3});  // as the mask says; training refuses such a set
  CHECK_MESSAGE_IS(archive_with("node_labels", npy<int>({4}, {-1, -1, -1, -1}, {"<i8"})),
                   "t.npz: class_count: 0 is not allowed; at least two classes are needed");
}

TEST_CASE("npy: every element type, byte order, memory order and version") {
  const std::vector<int> expected = {0, 1, 100, 3, 4, 5};
  for (const std::string type : {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}) {
    for (const std::string order : {"<", ">"}) {
      for (const bool fortran : {false, true}) {
        for (const int version : {1, 2, 3}) {
          CAPTURE(order + type);
          CAPTURE(fortran);
          const NpyArray array("a",
                               npy(std::vector<std::size_t>{2, 3}, expected, {order + type, fortran, version}));
          CHECK(array.shape() == std::vector<Index>{2, 3});
          CHECK(array.dtype() == order + type);
          CHECK(array.values<double>() == std::vector<double>(expected.begin(), expected.end()));
          CHECK(array.values<float>() == std::vector<float>(expected.begin(), expected.end()));
          CHECK(array.values<std::int64_t>() == std::vector<std::int64_t>(expected.begin(), expected.end()));
        }
      }
    }
  }
}

TEST_CASE("npy: three dimensions in Fortran order, scalars and empty arrays") {
  std::vector<int> counting(24);
  for (int i = 0; i < 24; ++i) counting[static_cast<std::size_t>(i)] = i;
  const NpyArray array("a", npy(std::vector<std::size_t>{2, 3, 4}, counting, {"<i4", true}));
  CHECK(array.values<std::int64_t>() == std::vector<std::int64_t>(counting.begin(), counting.end()));
  CHECK(array.shape_text() == "(2, 3, 4)");

  const NpyArray scalar("a", npy<double>({}, {0.5}));
  CHECK(scalar.shape().empty());
  CHECK(scalar.values<double>() == std::vector<double>{0.5});
  const NpyArray empty("a", npy<double>({0, 7}, {}));
  CHECK(empty.size() == 0);
  CHECK(empty.values<double>().empty());
  CHECK(npy<double>({5}, {1, 2, 3, 4, 5}).size() % 8 == 0);
  CHECK(NpyArray("a", npy<double>({5}, {1, 2, 3, 4, 5})).shape_text() == "(5,)");
}

TEST_CASE("npy: written and read whatever the program's locale does to numbers") {
  struct Grouping : std::numpunct<char> {
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  struct Restored {
    std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
    ~Restored() { std::locale::global(before); }
  } restored;
  const std::vector<double> numbers(1500, 0.5);
  const std::vector<sheafnn::Index> shape = {1500};
  const NpyArray array("a", sheafnn::io::to_npy(std::span<const sheafnn::Index>(shape), std::span(numbers)));
  CHECK(array.shape_text() == "(1500,)");
  CHECK(array.values<double>() == numbers);
  CHECK(sheafnn::detail::concat(1234567, ' ', 0.5) == "1234567 0.5");
}

TEST_CASE("npy: extreme values keep their bits or are refused") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto real = [](double v, const char* type) { return NpyArray("a", npy<double>({1}, {v}, {type})); };
  const auto whole = [](std::int64_t v, const char* type) {
    return NpyArray("a", npy<std::int64_t>({1}, {v}, {type}));
  };
  CHECK(whole(std::numeric_limits<std::int64_t>::min(), "<i8").values<std::int64_t>()[0] ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(whole(-1, "<i2").values<std::int64_t>()[0] == -1);
  CHECK(whole(-1, ">u4").values<std::int64_t>()[0] == 4294967295);
  CHECK(whole(-1, "<u8").values<double>()[0] == 18446744073709551615.0);
  CHECK(real(infinity, "<f4").values<double>()[0] == infinity);
  CHECK(std::isnan(real(std::nan(""), "<f8").values<float>()[0]));
  CHECK(real(-9223372036854775808.0, "<f8").values<std::int64_t>()[0] == std::numeric_limits<std::int64_t>::min());

  CHECK_THROWS_WITH_AS(static_cast<void>(whole(-1, "<u8").values<std::int64_t>()),
                       "a[0]: 18446744073709551615 is too large; at most 9223372036854775807 is allowed",
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(
                           NpyArray("a", npy<double>({2, 2}, {1, 2, 3, 0.5})).values<std::int64_t>()),
                       "a[1, 1]: 0.5 is not a whole number of 64 bits", std::runtime_error);
  for (const double v : {infinity, -infinity, std::nan(""), 9223372036854775808.0, 1e300}) {
    CHECK_THROWS_AS(static_cast<void>(real(v, "<f8").values<std::int64_t>()), std::runtime_error);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(real(1e39, "<f8").values<float>()),
                       "a[0]: 1e+39 is too large for single precision", std::runtime_error);

  // Half precision: smallest subnormal, largest, infinity, negative zero.
  const std::string header = "{'descr': '<f2', 'fortran_order': False, 'shape': (4,)}";
  const std::vector<double> half =
      NpyArray("a", test::npy_with_header(header, {1, 0, 0xFF, 0x7B, 0, 0xFC, 0, 0x80})).values<double>();
  CHECK(half[0] == std::ldexp(1.0, -24));
  CHECK(half[1] == 65504);
  CHECK(half[2] == -infinity);
  CHECK(half[3] == 0);
  CHECK(std::signbit(half[3]));
}

TEST_CASE("npy: headers that are refused") {
  const auto message = [](const std::string& header, std::size_t bytes = 8) {
    try {
      NpyArray("a", test::npy_with_header(header, Bytes(bytes)));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string f8 = "'descr': '<f8', 'fortran_order': False, ";
  CHECK(message("{" + f8 + "'shape': (1,)}") == "no error");
  CHECK(message("{'shape': (1,), \"descr\": \"<f8\", 'fortran_order': False}") == "no error");
  CHECK(message("{" + f8 + "'shape': (2,)}") == "a: its shape and type need 16 bytes of data, but 8 are there");
  CHECK(message("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") ==
        "a: holds Python objects (dtype object); save it as an array of numbers");
  CHECK(message("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1,)}") ==
        "a: is a structured array; only plain numeric arrays are supported");
  for (const std::string type : {"<U2", "|S8", "<c8", "<M8[s]", "<f16", "<i3", "", "<", "f", "<f88"}) {
    CAPTURE(type);
    CHECK(message("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,)}").find("has element type") !=
          std::string::npos);
  }
  CHECK(message("{" + f8 + "'shape': (4611686018427387904, 4)}") ==
        "a: has an impossible shape; its size overflows");
  CHECK(message("{" + f8 + "'shape': (4611686018427387904, 4611686018427387904, 0)}", 0) ==
        "a: has an impossible shape; its size overflows");
  CHECK(message("{" + f8 + "'shape': (2305843009213693952,)}").find("overflows") != std::string::npos);
  CHECK(message("{" + f8 + "'shape': (99999999999999999999,)}").find("damaged") != std::string::npos);
  for (const std::string& header :
       std::vector<std::string>{"", "{", "{}", "{" + f8 + "}", "{" + f8 + "'shape': (1,)",
                                "{" + f8 + "'shape': (-1,)}", "{" + f8 + "'shape': 1}",
                                "{" + f8 + "'shape': (1 2)}", "{" + f8 + "'shape': (1,)} x",
                                "{" + f8 + "'shape': (1,), 'shape': (1,)}", "{" + f8 + "'shape': (1,), 'more': 1}",
                                "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,)}"}) {
    CAPTURE(header);
    CHECK(message(header).find("its .npy header is damaged") != std::string::npos);
  }
  Bytes bytes = npy<double>({1}, {1});
  bytes[6] = 9;
  CHECK_THROWS_WITH_AS(NpyArray("a", bytes), "a: has .npy format version 9; 1 to 3 are supported",
                       std::runtime_error);
  bytes[0] = 0;
  CHECK_THROWS_WITH_AS(NpyArray("a", bytes), "a: is not a .npy array; its magic number is missing",
                       std::runtime_error);
}

TEST_CASE("zip: stored, deflated, zip64 and with a comment") {
  Bytes content(200000);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<unsigned char>(i * i >> 7);
  for (const bool deflate : {false, true}) {
    for (const bool local : {false, true}) {
      for (const bool central : {false, true}) {
        ZipWriter writer({.deflate = deflate, .zip64_local = local, .zip64_central = central});
        writer.add("first", content).add("second", {}).add("third", {1, 2, 3});
        const ZipArchive zip("z", writer.finish("a comment"));
        REQUIRE(zip.entries().size() == 3);
        CHECK(zip.read(zip.entries()[0]) == content);
        CHECK(zip.read(zip.entries()[1]).empty());
        CHECK(zip.read(*zip.find("third")) == Bytes{1, 2, 3});
        CHECK(zip.find("fourth") == nullptr);
      }
    }
  }
}

TEST_CASE("zip: what is refused says why") {
  const auto message = [](const Bytes& bytes) {
    try {
      const ZipArchive zip("z", bytes);
      for (const io::ZipEntry& entry : zip.entries()) static_cast<void>(zip.read(entry));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const Bytes text = {'t', 'e', 'x', 't'};
  CHECK(message({}) == "z: is not a zip archive");
  CHECK(message(Bytes(100, 'x')) == "z: is not a zip archive");
  CHECK(message(ZipWriter({.flags = 1}).add("a", text).finish()) ==
        "z: entry 'a': is encrypted, which is not supported");
  CHECK(message(ZipWriter({.method = 12}).add("a", text).finish()) ==
        "z: entry 'a': uses compression method 12; only 0 (stored) and 8 (deflated) are supported");
  CHECK(message(ZipWriter().add("a", text).add("a", text).finish()) ==
        "z: zip directory entry 1: repeats the name 'a'");
  CHECK(message(ZipWriter().add_raw("a", text, 4, 7).finish()).find("is corrupt; its CRC-32 is") !=
        std::string::npos);
  CHECK(message(ZipWriter().add_raw("a", text, 5, 7).finish()) ==
        "z: entry 'a': is stored, yet its sizes differ: 4 and 5");
  CHECK(message(ZipWriter({.deflate = true}).add_raw("a", text, 4129, 7).finish()).find("is corrupt") !=
        std::string::npos);
  // A promise of 10¹⁵ bytes must be refused before memory is allocated.
  CHECK(
      message(
          ZipWriter({.deflate = true, .zip64_central = true}).add_raw("a", text, 1000000000000000u, 7).finish()) ==
      "z: entry 'a': claims that 4 bytes expand to 1000000000000000, more than deflate can");
  // A deflated stream that gives more or less than promised.
  const Bytes packed = ZipWriter::deflated(Bytes(1000, 'a'));
  for (const std::uint64_t size : {999u, 1001u}) {
    CHECK(message(ZipWriter({.deflate = true}).add_raw("a", packed, size, 7).finish()).find("is corrupt") !=
          std::string::npos);
  }
  Bytes trailing = packed;
  trailing.push_back(0);
  CHECK(message(ZipWriter({.deflate = true}).add_raw("a", trailing, 1000, 7).finish()).find("is corrupt") !=
        std::string::npos);
  // An entry count that the directory has no room for.
  Bytes many = ZipWriter().add("a", text).finish();
  many[many.size() - 14] = many[many.size() - 12] = 200;
  CHECK(message(many).find("the zip directory (200 entries") != std::string::npos);
}

TEST_CASE("npz: keys") {
  const NpzArchive archive("t.npz", archive_of(small_arrays()));
  CHECK(archive.names() == std::vector<std::string>{"edges", "node_features", "node_labels", "test_masks",
                                                    "train_masks", "val_masks"});
  CHECK(archive.contains("edges"));
  CHECK_FALSE(archive.contains("edge"));
  CHECK_THROWS_WITH_AS(static_cast<void>(archive.array("adjacency")),
                       "t.npz: key 'adjacency' is missing; the file has edges, node_features, node_labels, "
                       "test_masks, train_masks, val_masks",
                       std::runtime_error);
  const NpzArchive empty("t.npz", ZipWriter().finish());
  CHECK_THROWS_WITH_AS(static_cast<void>(empty.array("a")), "t.npz: key 'a' is missing; the file has no array",
                       std::runtime_error);
}

TEST_CASE("load_npz: every accepted layout gives the same dataset") {
  for (const bool deflate : {false, true}) {
    for (const bool zip64 : {false, true}) {
      check_small(load(archive_of(small_arrays(), {.deflate = deflate, .zip64_local = zip64})));
    }
  }
  for (const bool fortran : {false, true}) {
    for (const char* type : {"<i2", ">i4", "<u8", "<f4", "<f2", ">f8"}) {
      const test::NpyLayout layout{type, fortran};
      Arrays arrays = small_arrays();
      arrays["node_features"] = npy<int>({4, 2}, {1, 0, 0, 2, 0, 0, 3, 4}, layout);
      arrays["node_labels"] = npy<int>({4, 1}, {0, 1, 2, 1}, layout);
      arrays["edges"] = npy<int>({2, 3}, {0, 1, 2, 1, 2, 3}, layout);
      arrays["train_masks"] = npy<int>({4, 2}, {1, 0, 1, 0, 0, 1, 0, 1}, layout);
      check_small(load(archive_of(arrays)));
      arrays["edges"] = npy<int>({5, 2}, {1, 0, 1, 2, 3, 3, 3, 2, 0, 1}, layout);
      const Dataset data = load(archive_of(arrays));
      check_small(data);
      CHECK(data.graph.dropped_self_loops() == 1);
      CHECK(data.graph.merged_duplicates() == 1);
      for (const Index arc : {0, 1, 2, 5}) CHECK(data.graph.listed(arc));  // 0→1, 1→0, 1→2, 3→2
      for (const Index arc : {3, 4}) CHECK_FALSE(data.graph.listed(arc));
    }
  }
  // A single split may be a vector.
  Arrays arrays = small_arrays();
  arrays["train_masks"] = npy<int>({4}, {1, 1, 0, 0}, {"|b1"});
  arrays["val_masks"] = npy<int>({4}, {0, 0, 1, 0}, {"|u1"});
  arrays["test_masks"] = npy<int>({1, 4}, {0, 0, 0, 1}, {"<i8"});
  CHECK(load(archive_of(arrays)).splits.size() == 1);
}

TEST_CASE("load_npz: NaN among features is a missing value with an indicator") {
  const sheafnn::NodeFeatures features =
      load(archive_with("node_features", npy<double>({4, 2}, {1, 0, 0, std::nan(""), 0, 0, 3, 4}))).features;
  REQUIRE(features.columns() == 3);
  REQUIRE(features.indicators().size() == 1);
  CHECK(features.indicators()[0] == 1);
  CHECK(std::ranges::equal(features.offsets(), std::vector<sheafnn::Index>{0, 1, 2, 2, 4}));
  CHECK(std::ranges::equal(features.column_of(), std::vector<std::int32_t>{0, 2, 0, 1}));
  CHECK(std::ranges::equal(features.values(), std::vector<double>{1, 1, 3, 4}));
}

TEST_CASE("load_npz: bad content is named with file, key, index, value and limit") {
  for (const auto& [key, content] : small_arrays()) {
    Arrays arrays = small_arrays();
    arrays.erase(key);
    if (key == "val_masks" || key == "test_masks") continue;  // not needed
    CHECK(error_of([&] { load(archive_of(arrays)); }).find("key '" + key + "' is missing") != std::string::npos);
  }
  const double nan = std::nan("");
  CHECK_MESSAGE_IS(archive_with("node_features",
                                npy<double>({4, 2}, {1, 0, 0, 2, std::numeric_limits<double>::infinity(), 0, 3, 4},
                                            {"<f4"})),
                   "t.npz: node_features: features[2, 0]: inf is not allowed; features must be finite");
  CHECK_MESSAGE_IS(archive_with("node_features", npy<double>({0, 2}, {})),
                   "t.npz: node_features: has shape (0, 2); the graph is empty");
  CHECK_MESSAGE_IS(archive_with("node_features", npy<double>({4, 0}, {})),
                   "t.npz: node_features: has shape (4, 0); at least one feature is needed");
  CHECK_MESSAGE_IS(archive_with("node_features", npy<double>({8}, std::vector<double>(8))),
                   "t.npz: node_features: has shape (8,); expected nodes x features");
  CHECK_MESSAGE_IS(archive_with("node_labels", npy<int>({3}, {0, 1, 2}, {"<i8"})),
                   "t.npz: node_labels: has shape (3,); expected one label for each of the 4 nodes");
  CHECK_MESSAGE_IS(archive_with("node_labels", npy<int>({2, 2}, {0, 1, 2, 0}, {"<i8"})),
                   "t.npz: node_labels: has shape (2, 2); expected one label for each of the 4 nodes");
  CHECK_MESSAGE_IS(
      archive_with("node_labels", npy<int>({4}, {0, 1, -2, 0}, {"<i8"})),
      "t.npz: node_labels[2]: label -2 is not allowed; numbers must be at least 0, or -1 where unknown "
      "(missing_labels: other words for unknown labels)");
  CHECK(load(archive_with("node_labels", npy<double>({4}, {0, 1, nan, 0}))).labels ==
        std::vector<std::int32_t>{0, 1, -1, 0});
  CHECK_MESSAGE_IS(archive_with("node_labels", npy<int>({4}, {-1, 1, 1, -1}, {"<i8"})),
                   "t.npz: class_count: 1 is not allowed; at least two classes are needed (-1 means an unknown "
                   "label: of the labels -1 and 1, write 0 for -1)");
  CHECK_MESSAGE_IS(archive_with("node_labels", npy<int>({4}, {0, 0, 0, 0}, {"<i8"})),
                   "t.npz: class_count: 1 is not allowed; at least two classes are needed");
  CHECK_MESSAGE_IS(archive_with("edges", npy<int>({2, 2}, {0, 1, 1, 4}, {"<i8"})),
                   "t.npz: edges: edge 1 has end 4; node numbers must be between 0 and 3");
  CHECK_MESSAGE_IS(archive_with("edges", npy<int>({2, 2}, {0, 1, -1, 2}, {"<i8"})),
                   "t.npz: edges: edge 1 has end -1; node numbers must be between 0 and 3");
  CHECK_MESSAGE_IS(archive_with("edges", npy<std::int64_t>({1, 2}, {0, 4294967297}, {"<i8"})),
                   "t.npz: edges: edge 0 has end 4294967297; node numbers must be between 0 and 3");
  CHECK_MESSAGE_IS(archive_with("edges", npy<int>({2, 2}, {0, 1, 1, 0}, {"|b1"})),
                   "t.npz: edges: holds truth values; whole numbers are needed");
  CHECK_MESSAGE_IS(archive_with("edges", npy<int>({2, 3, 1}, {0, 1, 2, 1, 2, 3}, {"<i8"})),
                   "t.npz: edges: has shape (2, 3, 1); expected edges x 2");
  CHECK_MESSAGE_IS(archive_with("edges", npy<int>({0, 2}, {}, {"<i8"})),
                   "t.npz: edges: the graph has no edge between different nodes");
  CHECK_MESSAGE_IS(archive_with("edges", npy<int>({1, 2}, {2, 2}, {"<i8"})),
                   "t.npz: edges: the graph has no edge between different nodes");
  CHECK_MESSAGE_IS(archive_with("val_masks", npy<int>({2, 4}, {0, 1, 1, 0, 1, 0, 0, 0}, {"|b1"})),
                   "t.npz: train_masks and val_masks overlap: both hold node 1 in split 0");
  CHECK_MESSAGE_IS(archive_with("train_masks", npy<int>({2, 4}, {1, 1, 0, 0, 0, 0, 0, 0}, {"|b1"})),
                   "t.npz: train_masks: split 1 selects no node; at least one is needed");
  CHECK_MESSAGE_IS(archive_with("test_masks", npy<int>({2, 4}, {0, 0, 0, 1, 0, 2, 0, 0}, {"|u1"})),
                   "t.npz: test_masks: split 1, node 1 has value 2; a mask holds 0 and 1 only");
  CHECK_MESSAGE_IS(archive_with("test_masks", npy<int>({1, 4}, {0, 0, 0, 1}, {"|b1"})),
                   "t.npz: test_masks has 1 splits, train_masks has 2");
  CHECK_MESSAGE_IS(archive_with("test_masks", npy<int>({2, 3}, {0, 0, 0, 1, 0, 2}, {"|b1"})),
                   "t.npz: test_masks: has shape (2, 3); masks need one row of length 4 per split");
  CHECK_MESSAGE_IS(archive_with("test_masks", npy<int>({0, 4}, {}, {"|b1"})),
                   "t.npz: test_masks: has shape (0, 4); at least one split is needed");
  CHECK_MESSAGE_IS(archive_with("test_masks", npy<double>({2, 4}, {0, 0, 0, 1, 0, nan, 0, 0})),
                   "t.npz: test_masks: split 1, node 1 has value nan; a mask holds 0 and 1 only");
  CHECK_MESSAGE_IS(archive_with("test_masks", npy<int>({2, 4}, {0, 0, 0, 1, 0, 2, 0, 0}, {"|b1"})),
                   "t.npz: test_masks[1, 1]: 2 is not a truth value, which is 0 or 1");
  const Bytes object = test::npy_with_header("{'descr': '|O', 'fortran_order': False, 'shape': (4,), }",
                                             {'p', 'i', 'c', 'k', 'l', 'e'});
  CHECK_MESSAGE_IS(archive_with("node_labels", object),
                   "t.npz: node_labels: holds Python objects (dtype object); save it as an array of numbers");
}

TEST_CASE("arrays that do not fit into memory are refused before they are allocated") {
  const ZipArchive zip("t.npz", archive_of(small_arrays(), {.deflate = true}));
  const io::ZipEntry& entry = *zip.find("edges.npy");
  CHECK(
      error_of([&] { static_cast<void>(zip.read(entry, 100)); }).starts_with("t.npz: entry 'edges.npy': needs "));
  CHECK_NOTHROW(static_cast<void>(zip.read(entry, static_cast<double>(entry.size))));
  const NpyArray masks =
      NpzArchive("t.npz", archive_of(small_arrays())).array("val_masks");  // 8 values of one byte
  CHECK(error_of([&] { static_cast<void>(masks.values<std::int64_t>(63)); }) ==
        "t.npz: val_masks: needs 64 bytes of memory; there are 63 bytes");
  CHECK(masks.values<std::int64_t>(64).size() == 8);
  // A file larger than the memory, all of it a hole.
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("hole.npz", "");
  std::error_code unsupported;
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(2 * memory_limit()), unsupported);
  if (!unsupported) {
    const std::string message = path.string() + ": needs " + memory_text(2 * memory_limit()) +
                                " of memory; there are " + memory_text(memory_limit());
    CHECK_THROWS_WITH_AS(static_cast<void>(io::read_file(path)), message.c_str(), std::runtime_error);
  }
}

TEST_CASE("load_npz: validation and test masks may be missing or select no node") {
  Arrays arrays = small_arrays();
  arrays["test_masks"] = npy<int>({2, 4}, {0, 0, 0, 1, 0, 0, 0, 0}, {"|b1"});
  Dataset data = load(archive_of(arrays));
  CHECK(data.splits[0].test == std::vector<std::int32_t>{3});
  CHECK(data.splits[1].test.empty());
  CHECK(data.splits[1].validation == std::vector<std::int32_t>{0});
  arrays.erase("test_masks");
  data = load(archive_of(arrays));
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[0].test.empty());
  CHECK(data.splits[0].validation == std::vector<std::int32_t>{2});
  arrays.erase("val_masks");
  data = load(archive_of(arrays));
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[1].train == std::vector<std::int32_t>{2, 3});
  CHECK(data.splits[1].validation.empty());
  CHECK(data.splits[1].test.empty());
  arrays["test_masks"] = small_arrays()["test_masks"];
  CHECK(load(archive_of(arrays)).splits[1].test == std::vector<std::int32_t>{1});
  CHECK(load(archive_of(arrays)).splits[1].validation.empty());
}

TEST_CASE("load_npz: keys as people spell them") {
  const Arrays small = small_arrays();
  const auto renamed = [&](const std::string& train, const std::string& val, const std::string& test) {
    Arrays arrays = {{"x", small.at("node_features")}, {"Y", small.at("node_labels")}};
    arrays["edge_index"] = npy<int>({2, 3}, {0, 1, 2, 1, 2, 3}, {"<i8"});
    arrays[train] = small.at("train_masks");
    arrays[val] = small.at("val_masks");
    arrays[test] = small.at("test_masks");
    return arrays;
  };
  check_small(load(archive_of(renamed("train_mask", "val_mask", "test_mask"))));
  check_small(load(archive_of(renamed("trainMask", "valid_mask", "TEST_MASK"))));
  check_small(load(archive_of(renamed("mask_train", "validation_masks", "test"))));
  check_small(load(archive_of(renamed("training_masks", "dev-mask", "idx_test"))));
  // As PyTorch Geometric has them: n x S.
  Arrays arrays = renamed("train_mask", "val_mask", "test_mask");
  arrays["train_mask"] = npy<int>({4, 2}, {1, 0, 1, 0, 0, 1, 0, 1}, {"|b1"});
  arrays["val_mask"] = npy<double>({4, 2}, {0, 1, 0, 0, 1, 0, 0, 0});
  check_small(load(archive_of(arrays)));
  // Node numbers; a set in one row holds for all splits.
  arrays = renamed("train_masks", "val_masks", "test_mask");
  for (const char* key : {"train_masks", "val_masks", "test_mask"}) arrays.erase(key);
  arrays["idx_train"] = npy<int>({2}, {2, 0}, {"<i8"});
  arrays["val_indices"] = npy<int>({1}, {1}, {"<i4"});
  arrays["test_idx"] = npy<int>({1, 1}, {3}, {"<i4"});
  Dataset data = load(archive_of(arrays));
  REQUIRE(data.splits.size() == 1);
  CHECK(data.splits[0].train == std::vector<std::int32_t>{0, 2});
  CHECK(data.splits[0].validation == std::vector<std::int32_t>{1});
  CHECK(data.splits[0].test == std::vector<std::int32_t>{3});
  arrays.erase("idx_train");
  arrays["train_mask"] = npy<int>({2, 4}, {1, 0, 0, 0, 1, 0, 1, 0}, {"|u1"});
  arrays["test_idx"] = npy<int>({1}, {3}, {"<i4"});
  data = load(archive_of(arrays));
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[1].train == std::vector<std::int32_t>{0, 2});
  CHECK(data.splits[1].test == std::vector<std::int32_t>{3});
  arrays["test_idx"] = npy<int>({2}, {3, 3}, {"<i4"});
  CHECK_MESSAGE_IS(archive_of(arrays), "t.npz: test_idx: holds node 3 twice");
  arrays["test_idx"] = npy<int>({1}, {4}, {"<i4"});
  CHECK_MESSAGE_IS(archive_of(arrays), "t.npz: test_idx: holds node 4; node numbers must be between 0 and 3");
  arrays["test_idx"] = npy<int>({2, 2}, {0, 1, 2, 3}, {"<i4"});
  CHECK_MESSAGE_IS(archive_of(arrays),
                   "t.npz: test_idx: has shape (2, 2); expected the node numbers of one split, or masks");
  // As many splits as nodes: rows of train_masks are splits, rows of train_mask could be either.
  const std::vector<int> lower = {1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  arrays = renamed("train_masks", "val_masks", "test_masks");
  arrays.erase("val_masks");
  arrays.erase("test_masks");
  arrays["train_masks"] = npy<int>({4, 4}, lower, {"|b1"});
  CHECK(load(archive_of(arrays)).splits[1].train == std::vector<std::int32_t>{0, 1});
  arrays.erase("train_masks");
  arrays["train_mask"] = npy<int>({4, 4}, lower, {"|b1"});
  CHECK(error_of([&] {
          load(archive_of(arrays));
        }).starts_with("t.npz: train_mask: has shape (4, 4); rows could be splits or nodes"));
}

TEST_CASE("load_npz: no key of a split is passed over") {
  for (const char* key :
       {"masks", "other_masks", "train_mask2", "train_mask_0", "stopping_mask", "splits", "split_0", "fold",
        "y_train", "x-test", "label_mask", "unlabeled_mask", "test_idx_1", "kfolds", "subset", "Partition"}) {
    CAPTURE(key);
    const Bytes bytes = archive_with(key, npy<int>({1}, {5}, {"<i8"}));
    CHECK(error_of([&] {
            load(bytes);
          }).starts_with(std::string("t.npz: key '") + key + "' is not a known set of a split"));
    const NpzArchive archive("t.npz", bytes);
    CHECK_NOTHROW(static_cast<void>(io::detail::read_dataset(archive, "t", DatasetUse::own_splits)));
    CHECK_NOTHROW(static_cast<void>(io::detail::read_dataset(archive, "t", DatasetUse::prediction)));
  }
  for (const char* key : {"train_mask", "train_idx", "valid_masks", "test"}) {
    CAPTURE(key);
    CHECK(error_of([&] {
            load(archive_with(key, npy<int>({1}, {5}, {"<i8"})));
          }).find("; only one can be meant") != std::string::npos);
  }
  for (const char* key : {"x", "Labels", "edge_index", "adj"}) {
    CAPTURE(key);
    CHECK(error_of([&] {
            load(archive_with(key, npy<int>({1}, {5}, {"<i8"})));
          }).find("; only one can be meant") != std::string::npos);
  }
  check_small(load(archive_with("extra", npy<int>({1}, {5}, {"<i8"}))));
  check_small(load(archive_with("edge_weight", npy<double>({3}, {1, 1, 1}))));
  CHECK_MESSAGE_IS(
      archive_with("edge_weight", npy<double>({3}, {1, 0.5, 1})),
      "t.npz: edge_weight: differs from edge to edge; edges have no weights or other attributes here: "
      "remove the key");
}

TEST_CASE("load_npz: attributes of edges are compared edge by edge") {
  const std::string refused =
      "t.npz: edge_attr: differs from edge to edge; edges have no weights or other attributes here: remove the "
      "key";
  check_small(load(archive_with("edge_attr", npy<double>({3, 2}, {1, 0, 1, 0, 1, 0}))));
  check_small(load(archive_with("edge_attr", npy<double>({3, 1}, {2, 2, 2}))));
  check_small(load(archive_with("edge_attr", npy<double>({1, 3}, {2, 2, 2}))));
  CHECK_MESSAGE_IS(archive_with("edge_attr", npy<double>({3, 2}, {1, 0, 1, 0, 0, 1})), refused.c_str());
  CHECK_MESSAGE_IS(archive_with("edge_attr", npy<double>({1, 3}, {1, 2, 3})), refused.c_str());
  CHECK_MESSAGE_IS(archive_with("edge_attr", npy<double>({2, 3}, {1, 2, 3, 1, 2, 3})), refused.c_str());
  Arrays arrays = small_arrays();
  arrays.erase("edges");
  arrays["adj"] = npy<int>({4, 4}, {0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0}, {"|u1"});  // with a self-loop
  arrays["edge_attr"] = npy<double>({7, 2}, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
  CHECK(load(archive_of(arrays)).graph.edge_count() == 3);
}

TEST_CASE("load_npz: under the key of a matrix, node numbers are edges and other shapes are refused") {
  const auto with = [](const Bytes& adj) {
    Arrays arrays = small_arrays();
    arrays.erase("edges");
    arrays["adj"] = adj;
    return archive_of(arrays);
  };
  check_small(load(with(npy<int>({3, 2}, {0, 1, 1, 2, 2, 3}, {"<i8"}))));
  check_small(load(with(npy<int>({2, 3}, {0, 1, 2, 1, 2, 3}, {"<i8"}))));
  check_small(load(with(npy<double>({4, 2}, {0, 1, 1, 2, 2, 3, 1, 0}))));
  const auto message = [](int rows, int columns) {
    return "t.npz: adj is a matrix of " + std::to_string(rows) + " x " + std::to_string(columns) +
           "; the graph has 4 nodes";
  };
  CHECK_MESSAGE_IS(with(npy<int>({4, 2}, {0, 1, 1, 0, 0, 1, 1, 0}, {"<i8"})),
                   message(4, 2).c_str());  // could be either
  CHECK_MESSAGE_IS(with(npy<int>({2, 4}, {0, 1, 1, 0, 0, 1, 1, 0}, {"<i8"})), message(2, 4).c_str());
  CHECK_MESSAGE_IS(with(npy<int>({2, 2}, {0, 1, 2, 3}, {"<i8"})), message(2, 2).c_str());
  CHECK_MESSAGE_IS(with(npy<double>({3, 2}, {0, 1, 1, 0.5, 1, 1})), message(3, 2).c_str());
  CHECK_MESSAGE_IS(with(npy<int>({3, 2}, {0, 1, 1, 4, 1, 1}, {"<i8"})), message(3, 2).c_str());
  CHECK_MESSAGE_IS(with(npy<int>({4, 3}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1}, {"|u1"})), message(4, 3).c_str());
  CHECK_MESSAGE_IS(with(npy<int>({4, 1}, {0, 1, 1, 1}, {"|u1"})), message(4, 1).c_str());
}

TEST_CASE("load_npz: the parts of a sparse matrix in capitals") {
  Arrays arrays = small_arrays();
  for (const char* key : {"edges", "node_features"}) arrays.erase(key);
  arrays["ADJ_DATA"] = npy<double>({3}, {1, 1, 1}, {"<f4"});
  arrays["ADJ_INDICES"] = npy<int>({3}, {1, 2, 3}, {"<i4"});
  arrays["adjIndptr"] = npy<int>({5}, {0, 1, 2, 3, 3}, {"<i4"});
  arrays["ATTR_DATA"] = npy<double>({4}, {1, 2, 3, 4});
  arrays["ATTR_INDICES"] = npy<int>({4}, {0, 1, 0, 1}, {"<i4"});
  arrays["ATTR_INDPTR"] = npy<int>({5}, {0, 1, 2, 2, 4}, {"<i4"});
  check_small(load(archive_of(arrays)));
  arrays["ATTR_SHAPE"] = npy<int>({2}, {4, 1}, {"<i8"});
  CHECK_MESSAGE_IS(archive_of(arrays),
                   "t.npz: ATTR_INDICES: holds column 1 at 1; columns are numbered from 0, and there are 1");
  arrays["ATTR_SHAPE"] = npy<int>({2}, {3, 2}, {"<i8"});
  CHECK_MESSAGE_IS(
      archive_of(arrays),
      "t.npz: ATTR_SHAPE: must be the 4 rows of ATTR_INDPTR and the number of columns, at most 2147483647");
  arrays["ATTR_SHAPE"] = npy<int>({2}, {4, -2}, {"<i8"});
  CHECK_MESSAGE_IS(
      archive_of(arrays),
      "t.npz: ATTR_SHAPE: must be the 4 rows of ATTR_INDPTR and the number of columns, at most 2147483647");
  for (const char* key : {"ATTR_INDICES", "adjIndptr"}) {
    Arrays truth = arrays;
    truth.erase("ATTR_SHAPE");
    truth[key] = npy<int>({4}, {0, 1, 0, 1}, {"|b1"});
    CHECK_MESSAGE_IS(archive_of(truth),
                     (std::string("t.npz: ") + key + ": holds truth values; whole numbers are needed").c_str());
  }
  arrays["attr_indptr"] = arrays["ATTR_INDPTR"];
  CHECK(error_of([&] { load(archive_of(arrays)); }).find("; only one can be meant") != std::string::npos);
}

TEST_CASE("load_npz: sparse features and adjacency matrices") {
  for (const std::string stem : {"adj_", "adj_matrix."}) {
    Arrays arrays = small_arrays();
    for (const char* key : {"edges", "node_features"}) arrays.erase(key);
    arrays[stem + "data"] = npy<double>({6}, {1, 1, 1, 1, 1, 1}, {"<f4"});
    arrays[stem + "indices"] = npy<int>({6}, {1, 2, 0, 1, 3, 2}, {"<i4"});
    arrays[stem + "indptr"] = npy<int>({5}, {0, 1, 3, 5, 6}, {"<i4"});
    arrays[stem + "shape"] = npy<int>({2}, {4, 4}, {"<i8"});
    arrays["attr_data"] = npy<double>({5}, {1, 2, 4, 3, 0});
    arrays["attr_indices"] = npy<int>({5}, {0, 1, 1, 0, 1}, {"<i4"});
    arrays["attr_indptr"] = npy<int>({5}, {0, 1, 2, 2, 4}, {"<i4"});
    CHECK(error_of([&] {
            load(archive_of(arrays));
          }).starts_with("t.npz: attr_indptr: does not fit the 5 values and 5 column numbers"));
    arrays["attr_indptr"] = npy<int>({5}, {0, 1, 2, 2, 5}, {"<i4"});
    CHECK(error_of([&] { load(archive_of(arrays)); }) == "");
    arrays["attr_shape"] = npy<int>({2}, {4, 2}, {"<i8"});
    check_small(load(archive_of(arrays)));
    arrays["attr_shape"] = npy<int>({2}, {4, 1}, {"<i8"});
    CHECK_MESSAGE_IS(archive_of(arrays),
                     "t.npz: attr_indices: holds column 1 at 1; columns are numbered from 0, and there are 1");
    arrays.erase("attr_shape");
    arrays["attr_indices"] = npy<int>({5}, {0, 1, 1, 1, 1}, {"<i4"});
    CHECK(error_of([&] {
            load(archive_of(arrays));
          }).starts_with("t.npz: attr_data: features[3]: column 1 with value"));
    arrays["attr_indices"] = npy<int>({5}, {0, 1, 1, 0, 1}, {"<i4"});
    arrays[stem + "data"] = npy<double>({6}, {1, 1, 2, 1, 1, 1}, {"<f4"});
    CHECK(error_of([&] { load(archive_of(arrays)); }) ==
          "t.npz: " + stem + "data has entries 1 and 2; edges have no weights here: save the value 1");
    arrays.erase(stem + "indices");
    CHECK(error_of([&] { load(archive_of(arrays)); }).find("key '" + stem + "indices' is missing") !=
          std::string::npos);
  }
  Arrays arrays = small_arrays();
  arrays.erase("edges");
  arrays["adj"] = npy<int>({4, 4}, {0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0}, {"|u1"});
  check_small(load(archive_of(arrays)));
  arrays["adj"] = npy<int>({3, 4}, {0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1}, {"|u1"});
  CHECK_MESSAGE_IS(archive_of(arrays), "t.npz: adj is a matrix of 3 x 4; the graph has 4 nodes");
  // Two edges: columns of edge_index are edges, rows of edges are.
  arrays.erase("adj");
  arrays["edge_index"] = npy<int>({2, 2}, {0, 1, 2, 3}, {"<i8"});
  Dataset data = load(archive_of(arrays));
  CHECK(std::vector<Edge>(data.graph.edges().begin(), data.graph.edges().end()) ==
        std::vector<Edge>{{0, 2}, {1, 3}});
}

TEST_CASE("load_npz: labels by the rule for labels") {
  const auto labels_of = [](const Bytes& labels, const MissingLabels& missing = {}) {
    const Dataset data = io::detail::read_dataset(NpzArchive("t.npz", archive_with("node_labels", labels)), "t",
                                                  DatasetUse::training, missing);
    return std::pair(data.class_names, data.labels);
  };
  using Names = std::vector<std::string>;
  using Labels = std::vector<std::int32_t>;
  const double nan = std::nan("");
  CHECK(labels_of(npy<int>({4}, {3, 7, 3, -1}, {"<i8"})) == std::pair(Names{"3", "7"}, Labels{0, 1, 0, -1}));
  CHECK(labels_of(npy<double>({4}, {1, 0, 2, -1})) == std::pair(Names{}, Labels{1, 0, 2, -1}));
  CHECK(labels_of(npy<double>({4}, {0.1, 0.25, 0.1, -1}, {"<f4"})) ==
        std::pair(Names{"0.1", "0.25"}, Labels{0, 1, 0, -1}));
  CHECK(labels_of(npy<double>({4}, {1, std::copysign(nan, -1.0), 0, 1}), Names{"x"}) ==
        std::pair(Names{}, Labels{1, -1, 0, 1}));
  CHECK(labels_of(npy<double>({4}, {1, nan, 0, 1}), Names{"nan"}) == std::pair(Names{}, Labels{1, -1, 0, 1}));
  CHECK(labels_of(npy<int>({4}, {1, -9, 0, 1}, {"<i2"}), Names{"-9"}) == std::pair(Names{}, Labels{1, -1, 0, 1}));
  // Texts of both orders of bytes, and bytes.
  const auto texts = [](const std::string& type, const std::vector<std::string>& rows) {
    Bytes data;
    for (const std::string& row : rows) {
      for (std::size_t k = 0; k < 2; ++k) {
        const unsigned char c = k < row.size() ? static_cast<unsigned char>(row[k]) : 0;
        const std::vector<unsigned char> wide = {0, 0, 0, c};
        if (type[1] == 'S') data.push_back(c);
        if (type == ">U2") data.insert(data.end(), wide.begin(), wide.end());
        if (type == "<U2") data.insert(data.end(), wide.rbegin(), wide.rend());
      }
    }
    return test::npy_with_header("{'descr': '" + type + "', 'fortran_order': False, 'shape': (4,), }", data);
  };
  for (const char* type : {"<U2", ">U2", "|S2"}) {
    CHECK(labels_of(texts(type, {"b", "", "a", "b"})) == std::pair(Names{"a", "b"}, Labels{1, -1, 0, 1}));
    CHECK(error_of([&] {
            static_cast<void>(labels_of(texts(type, {"b", "NA", "a", "b"})));
          }).starts_with("t.npz: node_labels[1]: label 'NA' is not allowed; it usually means a missing value"));
    CHECK(error_of([&] {
            static_cast<void>(labels_of(texts(type, {"b", "a", "a"})));
          }).starts_with("t.npz: node_labels: its type '"));
  }
  CHECK(labels_of(texts("<U2", {"\xE9", "a", "a", "\xE9"})).first == Names{"a", "\xC3\xA9"});
  CHECK(error_of([&] {
          static_cast<void>(labels_of(texts("|S2", {"\xE9", "a", "a", "b"})));
        }) == "t.npz: node_labels: holds '?', which is not UTF-8 text");
}

TEST_CASE("load_npz: without masks there are no splits, without those of training there is an error") {
  const auto loaded = [](const Arrays& arrays, DatasetUse use) {
    return io::detail::read_dataset(NpzArchive("t.npz", archive_of(arrays)), "t", use);
  };
  Arrays arrays = small_arrays();
  CHECK(loaded(arrays, DatasetUse::training).splits.size() == 2);
  CHECK(loaded(arrays, DatasetUse::own_splits).splits.empty());
  arrays.erase("train_masks");
  CHECK(error_of([&] {
          static_cast<void>(loaded(arrays, DatasetUse::training));
        }).starts_with("t.npz: key 'train_masks' is missing"));
  CHECK(loaded(arrays, DatasetUse::own_splits).class_count == 3);
  for (const char* mask : {"val_masks", "test_masks"}) arrays.erase(mask);
  CHECK(loaded(arrays, DatasetUse::training).splits.empty());
  arrays.erase("node_labels");
  for (const DatasetUse use : {DatasetUse::training, DatasetUse::own_splits}) {
    CHECK(error_of([&] { static_cast<void>(loaded(arrays, use)); }).find("key 'node_labels' is missing") !=
          std::string::npos);
  }
}

TEST_CASE("load_npz: for prediction, graph and features are enough") {
  const auto predicted = [](const Arrays& arrays) {
    return io::detail::read_dataset(NpzArchive("t.npz", archive_of(arrays)), "t", sheafnn::DatasetUse::prediction);
  };
  Arrays arrays = small_arrays();
  const Dataset whole = load(archive_of(arrays));
  for (const char* mask : {"train_masks", "val_masks", "test_masks"}) arrays.erase(mask);
  Dataset data = predicted(arrays);
  CHECK(data.labels == whole.labels);
  CHECK(data.class_count == whole.class_count);
  CHECK(data.splits.empty());
  arrays.erase("node_labels");
  data = predicted(arrays);
  CHECK(data.labels.empty());
  CHECK(data.class_count == 0);
  CHECK(data.graph.edge_count() == whole.graph.edge_count());
  CHECK(data.features.entries() == whole.features.entries());
  // What is there must be right.
  arrays["node_labels"] = npy<int>({4}, {0, 1, -2, 0}, {"<i8"});
  CHECK(error_of([&] { static_cast<void>(predicted(arrays)); }) ==
        "t.npz: node_labels[2]: label -2 is not allowed; numbers must be at least 0, or -1 where unknown "
        "(missing_labels: other words for unknown labels)");
  for (const std::string key : {"node_features", "edges"}) {
    Arrays lacking = small_arrays();
    lacking.erase(key);
    CHECK(error_of([&] { static_cast<void>(predicted(lacking)); }).find("key '" + key + "' is missing") !=
          std::string::npos);
  }
}

TEST_CASE("load_npz: targets in place of labels") {
  Arrays arrays = small_arrays();
  arrays.erase("node_labels");
  arrays["price"] = npy<double>({4}, {1.5, std::nan(""), 3, -1}, {"<f8"});
  arrays["y"] = npy<double>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {"<f8"});
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("small.npz", archive_of(arrays, {.deflate = true}));
  const std::vector<std::string> keys = {"y", "price"};
  const Dataset data = io::load_npz(path, DatasetUse::training, {}, keys);
  CHECK(data.target_names == std::vector<std::string>{"y_0", "y_1", "price"});
  CHECK(data.labels.empty());
  CHECK(!data.splits.empty());
  REQUIRE(data.targets.size() == 12);
  CHECK(data.targets[2] == 1.5);
  CHECK(data.targets[3] == 3);
  CHECK(std::isnan(data.targets[5]));
  const std::vector<std::string> none = {"prize"};
  CHECK_NOTHROW(static_cast<void>(io::load_npz(path, DatasetUse::prediction, {}, none)));
  CHECK_THROWS_WITH(static_cast<void>(io::load_npz(path, DatasetUse::training, {}, none)),
                    doctest::Contains("key 'prize' is missing"));
  arrays["price"] = npy<double>({3}, {1.5, 2, 3}, {"<f8"});
  const std::filesystem::path few = folder.write("few.npz", archive_of(arrays, {.deflate = true}));
  CHECK_THROWS_WITH(static_cast<void>(io::load_npz(few, DatasetUse::training, {}, keys)),
                    doctest::Contains("price: has shape (3,); expected numbers of the 4 nodes"));
}

TEST_CASE("load_npz: columns of targets by their names") {
  Arrays arrays = small_arrays();
  arrays["y"] = npy<double>({4, 2}, {1, 2, 3, 4, 5, std::nan(""), 7, 8}, {"<f8"});
  arrays["price"] = npy<double>({4, 1}, {9, 10, 11, 12}, {"<f4"});
  const auto load = [](const Arrays& from, const std::vector<std::string>& keys, DatasetUse use) {
    return io::detail::read_dataset(NpzArchive("t.npz", archive_of(from)), "t", use, {}, keys);
  };
  for (const DatasetUse use : {DatasetUse::training, DatasetUse::prediction}) {
    const Dataset data = load(arrays, {"y_1", "price", "y_0"}, use);
    CHECK(data.target_names == std::vector<std::string>{"y_1", "price", "y_0"});
    const std::vector<double> expected = {2, 9, 1, 4, 10, 3, std::nan(""), 11, 5, 8, 12, 7};
    REQUIRE(data.targets.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK((data.targets[i] == expected[i] || (std::isnan(expected[i]) && std::isnan(data.targets[i]))));
    }
  }
  // Names of no column: unknown in a prediction.
  for (const std::string name : {"y_2", "y_01", "y_", "y_-1", "price_0", "z_0"}) {
    CHECK(std::isnan(load(arrays, {name}, DatasetUse::prediction).targets[0]));
    CHECK(error_of([&] {
            static_cast<void>(load(arrays, {name}, DatasetUse::training));
          }).find("key '" + name + "' is missing") != std::string::npos);
  }
  CHECK(error_of([&] {
          static_cast<void>(load(arrays, {"y", "y_0"}, DatasetUse::training));
        }) == "t.npz: the target 'y_0' is there twice");
  // A key has precedence over a column of its name, and such columns have no name of their own.
  arrays["y_0"] = npy<double>({4}, {-1, -2, -3, -4}, {"<f8"});
  CHECK(load(arrays, {"y_0"}, DatasetUse::prediction).targets == std::vector<double>{-1, -2, -3, -4});
  CHECK(error_of([&] { static_cast<void>(load(arrays, {"y"}, DatasetUse::training)); }) ==
        "t.npz: column 0 of 'y' is called 'y_0', and the file has such a key; rename one of them");
}

TEST_CASE("load_npz: targets of every element type") {
  for (const std::string dtype :
       {"|b1", "|i1", "<i2", ">i4", "<i8", "|u1", "<u2", "<u4", ">u8", "<f2", "<f4", ">f8"}) {
    Arrays arrays = small_arrays();
    arrays["grade"] = npy<int>({4}, {0, 1, 1, 0}, {dtype});
    const std::vector<std::string> keys = {"grade"};
    const Dataset data =
        io::detail::read_dataset(NpzArchive("t.npz", archive_of(arrays)), "t", DatasetUse::training, {}, keys);
    CHECK_MESSAGE((data.targets == std::vector<double>{0, 1, 1, 0}), dtype);
  }
}

TEST_CASE("npy: elements without a header") {
  const auto of = [](const std::string& dtype, const Bytes& bytes) {
    return NpyArray::of_elements("t.npz: x", dtype, bytes);
  };
  CHECK(of("|i1", {0xFF, 0x02}).values<double>() == std::vector<double>{-1, 2});
  CHECK(of("|i1", {0xFF, 0x02}).shape() == std::vector<Index>{2});
  CHECK(of(">u2", {0x01, 0x02}).values<std::int64_t>() == std::vector<std::int64_t>{258});
  CHECK(of("<f4", {0, 0, 0x80, 0x3F}).values<float>() == std::vector<float>{1});
  CHECK(of("<f8", {}).size() == 0);
  CHECK(of("|b1", {1}).whole_numbers());
  CHECK_FALSE(of("<f2", {0, 0}).whole_numbers());
  CHECK(error_of([&] {
          static_cast<void>(of("<i4", {1, 2, 3}));
        }) == "t.npz: x: has 3 bytes; elements of type '<i4' have 4 each");
  CHECK(error_of([&] {
          static_cast<void>(of("<U2", {1, 2, 3}));
        }).find("has element type '<U2'") != std::string::npos);
}

TEST_CASE("load_npz: files") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("small.npz", archive_of(small_arrays(), {.deflate = true}));
  const Dataset data = io::load_npz(path);
  check_small(data);
  CHECK(data.name == "small");
  check_small(io::load_dataset(path.string()));
  CHECK_THROWS_WITH_AS(static_cast<void>(io::load_npz(folder / "none.npz")),
                       ((folder / "none.npz").string() + ": no such file").c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(io::load_npz(folder.path())),
                       (folder.path().string() + ": is a folder, not a file").c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(io::load_dataset("no_such_name")),
                       "no_such_name: no such dataset; choose karate, synthetic, an .npz file, a folder with "
                       "edges.csv and nodes.csv, "
                       "or a Geom-GCN or OGB folder",
                       std::runtime_error);
  CHECK(io::load_dataset("karate").node_count() == 34);
  CHECK(io::load_dataset("synthetic", {.nodes = 50}).node_count() == 50);
}

TEST_CASE("load_npz: a file cut anywhere is refused") {
  for (const bool deflate : {false, true}) {
    const Bytes whole = archive_of(small_arrays(), {.deflate = deflate});
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(size);
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(error_of([&] { load(part); }) != "");
    }
  }
}

TEST_CASE("load_npz: any changed byte of the file is harmless or refused") {
  for (const bool zip64 : {false, true}) {
    for (const bool deflate : {false, true}) {
      const Bytes whole =
          archive_of(small_arrays(), {.deflate = deflate, .zip64_local = zip64, .zip64_central = zip64});
      int refused = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        for (const int change : {0x01, 0x40, 0x80, 0xFF}) {
          CAPTURE(i);
          CAPTURE(change);
          Bytes damaged = whole;
          damaged[i] = static_cast<unsigned char>(damaged[i] ^ change);
          if (error_of([&] { check_small_without_missing(NpzArchive("t.npz", damaged)); }) != "") ++refused;
        }
      }
      // Array bytes are protected by checksums; harmless are dates, attributes and the copies in local headers.
      std::uint64_t protected_bytes = 0;
      const ZipArchive zip("t.npz", whole);
      for (const io::ZipEntry& entry : zip.entries()) protected_bytes += entry.stored_size;
      CHECK(static_cast<std::uint64_t>(refused) >= 4 * protected_bytes);
    }
  }
}

TEST_CASE("load_npz: any changed or missing byte of an array gives a valid dataset or is refused") {
  for (const auto& array : small_arrays()) {
    const std::string& key = array.first;
    const Bytes& content = array.second;
    int refused = 0;
    for (std::size_t i = 0; i < content.size(); ++i) {
      for (const int change : {0x01, 0x02, 0x10, 0x80, 0xFF}) {
        CAPTURE(key);
        CAPTURE(i);
        CAPTURE(change);
        Bytes damaged = content;
        damaged[i] = static_cast<unsigned char>(damaged[i] ^ change);
        if (error_of([&] { validate(load(archive_with(key, damaged))); }) != "") ++refused;
      }
      const Bytes part(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(error_of([&] { load(archive_with(key, part)); }) != "");
    }
    CHECK(refused > 100);
  }
}

TEST_CASE("golden files are read as documented") {
  const std::filesystem::path folder = std::filesystem::path(SHEAFNN_TEST_DATA) / "golden";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".npz") continue;
    CAPTURE(entry.path().string());
    ++count;
    const NpzArchive golden(entry.path());
    const auto number = [&](const char* key) { return golden.array(key).values<double>().at(0); };
    const Index n = static_cast<Index>(number("n_nodes"));
    const std::vector<std::int64_t> labels = golden.array("labels").values<std::int64_t>();
    const std::vector<std::int64_t> train = golden.array("train_mask").values<std::int64_t>();
    const NpyArray log_p = golden.array("log_probabilities");
    REQUIRE(log_p.shape().size() == 2);
    CHECK(log_p.shape()[0] == n);
    CHECK(golden.array("config").shape() == std::vector<Index>{9});
    const std::size_t classes = static_cast<std::size_t>(log_p.shape()[1]);
    const std::vector<double> values = log_p.values<double>();
    // Sums of C terms of at most 1, each rounded a few times.
    const double epsilon = std::numeric_limits<double>::epsilon();
    double nll = 0, nodes = 0;
    for (std::size_t u = 0; u < labels.size(); ++u) {
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(values[u * classes + c]);
      CHECK(std::abs(sum - 1) <= 8 * static_cast<double>(classes) * epsilon);
      if (train[u] == 1) {
        nll -= values[u * classes + static_cast<std::size_t>(labels[u])];
        nodes += 1;
      }
    }
    const double loss = nll / nodes + number("kl_weight") * number("kl");
    CHECK(std::abs(loss - number("loss")) <= 8 * static_cast<double>(n) * epsilon * loss);
    for (const std::string& name : golden.names()) {
      if (!name.starts_with("param.")) continue;
      CHECK(golden.array(name).shape() == golden.array("grad." + name.substr(6)).shape());
    }
  }
  CHECK(count == 14);
}

TEST_CASE("load_npz: labels and numbers of edges") {
  using Labels = std::vector<std::int32_t>;
  const auto read = [](const Arrays& arrays, const io::ReadTypes& types) {
    return io::detail::read_dataset(NpzArchive("t.npz", archive_of(arrays)), "t", DatasetUse::training, {}, {},
                                    types);
  };
  const io::ReadTypes signs{.edge_labels = "sign"}, hours{.edge_target = "edge_weight"};
  const double unknown = std::nan("");
  Arrays arrays = small_arrays();
  // Edges 0-1, 1-2 and 2-3 in another order, one of them in both directions; what a self-loop has does not count.
  arrays["edges"] = npy<int>({5, 2}, {3, 2, 1, 0, 1, 2, 2, 2, 2, 3}, {"<i8"});
  arrays["sign"] = npy<double>({5}, {unknown, -1, 1, 7, 1});
  Dataset data = read(arrays, signs);
  CHECK(data.edge_labels == Labels{0, 1, 1});
  CHECK(data.edge_class_names == std::vector<std::string>{"-1", "1", "7"});
  CHECK(data.edge_targets.empty());
  arrays["edge_weight"] =
      npy<double>({5, 1}, {2.5, unknown, 0.1, 9, 2.5});  // a key that is refused where it is not read
  data = read(arrays, hours);
  CHECK(data.edge_labels.empty());
  REQUIRE(data.edge_targets.size() == 3);
  CHECK(std::isnan(data.edge_targets[0]));
  CHECK(data.edge_targets[1] == 0.1);
  CHECK(data.edge_targets[2] == 2.5);
  CHECK(error_of([&] { static_cast<void>(read(arrays, signs)); }).find("edge_weight: differs from edge to edge") !=
        std::string::npos);
  arrays.erase("edge_weight");
  CHECK(read(arrays, hours).edge_targets.empty());  // no such key
  CHECK(read(arrays, {}).edge_labels.empty());

  const auto refused = [&](const char* key, const Bytes& content, const io::ReadTypes& types) {
    Arrays other = arrays;
    other[key] = content;
    return error_of([&] { static_cast<void>(read(other, types)); });
  };
  CHECK(refused("sign", npy<double>({4}, {1, 1, 1, 1}), signs) ==
        "t.npz: sign: has shape (4,); expected one label for each of the 5 edges");
  CHECK(refused("edge_weight", npy<double>({1, 6}, {1, 1, 1, 1, 1, 1}), hours) ==
        "t.npz: edge_weight: has shape (1, 6); expected one number for each of the 5 edges");
  CHECK(refused("sign", npy<double>({5}, {1, -1, 1, 7, -1}), signs) ==
        "t.npz: sign[4] is '-1', and '1' at 0, which is the same edge");
  CHECK(refused("edge_weight", npy<double>({5}, {1, 1, 1, 7, 2.5}), hours) ==
        "t.npz: edge_weight[4] is '2.5', and '1' at 0, which is the same edge");
  CHECK(refused("edge_weight", npy<double>({5}, {1, 1, HUGE_VAL, 7, 1}), hours) ==
        "t.npz: edge_weight[2]: is infinite; numbers of edges are finite, or NaN where unknown");
  CHECK(refused("adj", npy<double>({4, 4}, std::vector<double>(16, 1)), signs).find("only one can be meant") !=
        std::string::npos);
  Arrays matrix = arrays;
  matrix.erase("edges");
  matrix["adj"] = npy<double>({4, 4}, std::vector<double>(16, 1));
  CHECK(error_of([&] { static_cast<void>(read(matrix, signs)); }) ==
        "t.npz: 'sign' needs a list of edges, m x 2; the file has a matrix");
  CHECK(error_of([&] { static_cast<void>(read(arrays, {.edge_labels = "sign", .edge_target = "sign"})); }) ==
        "t.npz: edge_target: sign is not allowed; edges have labels or numbers, not both");
}

TEST_CASE("load_npz: types of edges and nodes") {
  using Names = std::vector<std::string>;
  using Types = std::vector<std::int32_t>;
  const auto types_of = [](std::span<const std::int32_t> types) { return Types(types.begin(), types.end()); };
  const auto read = [](const Arrays& arrays, io::ReadTypes types = {true, true}) {
    return io::detail::read_dataset(NpzArchive("t.npz", archive_of(arrays)), "t", DatasetUse::training, {}, {},
                                    types);
  };
  const auto texts = [](const std::vector<std::string>& rows) {  // of at most two characters
    Bytes data;
    for (const std::string& row : rows) {
      for (std::size_t k = 0; k < 2; ++k) {
        data.push_back(k < row.size() ? static_cast<unsigned char>(row[k]) : 0);
        data.insert(data.end(), {0, 0, 0});
      }
    }
    return test::npy_with_header("{'descr': '<U2', 'fortran_order': False, 'shape': (" +
                                     std::to_string(rows.size()) + ",), }",
                                 data);
  };
  Arrays arrays = small_arrays();
  // Edges 0-1, 1-2 and 2-3 in another order, one of them twice; the type of a self-loop does not count.
  arrays["edges"] = npy<int>({5, 2}, {3, 2, 1, 0, 1, 2, 2, 2, 2, 3}, {"<i8"});
  arrays["edge_types"] = texts({"w", "c", "w", "x", "w"});
  arrays["node_type"] = npy<int>({4, 1}, {12, 3, 3, 12}, {"<u1"});
  const Dataset data = read(arrays);
  CHECK(data.edge_type_names == Names{"c", "w"});
  CHECK(types_of(data.graph.edge_types()) == Types{0, 1, 1});
  CHECK(data.node_type_names == Names{"12", "3"});  // texts in their order, as of a column
  CHECK(types_of(data.graph.node_types()) == Types{0, 1, 1, 0});
  Arrays columns = arrays;
  columns["edges"] = npy<int>({2, 5}, {3, 1, 1, 2, 2, 2, 0, 2, 2, 3}, {"<i8"});
  CHECK(types_of(read(columns).graph.edge_types()) == Types{0, 1, 1});
  CHECK(read(arrays, {.edges = true}).graph.node_type_count() == 0);

  const auto refused = [&](const char* key, const Bytes& content, io::ReadTypes types = {true, true}) {
    Arrays other = arrays;
    other[key] = content;
    return error_of([&] { static_cast<void>(read(other, types)); });
  };
  CHECK(refused("edge_types", texts({"w", "c", "w", "x", "c"})) ==
        "t.npz: edge_types[4]: the edge has the type 'c', and 'w' at 0");
  CHECK(refused("edge_types", texts({"w", "c", "", "x", "w"})) == "t.npz: edge_types[2]: the edge has no type");
  CHECK(refused("node_type", npy<double>({4}, {1, std::nan(""), 1, 2})) ==
        "t.npz: node_type[1]: the node has no type");
  CHECK(refused("edge_types", texts({"w", "c"})) ==
        "t.npz: edge_types: has shape (2,); expected one type for each of the 5 edges");
  CHECK(refused("node_type", npy<int>({2, 2}, {1, 2, 3, 4})) ==
        "t.npz: node_type: has shape (2, 2); expected one type for each of the 4 nodes");
  CHECK(refused("etype", texts({"w", "c", "w", "x", "w"})) ==
        "t.npz: has both 'edge_types' and 'etype'; only one can be meant");
  // Types that differ have to be read or taken away; an array of another size has no types of these edges.
  CHECK(error_of([&] { static_cast<void>(read(arrays, {})); }) ==
        "t.npz: edge_types[1] is 'c', and 'w' at 0; TextOptions::edge_types gives each type "
        "weights of the sheaf learner; otherwise remove the key");
  CHECK(refused("edge_types", texts({"w", "w", "w", "w", "w"}), {}).empty());
  CHECK(refused("edge_types", texts({"w", "c"}), {}).empty());
  const auto erased = [&](const char* key) {
    Arrays other = arrays;
    other.erase(key);
    return error_of([&] { static_cast<void>(read(other)); });
  };
  CHECK(erased("edge_types") == "t.npz: has no key 'edge_types' (or edge_type), which tells the types of edges");
  CHECK(erased("node_type") == "t.npz: has no key 'node_types' (or node_type), which tells the types of nodes");
  Arrays matrix = small_arrays();
  matrix.erase("edges");
  matrix["adj"] = npy<int>({4, 4}, {0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0});
  matrix["edge_types"] = texts({"w", "c", "w"});
  CHECK(error_of([&] { static_cast<void>(read(matrix, {.edges = true})); }) ==
        "t.npz: 'edge_types' needs a list of edges, m x 2; the file has a matrix");
}

TEST_CASE("load_dataset: what has no types refuses them, and for prediction its targets are unknown") {
  for (const bool edges : {true, false}) {
    CAPTURE(edges);
    io::TextOptions text;
    (edges ? text.edge_types : text.node_types) = true;
    CHECK(test::message_of<std::runtime_error>([&] {
            static_cast<void>(io::load_dataset("karate", {}, DatasetUse::prediction, text));
          }).starts_with(std::string("karate: has no types of ") + (edges ? "edges" : "nodes")));
  }
  io::TextOptions text;
  text.targets = {"price", "size"};
  const Dataset data = io::load_dataset("karate", {}, DatasetUse::prediction, text);
  CHECK(data.target_names == text.targets);
  CHECK(data.targets.size() == 68);
  CHECK(std::all_of(data.targets.begin(), data.targets.end(), [](double y) { return std::isnan(y); }));
  CHECK(data.labels.empty());
  CHECK(test::message_of<std::runtime_error>([&] {
          static_cast<void>(io::load_dataset("karate", {}, DatasetUse::training, text));
        }).starts_with("karate: has no targets 'price'"));
}

}  // namespace test_npz
