/// \file
/// Replays the corpora of all fuzz targets, and then mutations of their files, without libFuzzer: the part of the fuzzing
/// that every run of the tests does. The mutations follow from the seed alone: truncations, flipped bytes, numbers of
/// interest, copies, and splices of two files.
///
/// usage: fuzz_replay CORPUS [EXECUTIONS [SEED [TARGET]]]   CORPUS/TARGET holds the files of a target
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "contract.hpp"

// The memory in use, for the contract.
void* operator new(std::size_t size) {
  void* const p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  fuzz::Memory::add(malloc_usable_size(p));
  return p;
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const std::size_t unit = static_cast<std::size_t>(alignment);
  void* const p = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (p == nullptr) throw std::bad_alloc();
  fuzz::Memory::add(malloc_usable_size(p));
  return p;
}
void operator delete(void* p) noexcept {
  if (p != nullptr) fuzz::Memory::remove(malloc_usable_size(p));
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { operator delete(p); }

namespace {

using File = std::vector<std::uint8_t>;

/// Random numbers that are the same everywhere (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t state_;
};

std::vector<File> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<File> files;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

File mutated(const std::vector<File>& files, Random& random) {
  static constexpr std::uint64_t numbers[] = {0,
                                              1,
                                              0x7f,
                                              0x80,
                                              0xff,
                                              0x7fff,
                                              0xffff,
                                              0x7fffffff,
                                              0x80000000,
                                              0xffffffff,
                                              0x7fffffffffffffff,
                                              0x8000000000000000,
                                              0xffffffffffffffff,
                                              0x7ff0000000000000,
                                              0x7ff8000000000000,
                                              0x3ff0000000000000};
  File r = files[random.below(files.size())];
  for (std::size_t left = 1 + random.below(4); left > 0; --left) {
    const std::size_t at = random.below(r.size() + 1);
    switch (random.below(7)) {
      case 0:
        r.resize(at);
        break;
      case 1:
        if (at < r.size()) r[at] = static_cast<std::uint8_t>(random.next());
        break;
      case 2:
        if (at < r.size()) r[at] = static_cast<std::uint8_t>(r[at] ^ (1U << random.below(8)));
        break;
      case 3: {
        const std::uint64_t number = numbers[random.below(std::size(numbers))];
        const std::size_t size = std::size_t{1} << random.below(4);
        for (std::size_t i = 0; i < size && at + i < r.size(); ++i) {
          r[at + i] = static_cast<std::uint8_t>(number >> (8 * i));
        }
        break;
      }
      case 4: {
        const File other = files[random.below(files.size())];
        const std::size_t from = random.below(other.size() + 1);
        r.resize(at);
        r.insert(r.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        break;
      }
      case 5: {
        const std::size_t size = std::min(r.size() - at, random.below(16));
        const File piece(r.begin() + static_cast<std::ptrdiff_t>(at),
                         r.begin() + static_cast<std::ptrdiff_t>(at + size));
        r.insert(r.begin() + static_cast<std::ptrdiff_t>(random.below(r.size() + 1)), piece.begin(), piece.end());
        break;
      }
      default:
        for (std::size_t i = random.below(8); i > 0; --i) {
          r.insert(r.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::uint8_t>(random.next()));
        }
    }
  }
  if (r.size() > 8192) r.resize(8192);
  return r;
}

/// What is executed: where the contract breaks it is left in the working directory.
File current;
int breaches = 0;
void keep_current() {
  const std::string name = "fuzz-broken-" + std::to_string(breaches++);
  std::ofstream(name, std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "the input is in %s\n", name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [EXECUTIONS [SEED [TARGET]]]\n", argv[0]);
    return 2;
  }
  const std::size_t executions = argc > 2 ? std::stoul(argv[2]) : 10000;
  const std::uint64_t seed = argc > 3 ? std::stoull(argv[3]) : 1;
  std::signal(SIGABRT, [](int) { keep_current(); });
  std::signal(SIGSEGV, [](int) { std::abort(); });
  fuzz::on_breach = keep_current;
  auto& targets = fuzz::targets();
  std::sort(targets.begin(), targets.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  if (argc > 4) std::erase_if(targets, [&](const auto& target) { return target.name != argv[4]; });
  std::size_t done = 0, left = targets.size();
  for (const fuzz::Target& target : targets) {
    const std::size_t count = (executions - std::min(executions, done)) / left--;
    std::vector<File> files = read_corpus(std::filesystem::path(argv[1]) / target.name);
    if (files.empty()) {
      std::fprintf(stderr, "%s has no files of the target %s\n", argv[1], std::string(target.name).c_str());
      return 1;
    }
    Random random(seed);
    const std::size_t all = std::max(count, files.size());
    const std::clock_t start = std::clock();
    for (std::size_t i = 0; i < all; ++i) {
      current = i < files.size() ? files[i] : mutated(files, random);
      target.run(current);
    }
    done += all;
    std::printf("%-16s %4zu files %7zu executions %7.2f s\n", std::string(target.name).c_str(), files.size(), all,
                static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::printf("%zu executions\n", done);
  return breaches == 0 && done >= executions ? 0 : 1;
}
