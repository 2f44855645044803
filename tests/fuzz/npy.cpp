/// \file
/// Fuzz target: one .npy array, as numbers of every kind and as a text.
#include "sheafnn/io/npy.hpp"

#include "contract.hpp"
#include "sheafnn/io/npy_writer.hpp"

namespace {

template <class T>
void read_values(const sheafnn::io::NpyArray& array) {
  fuzz::keeps_contract<std::runtime_error>([&] {
    const std::vector<T> values = array.values<T>();
    fuzz::expect(static_cast<sheafnn::Index>(values.size()) == array.size(), "npy: number of values");
    if (array.shape().size() > 8) return;
    // What is written is read back bit by bit.
    const sheafnn::io::NpyArray again("again", sheafnn::io::to_npy<T>(array.shape(), values));
    fuzz::expect(again.shape() == array.shape(), "npy: shape of the copy");
    const std::vector<T> copy = again.values<T>();
    fuzz::expect(values.empty() || std::memcmp(copy.data(), values.data(), values.size() * sizeof(T)) == 0,
                 "npy: values of the copy");
  });
}

}  // namespace

SHEAFNN_FUZZ_TARGET(npy, 128, 1 << 16) {
  const sheafnn::io::Bytes content(input.begin(), input.end());
  fuzz::keeps_contract<std::runtime_error>([&] {
    const sheafnn::io::NpyArray array("a.npy", content);
    read_values<double>(array);
    read_values<float>(array);
    read_values<std::int64_t>(array);
  });
  fuzz::keeps_contract<std::runtime_error>([&] {
    const std::string text = sheafnn::io::npy_text("a.npy", content);
    fuzz::expect(4 * text.size() <= content.size(), "npy: length of the text");
  });
}
