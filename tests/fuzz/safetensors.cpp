/// \file
/// Fuzz target: a safetensors file, and the same written and read again.
#include "sheafnn/io/safetensors.hpp"

#include "memory_file.hpp"
#include "tensor_input.hpp"

SHEAFNN_FUZZ_TARGET(safetensors, 512, 1 << 18) {
  fuzz::keeps_contract<std::runtime_error>([&] {
    const sheafnn::io::Bytes content = fuzz::tensor_bytes(input);
    const sheafnn::io::TensorFile file = sheafnn::io::detail::parse_tensors("a.safetensors", content);
    for (const sheafnn::io::Tensor& tensor : file.tensors) {
      fuzz::expect(static_cast<sheafnn::Index>(tensor.values<double>().size()) == tensor.size() &&
                       static_cast<sheafnn::Index>(tensor.values<float>().size()) == tensor.size(),
                   "safetensors: number of values");
    }
    if (content.size() % 8 != 0) return;
    const auto path = fuzz::folder().path() / "copy.safetensors";
    try {
      sheafnn::io::write_safetensors(path, file);
    } catch (const std::invalid_argument&) {
      return;  // a tensor without a name
    }
    const sheafnn::io::TensorFile copy = sheafnn::io::read_safetensors(path);
    fuzz::expect(copy.metadata == file.metadata && copy.tensors.size() == file.tensors.size(),
                 "safetensors: the copy");
    for (const sheafnn::io::Tensor& tensor : file.tensors) {
      const sheafnn::io::Tensor* other = copy.find(tensor.name);
      fuzz::expect(other != nullptr && other->dtype == tensor.dtype && other->shape == tensor.shape &&
                       other->data == tensor.data,
                   "safetensors: a tensor of the copy");
    }
  });
}
