/// \file
/// Fuzz target: an .npz file and the dataset in it. Every other input is such a file; the others say what its arrays hold,
/// so that checksums and lengths agree and what is behind them is reached.
#include "sheafnn/io/npz.hpp"

#include "dataset_checks.hpp"
#include "npz_writer.hpp"

namespace {

using sheafnn::io::Bytes;

Bytes chosen_array(fuzz::Choices& choices) {
  static const char* const types[] = {"<f8", "<f4", "<i8", "<i4", "|b1", "|u1", "|i1", ">i2", "<f2", "<u8"};
  const int kind = choices.byte();
  const std::string type = types[choices.below(10)];
  const int rows = choices.below(12), columns = choices.below(12);
  const std::string shape = (kind & 1) != 0   ? "(" + std::to_string(rows) + ",)"
                            : (kind & 2) != 0 ? "(" + std::to_string(columns) + ", " + std::to_string(rows) + ")"
                                              : "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
  const std::string order = (kind & 4) != 0 ? "True" : "False";
  int size = ((kind & 1) != 0 ? rows : rows * columns) * (type[2] - '0');
  if (kind >= 250) ++size;
  Bytes data;
  for (int i = 0; i < size; ++i) {
    // Small numbers more often than any.
    data.push_back((kind & 8) != 0 || i % (type[2] - '0') == 0 ? choices.byte() : std::uint8_t{0});
  }
  return test::npy_with_header("{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + "}",
                               data);
}
Bytes chosen_archive(fuzz::Input input) {
  static const char* const keys[4][8] = {
      {"node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks", "train_mask2",
       "edge_types"},
      {"x", "y", "edge_index", "train_mask", "val_mask", "test_mask", "edge_weight", "node_type"},
      {"attr_data", "labels", "adj", "train_idx", "valid_idx", "test", "attr_indptr", "attr_indices"},
      {"feat", "label", "adj_data", "idx_train", "idx_val", "idx_test", "adj_indptr", "adj_indices"}};
  fuzz::Choices choices(input);
  test::ZipOptions options;
  const int kind = choices.byte();
  options.deflate = (kind & 1) != 0;
  options.zip64_local = (kind & 2) != 0;
  options.zip64_central = (kind & 4) != 0;
  test::ZipWriter writer(options);
  for (int k = 0; k < 8 && !choices.empty(); ++k) {
    const std::string key = keys[(kind >> 3) & 3][k];
    if ((choices.byte() & 7) != 7) writer.add(key + ".npy", chosen_array(choices));
  }
  return writer.finish();
}
void read_dataset(const sheafnn::io::NpzArchive& archive, sheafnn::DatasetUse use,
                  const sheafnn::MissingLabels& missing = {}, sheafnn::io::ReadTypes types = {}) {
  fuzz::keeps_contract<std::runtime_error>([&] {
    fuzz::expect_dataset(sheafnn::io::detail::read_dataset(archive, "a", use, missing, {}, types),
                         use != sheafnn::DatasetUse::prediction);
  });
}

}  // namespace

// Unpacked 1032 times, then each byte a number with its position: 24 bytes, and a copy.
SHEAFNN_FUZZ_TARGET(npz, 1032 * 48, 1 << 18) {
  if (input.empty()) return;
  const fuzz::Input rest = input.subspan(1);
  const Bytes content = (input[0] & 1) != 0 ? Bytes(rest.begin(), rest.end()) : chosen_archive(rest);
  fuzz::keeps_contract<std::runtime_error>([&] {
    const sheafnn::io::NpzArchive archive("a.npz", content);
    std::size_t left = 8;
    for (const std::string& name : archive.names()) {
      if (left-- == 0) break;
      fuzz::expect(archive.contains(name), "npz: a key that is not found");
      fuzz::keeps_contract<std::runtime_error>([&] { static_cast<void>(archive.text(name)); });
      fuzz::keeps_contract<std::runtime_error>([&] { static_cast<void>(archive.texts(name)); });
    }
    read_dataset(archive, sheafnn::DatasetUse::training);
    read_dataset(archive, sheafnn::DatasetUse::own_splits, std::vector<std::string>{"nan", "3"});
    read_dataset(archive, sheafnn::DatasetUse::prediction);
    read_dataset(archive, sheafnn::DatasetUse::prediction, {}, {.edges = true});
    read_dataset(archive, sheafnn::DatasetUse::prediction, {}, {.nodes = true});
  });
}
