// The safetensors format: round trips, the bytes on disk, damaged files, failing writes.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "npz_writer.hpp"
#include "sheafnn/io/safetensors.hpp"
#include "temporary_folder.hpp"

#if defined(__unix__)
#include <sys/resource.h>

#include <csignal>
#endif

namespace test_safetensors {
namespace {

using namespace sheafnn;
using io::Tensor;
using io::TensorFile;
using test::Bytes;

TensorFile small_file() {
  TensorFile file;
  file.metadata = {{"family", "diagonal"}, {"note", "line\nquote\" \xC3\xA9"}};
  file.tensors.push_back(
      io::make_tensor<float>("lin1.weight", {2, 3}, std::vector<float>{1, -2, 3.5f, 0, 1e-40f, 6}));
  file.tensors.push_back(io::make_tensor<double>("a", {2}, std::vector<double>{1.0 / 3.0, -0.0}));
  file.tensors.push_back(io::make_tensor<float>("empty", {0, 4}, std::vector<float>{}));
  file.tensors.push_back(io::make_tensor<double>("scalar", {}, std::vector<double>{7}));
  return file;
}

// A file with any header.
Bytes file_with_header(const std::string& header, std::size_t data_size) {
  Bytes r;
  test::append(r, std::uint64_t{header.size()});
  test::append(r, header);
  r.resize(r.size() + data_size);
  return r;
}

std::string message_of(const Bytes& bytes) {
  try {
    static_cast<void>(io::detail::parse_tensors("f", bytes));
  } catch (const std::runtime_error& error) {
    const std::string message = error.what();
    CHECK(message.starts_with("f: "));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no error";
}
std::string message_of_header(const std::string& header, std::size_t data_size = 8) {
  return message_of(file_with_header(header, data_size));
}

}  // namespace

TEST_CASE("safetensors: what is written is read back") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  const TensorFile written = small_file();
  for (int repeat = 0; repeat < 2; ++repeat) {  // the second time over the first file
    io::write_safetensors(path, written);
    const TensorFile read = io::read_safetensors(path);
    CHECK(read.metadata == written.metadata);
    REQUIRE(read.tensors.size() == written.tensors.size());
    for (const Tensor& tensor : written.tensors) {
      const Tensor* found = read.find(tensor.name);
      REQUIRE(found != nullptr);
      CHECK(found->dtype == tensor.dtype);
      CHECK(found->shape == tensor.shape);
      CHECK(found->data == tensor.data);
    }
  }
  const TensorFile read = io::read_safetensors(path);
  CHECK(read.find("lin1.weight")->values<float>() == std::vector<float>{1, -2, 3.5f, 0, 1e-40f, 6});
  CHECK(read.find("a")->values<double>()[0] == 1.0 / 3.0);
  CHECK(read.find("a")->values<float>()[0] == static_cast<float>(1.0 / 3.0));
  CHECK(std::signbit(read.find("a")->values<double>()[1]));
  CHECK(read.find("scalar")->values<double>() == std::vector<double>{7});
  CHECK(read.find("empty")->values<float>().empty());
  CHECK(read.find("b") == nullptr);
  // Nothing but the file is left in the folder.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("safetensors: the bytes on disk") {
  const test::TemporaryFolder folder;
  TensorFile file;
  file.tensors.push_back(io::make_tensor<float>("w", {1, 1}, std::vector<float>{1}));
  io::write_safetensors(folder / "f", file);
  std::string header = R"({"w":{"data_offsets":[0,4],"dtype":"F32","shape":[1,1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  Bytes expected;
  test::append(expected, std::uint64_t{header.size()});
  test::append(expected, header);
  test::append(expected, Bytes{0, 0, 0x80, 0x3F});
  CHECK(io::read_file(folder / "f") == expected);
}

TEST_CASE("safetensors: contradictory headers are refused") {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string f32 = "\"F32\"";
  CHECK(message_of_header(tensor(f32, "[2]", "[0,8]")) == "no error");
  CHECK(message_of_header(tensor(f32, "[2]", "[0,8]") + "   ") == "no error");
  CHECK(message_of_header("{}", 0) == "no error");
  CHECK(message_of_header(tensor("\"I64\"", "[1]", "[0,8]")) ==
        "f: tensor 't': has dtype 'I64'; F32 and F64 are supported");
  CHECK(message_of_header(tensor("32", "[2]", "[0,8]")) == "f: tensor 't': dtype is missing or wrong");
  CHECK(message_of_header(tensor(f32, "2", "[0,8]")) == "f: tensor 't': shape is missing or wrong");
  CHECK(message_of_header(tensor(f32, "[2]", "[0,8,8]")) ==
        "f: tensor 't': data_offsets must hold two numbers, not 3");
  CHECK(message_of_header(tensor(f32, "[3]", "[0,8]")) ==
        "f: tensor 't': has 8 bytes; its shape and dtype need 12");
  CHECK(message_of_header(tensor(f32, "[3]", "[0,12]")) ==
        "f: tensor 't': data_offsets are 0 to 12; the file has 8 bytes of data");
  CHECK(message_of_header(tensor(f32, "[1]", "[8,4]")) ==
        "f: tensor 't': data_offsets are 8 to 4; the file has 8 bytes of data");
  CHECK(message_of_header(tensor(f32, "[1]", "[4,8]")) ==
        "f: tensor 't' begins at byte 4 of the data; the tensors before it end at 0");
  CHECK(message_of_header(tensor(f32, "[1]", "[0,4]")) == "f: has 8 bytes of data; its tensors need 4");
  CHECK(message_of_header(tensor(f32, "[-1]", "[0,4]")).find("shape must hold whole numbers") !=
        std::string::npos);
  CHECK(message_of_header(tensor(f32, "[1.5]", "[0,4]")).find("shape must hold whole numbers") !=
        std::string::npos);
  CHECK(message_of_header(tensor(f32, "[\"1\"]", "[0,4]")).find("shape must hold whole numbers") !=
        std::string::npos);
  CHECK(message_of_header(tensor(f32, "[4611686018427387904]", "[0,0]")).find("shape must hold whole numbers") !=
        std::string::npos);
  CHECK(message_of_header(tensor(f32, "[4294967296,4294967296]", "[0,0]"), 0) ==
        "f: tensor 't': has an impossible shape; its size overflows");
  CHECK(message_of_header(tensor(f32, "[0,4294967296,4294967296]", "[0,0]"), 0) ==
        "f: tensor 't': has an impossible shape; its size overflows");
  CHECK(message_of_header(R"({"t":[]})") == "f: tensor 't': dtype is missing or wrong");
  CHECK(message_of_header(R"({"__metadata__":{"a":1}})", 0) == "f: __metadata__: 'a' must be a text");
  CHECK(message_of_header(R"({"__metadata__":[]})", 0) == "f: __metadata__ must be a map of texts");
  for (const char* header : {"", "[]", "[{}]", R"([{"t":1}])", R"([{"t":{"dtype":"F32"}}])", "{", "null", "{\"t\":}",
                             "{\"\xFF\":1}", "[[[[[[[["}) {
    CHECK(message_of_header(header, 0) == "f: is not a safetensors file; its header is not a JSON object");
  }
  CHECK(message_of({1, 2, 3}) == "f: is not a safetensors file; it has only 3 bytes");
  Bytes huge = file_with_header("{}", 0);
  huge[7] = 0xFF;
  CHECK(message_of(huge).find("is not a safetensors file or is truncated") != std::string::npos);
}

TEST_CASE("safetensors: files cut or changed anywhere") {
  const test::TemporaryFolder folder;
  io::write_safetensors(folder / "f", small_file());
  const Bytes whole = io::read_file(folder / "f");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(message_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))) != "no error");
  }
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {0x01, 0x08, 0x80, 0xFF}) {
      CAPTURE(i);
      Bytes damaged = whole;
      damaged[i] = static_cast<unsigned char>(damaged[i] ^ change);
      if (message_of(damaged) != "no error") ++refused;  // anything but std::runtime_error fails the test
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("safetensors: writing refuses bad tensors and leaves old files alone") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "f";
  io::write_safetensors(path, small_file());
  const Bytes before = io::read_file(path);

  TensorFile file = small_file();
  file.tensors.push_back(file.tensors.front());
  CHECK_THROWS_WITH_AS(
      io::write_safetensors(path, file),
      "tensor name: lin1.weight is not allowed; names must be distinct, not empty and not __metadata__",
      std::invalid_argument);
  file = small_file();
  file.tensors[0].name = "__metadata__";
  CHECK_THROWS_AS(io::write_safetensors(path, file), std::invalid_argument);
  file = small_file();
  file.tensors[0].dtype = "I8";
  CHECK_THROWS_WITH_AS(io::write_safetensors(path, file),
                       "lin1.weight: I8 is not allowed; the dtype must be F32 or F64", std::invalid_argument);
  file = small_file();
  file.tensors[0].data.pop_back();
  CHECK_THROWS_WITH_AS(io::write_safetensors(path, file),
                       "lin1.weight: 23 is not allowed; its shape and dtype need 24 bytes", std::invalid_argument);
  file = small_file();
  file.metadata["a"] = "\xFF";
  CHECK_THROWS_AS(io::write_safetensors(path, file), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(io::make_tensor<float>("t", {2, 2}, std::vector<float>(3))),
                       "t: 3 is not allowed; its shape needs 4 values", std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(io::make_tensor<float>("t", {-1, -3}, std::vector<float>(3))),
                  std::invalid_argument);
  const Index many = Index{1} << 32;
  CHECK_THROWS_WITH_AS(static_cast<void>(io::make_tensor<float>("t", {many, many}, {})),
                       doctest::Contains("t[1]: 4294967296 is not allowed; "), std::invalid_argument);
  file = small_file();
  for (Index& extent : file.tensors[0].shape) extent = -extent;  // two of them: as many numbers
  CHECK_THROWS_WITH_AS(io::write_safetensors(path, file), doctest::Contains("lin1.weight[0]: -"),
                       std::invalid_argument);
  CHECK(io::read_file(path) == before);

  CHECK_THROWS_WITH_AS(io::write_safetensors(folder / "none" / "f", small_file()),
                       doctest::Contains("cannot be written; No such file"), std::runtime_error);
  std::filesystem::create_directory(folder / "taken");
  CHECK_THROWS_WITH_AS(io::write_safetensors(folder / "taken", small_file()),
                       doctest::Contains("it exists and is not a regular file"), std::runtime_error);
  CHECK_THROWS_WITH_AS(io::write_safetensors("/dev/null", small_file()),
                       "/dev/null: cannot be written; it exists and is not a regular file", std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(io::read_safetensors(folder / "absent")),
                       doctest::Contains("no such file"), std::runtime_error);
  // Failed writes left no temporary file.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
  CHECK(io::read_file(path) == before);
}

