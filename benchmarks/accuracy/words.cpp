/// \file
/// Writes the words of random/stream.hpp to the standard output without end, for test batteries that read raw bits.
///
/// usage: words NAME SEED
///   one      one stream: ids 0, 1, 2, …, four words each; past 2³² ids another draw
///   first    the first words of these blocks alone: what a draw that needs one number takes
///   draws    draws 0 … 15 of each id in turn
///   seeds    256 neighbouring seeds in turn, for each id
///   epochs   an epoch after the other of a graph with 61 arcs: what training takes
///   layers   4 layers of 16 samples in turn, for each id
///   purposes the purposes in turn, for each id
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/stream.hpp"

namespace {

using sheafnn::Purpose;
using sheafnn::Stream;
using Words = sheafnn::math::Pack<std::uint32_t, 16>;

class Output {
 public:
  Output() : buffer_(std::size_t{1} << 18) {}

  void put(std::uint32_t word) {
    buffer_[used_++] = word;
    if (used_ < buffer_.size()) return;
    if (std::fwrite(buffer_.data(), sizeof buffer_[0], used_, stdout) != used_) std::exit(0);  // the reader has enough
    used_ = 0;
  }

 private:
  std::vector<std::uint32_t> buffer_;
  std::size_t used_ = 0;
};

/// The blocks of sixteen ids from `first` on.
struct Blocks {
  std::uint32_t word[4][16];

  Blocks(const Stream& stream, std::uint32_t first, std::uint32_t draw) {
    std::uint32_t id[16];
    for (std::uint32_t i = 0; i < 16; ++i) id[i] = first + i;
    const auto block = stream.words(Words::load(id), draw);
    for (int w = 0; w < 4; ++w) block.word[w].store(word[w]);
  }
};

/// The words of `count` streams, number k of which is stream(k), one block of each in turn; `words` of each block.
template <class StreamOf>
[[noreturn]] void interleave(std::uint32_t count, int words, const StreamOf& stream_of) {
  Output out;
  std::vector<Blocks> blocks;
  for (std::uint32_t draw = 0;; draw = (draw + 16) % 4080) {
    std::uint32_t first = 0;
    do {
      blocks.clear();
      for (std::uint32_t k = 0; k < count; ++k) {
        const auto [stream, offset] = stream_of(k);
        blocks.emplace_back(stream, first, draw + offset);
      }
      for (int i = 0; i < 16; ++i) {
        for (const Blocks& block : blocks) {
          for (int w = 0; w < words; ++w) out.put(block.word[w][i]);
        }
      }
      first += 16;
    } while (first != 0);
  }
}

struct StreamAndDraw {
  Stream stream;
  std::uint32_t draw = 0;
};

[[noreturn]] void write_epochs(const Stream& base) {
  constexpr std::uint32_t arcs = 61;
  Output out;
  Stream stream = base;
  for (;; ++stream.epoch) {
    if (stream.epoch == 0xffffffffu) ++stream.seed;
    for (std::uint32_t first = 0; first < arcs; first += 16) {
      const Blocks blocks(stream, first, 0);
      for (std::uint32_t i = 0; i < 16 && first + i < arcs; ++i) {
        for (const auto& word : blocks.word) out.put(word[i]);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const Stream base{.seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1};
  const std::map<std::string, std::function<void()>> writers = {
      {"one", [&] { interleave(1, 4, [&](std::uint32_t) { return StreamAndDraw{base, 0}; }); }},
      {"first", [&] { interleave(1, 1, [&](std::uint32_t) { return StreamAndDraw{base, 0}; }); }},
      {"draws", [&] { interleave(16, 4, [&](std::uint32_t k) { return StreamAndDraw{base, k}; }); }},
      {"seeds",
       [&] {
         interleave(256, 4, [&](std::uint32_t k) {
           Stream stream = base;
           stream.seed += k;
           return StreamAndDraw{stream, 0};
         });
       }},
      {"epochs", [&] { write_epochs(base); }},
      {"layers",
       [&] {
         interleave(64, 4, [&](std::uint32_t k) {
           Stream stream = base;
           stream.layer = k / 16;
           stream.sample = k % 16;
           return StreamAndDraw{stream, 0};
         });
       }},
      {"purposes",
       [&] {
         interleave(8, 4, [&](std::uint32_t k) {
           Stream stream = base;
           stream.purpose = static_cast<Purpose>(k + 1);
           return StreamAndDraw{stream, 0};
         });
       }},
  };
  const auto found = writers.find(name);
  if (found == writers.end()) {
    std::fprintf(stderr, "usage: words one|first|draws|seeds|epochs|layers|purposes SEED > bits\n");
    return 2;
  }
  found->second();
}
