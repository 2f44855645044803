/// \file
/// Files that change while they are read: one thread writes, truncates and replaces them without pause, another reads
/// them. What is read is a whole version or an error; a file that io::write_file() replaces can always be read.
///
///     changing_files SECONDS
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "sheafnn/io/file.hpp"
#include "sheafnn/io/npz.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/safetensors.hpp"
#include "sheafnn/io/text_dataset.hpp"

namespace {

namespace io = sheafnn::io;
using sheafnn::Index;

/// Version k of the tensors: k numbers, all k.
io::TensorFile version(Index k) {
  io::TensorFile file;
  file.tensors.push_back(io::make_tensor<double>("t", {k}, std::vector<double>(static_cast<std::size_t>(k), static_cast<double>(k))));
  return file;
}
bool whole(const io::TensorFile& file) {
  const std::vector<double> values = file.tensors.at(0).values<double>();
  for (const double x : values) {
    if (x != static_cast<double>(values.size())) return false;
  }
  return true;
}

struct Counts {
  long read = 0, refused = 0, torn = 0;
};

/// Reads while another thread writes. \param read  \returns whether the content is one of those that were written
template <class Write, class Read>
Counts race(double seconds, const Write& write, const Read& read) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (Index i = 0; !stop; ++i) write(i);
  });
  Counts r;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    try {
      ++(read() ? r.read : r.torn);
    } catch (const std::runtime_error&) {
      ++r.refused;
    }
  }
  stop = true;
  writer.join();
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("sheafnn_changing_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "csv");
  const std::filesystem::path path = folder / "file", npz = folder / "data.npz";
  bool good = true;
  const auto report = [&](const char* what, const Counts& c, bool held) {
    std::printf("%s: %s, %ld reads, %ld refused, %ld of several versions\n", held ? "held" : "FAILED", what, c.read,
                c.refused, c.torn);
    good = good && held;
  };
  io::write_safetensors(path, version(1));
  const Counts replaced = race(
      seconds, [&](Index i) { io::write_safetensors(path, version(1 + i * 37 % 3000)); },
      [&] { return whole(io::read_safetensors(path)); });
  report("replaced by write_file()", replaced, replaced.refused == 0 && replaced.torn == 0 && replaced.read > 0);

  const auto overwrite = [](const std::filesystem::path& file, const io::Bytes& bytes, Index i) {
    std::ofstream out(file, std::ios::binary | (i % 2 == 0 ? std::ios::trunc : std::ios::in));
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    out.flush();
    if (i % 3 == 0) std::filesystem::resize_file(file, bytes.size() / 2);
  };
  std::vector<io::Bytes> versions;
  for (const Index k : {1, 400, 900}) {
    io::write_safetensors(path, version(k));
    versions.push_back(io::read_file(path));
  }
  const Counts overwritten = race(
      seconds, [&](Index i) { overwrite(path, versions[static_cast<std::size_t>(i % 3)], i); },
      [&] { return whole(io::read_safetensors(path)); });
  report("tensors overwritten and truncated in place", overwritten, overwritten.torn == 0);

  std::vector<io::Bytes> archives;
  for (const Index n : {3, 200, 500}) {
    io::NpzWriter writer;
    const std::size_t size = static_cast<std::size_t>(n);
    std::vector<std::int32_t> edges, labels(size);
    for (std::int32_t u = 0; u + 1 < n; ++u) edges.insert(edges.end(), {u, u + 1});
    labels[1] = 1;
    writer.add<double>("node_features", {n, 2}, std::vector<double>(2 * size, static_cast<double>(n)));
    writer.add<std::int32_t>("node_labels", {n}, labels);
    writer.add<std::int32_t>("edges", {n - 1, 2}, edges);
    writer.write(npz);
    archives.push_back(io::read_file(npz));
  }
  const Counts archive = race(
      seconds, [&](Index i) { overwrite(npz, archives[static_cast<std::size_t>(i % 3)], i); },
      [&] {
        const sheafnn::Dataset data = io::load_npz(npz);
        return data.graph.edge_count() + 1 == data.node_count();
      });
  report("an npz dataset overwritten and truncated in place", archive, archive.torn == 0);

  const auto text = [](Index n) {
    std::string s = "node,label,x\n";
    for (Index u = 0; u < n; ++u) s += std::to_string(u) + ",c" + std::to_string(u % 2) + "," + std::to_string(n) + "\n";
    return io::Bytes(s.begin(), s.end());
  };
  io::write_text(folder / "csv/edges.csv", "source,target\n0,1\n1,2\n");
  const std::vector<io::Bytes> tables = {text(3), text(100), text(2000)};
  const Counts table = race(
      seconds, [&](Index i) { overwrite(folder / "csv/nodes.csv", tables[static_cast<std::size_t>(i % 3)], i); },
      [&] {
        static_cast<void>(io::load_text_folder(folder / "csv"));
        return true;
      });
  report("a CSV table overwritten and truncated in place (any prefix of it is a table)", table, true);
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}