TEST_CASE("whether a file can be written, before there is anything to write") {
  const test::TemporaryFolder folder;
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  io::require_writable(folder / "new");
  CHECK(files() == 0);
  std::ofstream(folder / "old") << "content";
  io::require_writable(folder / "old");
  CHECK(files() == 1);
  CHECK(io::read_file(folder / "old").size() == 7);
  CHECK_THROWS_WITH_AS(io::require_writable(folder / "nowhere" / "file"),
                       doctest::Contains("nowhere/file: cannot be written; No such file"), std::runtime_error);
  CHECK_THROWS_WITH_AS(io::require_writable(folder.path()),
                       (folder.path().string() + ": cannot be written; it exists and is not a regular file").c_str(),
                       std::runtime_error);
}

TEST_CASE("a file that is replaced hands on its permissions; links lead to the file that is written") {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const auto text_of = [&](const char* name) {
    const Bytes bytes = io::read_file(folder / name);
    return std::string(bytes.begin(), bytes.end());
  };
  for (const fs::perms mode : {fs::perms(0600), fs::perms(0640), fs::perms(0755), fs::perms(0444)}) {
    CAPTURE(static_cast<int>(mode));
    io::write_text(folder / "private", "old");
    fs::permissions(folder / "private", mode);
    io::write_text(folder / "private", "new");
    CHECK(fs::status(folder / "private").permissions() == mode);
    CHECK(text_of("private") == "new");
  }

  struct Case {
    const char *link, *to, *file;  ///< `to`: as the link says, `file`: from the folder
  };
  fs::create_directory(folder / "sub");
  fs::create_directory_symlink("sub", folder / "folder");
  const std::string whole = (folder / "whole").string();
  for (const Case& c : {Case{"a", "target", "target"},
                        {"b", "a", "target"},
                        {"sub/c", "../target", "target"},
                        {"folder/d", "../dangling", "dangling"},
                        {"e", "sub/dangling", "sub/dangling"},
                        {"f", whole.c_str(), "whole"}}) {
    CAPTURE(c.link);
    fs::create_symlink(c.to, folder / c.link);
    io::require_writable(folder / c.link);
    io::write_text(folder / c.link, c.link);
    CHECK(fs::is_symlink(folder / c.link));
    CHECK_FALSE(fs::is_symlink(folder / c.file));
    CHECK(text_of(c.file) == c.link);
  }
  io::write_text(folder / "target", "old");
  fs::permissions(folder / "target", fs::perms(0600));
  io::write_text(folder / "b", "new");
  CHECK(fs::status(folder / "target").permissions() == fs::perms(0600));
  fs::create_symlink("nowhere/file", folder / "lost");
  CHECK_THROWS_WITH_AS(io::write_text(folder / "lost", "new"),
                       doctest::Contains("lost: cannot be written; No such file"), std::runtime_error);

  // Links in a circle lead nowhere.
  fs::create_symlink("circle2", folder / "circle1");
  fs::create_symlink("circle1", folder / "circle2");
  CHECK_THROWS_WITH_AS(io::write_text(folder / "circle1", "new"),
                       doctest::Contains("circle1: cannot be written; Too many levels of symbolic links"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(io::read_file(folder / "circle1")),
                       doctest::Contains("circle1: cannot be read; Too many levels of symbolic links"),
                       std::runtime_error);
  CHECK(fs::is_symlink(folder / "circle1"));
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    CHECK_FALSE(entry.path().string().ends_with(".tmp"));
}

#if defined(__unix__)
#if defined(__linux__)
TEST_CASE("folders that a file system does not bring to a disk are no failure") {
  CHECK(io::detail::sync_to_disk("/proc"));
  CHECK(!io::detail::sync_to_disk("/proc/nothing is there"));
}
#endif

TEST_CASE("a file that cannot be opened: the system's reason") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(io::detail::OpenFile(folder / "absent"),
                       doctest::Contains("absent: cannot be opened for reading; No such file"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(io::detail::OpenFile("/dev/null"),
                       "/dev/null: cannot be opened for reading; it is not a regular file", std::runtime_error);
}

TEST_CASE("safetensors: a disk that fills up while writing") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "f";
  io::write_safetensors(path, small_file());
  const Bytes before = io::read_file(path);
  TensorFile large;
  large.tensors.push_back(io::make_tensor<double>("t", {100000}, std::vector<double>(100000)));

  // A limit on the size of files makes writes fail the same way.
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 65536;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  CHECK_THROWS_WITH_AS(io::write_safetensors(path, large), doctest::Contains("cannot be written; File too large"),
                       std::runtime_error);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);

  CHECK(io::read_file(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
#endif

}  // namespace test_safetensors
