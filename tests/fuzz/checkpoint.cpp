/// \file
/// Fuzz target: checkpoints of models of four kinds. Every other input is a file; the others change one that was saved, in
/// its texts, tensors and numbers.
#include "sheafnn/io/checkpoint.hpp"

#include "shared_networks.hpp"
#include "sheafnn/bsnn/cooperative_model.hpp"
#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/bsnn/model.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "tensor_input.hpp"

namespace {

using sheafnn::Index;
using sheafnn::io::TensorFile;

/// Loads a model and, if that is possible, compares what it would be saved as.
template <class Model>
void load(const TensorFile& file) {
  fuzz::keeps_contract<std::runtime_error>([&] {
    const Model model = sheafnn::io::from_tensors<Model>("a.safetensors", file);
    for (Index i = 0; i < model.parameters().size(); ++i) {
      fuzz::expect(std::isfinite(model.parameters().values()[i]), "checkpoint: a parameter is not finite");
    }
    const TensorFile again = sheafnn::io::to_tensors(model);
    const Model copy = sheafnn::io::from_tensors<Model>("again.safetensors", again);
    fuzz::expect(copy.options() == model.options(), "checkpoint: options of the copy");
    fuzz::expect(std::equal(copy.parameters().values().begin(), copy.parameters().values().end(),
                            model.parameters().values().begin()),
                 "checkpoint: parameters of the copy");
  });
}

const char* const texts[] = {"0",
                             "1",
                             "2",
                             "3",
                             "8",
                             "64",
                             "1024",
                             "1025",
                             "-1",
                             "true",
                             "false",
                             "bsnn",
                             "nsd",
                             "flow",
                             "bflow",
                             "csnn",
                             "bcsnn",
                             "diagonal",
                             "euler",
                             "cayley",
                             "none",
                             "augmented",
                             "nan",
                             "inf",
                             "1e999",
                             "268435456",
                             "9223372036854775807",
                             "-9223372036854775808",
                             "",
                             "chebyshev",
                             "jacobi",
                             "conformal",
                             "special-orthogonal",
                             "0.5",
                             "4",
                             "5",
                             "16",
                             "householder"};

void change_model(TensorFile& file, fuzz::Choices& choices) {
  const auto some_text = [&]() -> std::string {
    const int kind = choices.byte();
    if (kind < 200) return texts[static_cast<std::size_t>(kind) % std::size(texts)];
    std::string r;
    for (int left = choices.below(12); left > 0; --left) r += static_cast<char>(choices.byte());
    return r;
  };
  const int kind = choices.byte();
  if (kind < 160) {
    auto entry = file.metadata.begin();
    std::advance(entry, choices.below(static_cast<int>(file.metadata.size())));
    if (kind < 150) {
      entry->second = some_text();
    } else if (file.metadata.size() > 1) {
      file.metadata.erase(entry);
    }
    return;
  }
  if (file.tensors.empty()) return;
  sheafnn::io::Tensor& tensor = file.tensors[static_cast<std::size_t>(choices.byte()) % file.tensors.size()];
  if (kind < 200) {
    std::vector<double> values = tensor.values<double>();
    if (!values.empty()) values[choices.byte() % values.size()] = choices.number<double>();
    tensor = sheafnn::io::make_tensor<double>(tensor.name, tensor.shape, values);
  } else if (kind < 240) {
    // Another shape, with numbers to fill it.
    for (Index& extent : tensor.shape) extent = choices.flag() ? extent : choices.below(20);
    const std::vector<double> values(static_cast<std::size_t>(tensor.size()), 0.25);
    tensor = sheafnn::io::make_tensor<double>(tensor.name, tensor.shape, values);
  } else if (kind < 248) {
    tensor.name = some_text();
  } else {
    file.tensors.erase(file.tensors.begin() + (&tensor - file.tensors.data()));
  }
}

template <class Options>
Options small() {
  Options options;
  options.features = 3;
  options.channels = 2;
  options.classes = 2;
  return options;
}
template <class Model>
TensorFile saved() {
  auto options = small<typename Model::Options>();
  if constexpr (!std::is_same_v<typename Model::Options, sheafnn::FlowOptions>) options.layers = 2;
  return sheafnn::io::to_tensors(Model(options, 1), {{"dataset", "a"}});
}

using Pairs = sheafnn::Bsnn<sheafnn::Diagonal<2>, double>;
using Points = sheafnn::Nsd<sheafnn::SpecialOrthogonal<3>, float>;
using Nodes = sheafnn::Bcsnn<2, float>;
using Flow = sheafnn::SheafFlow<sheafnn::Diagonal<2>, double>;

}  // namespace

// A model as large as its file holds the parameters three times: as bytes, as numbers, in the model; and it is saved again.
SHEAFNN_FUZZ_TARGET(checkpoint, 512, 1 << 20) {
  if (input.empty()) return;
  static const TensorFile originals[] = {saved<Pairs>(), saved<Points>(), saved<Nodes>(), saved<Flow>()};
  const int model = input[0] / 2 % 4;
  TensorFile file;
  if (input[0] % 2 == 0) {
    const bool good = fuzz::keeps_contract<std::runtime_error>(
        [&] { file = sheafnn::io::detail::parse_tensors("a.safetensors", fuzz::tensor_bytes(input.subspan(1))); });
    if (!good) return;
  } else {
    file = originals[model];
    fuzz::Choices choices(input.subspan(1));
    for (int left = 1 + choices.below(6); left > 0; --left) change_model(file, choices);
  }
  fuzz::keeps_contract<std::runtime_error>(
      [&] { static_cast<void>(sheafnn::io::checkpoint_info("a.safetensors", file)); });
  switch (model) {
    case 0:
      return load<Pairs>(file);
    case 1:
      return load<Points>(file);
    case 2:
      return load<Nodes>(file);
    default:
      return load<Flow>(file);
  }
}
