/// \file
/// What all classes of trained models have of their checkpoint: files, names, arrays of the parameters, pickling.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <filesystem>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/io/safetensors.hpp>
#include <sheafnn/io/tensor_file.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "options.hpp"

namespace python {

using sheafnn::Index;

template <class Scalar>
[[nodiscard]] nb::object tensor_array(const sheafnn::io::Tensor& tensor) {
  const std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return nb::cast(to_numpy(tensor.values<Scalar>(), shape));
}
[[nodiscard]] inline nb::dict tensors_of(const sheafnn::io::TensorFile& file) {
  nb::dict d;
  for (const sheafnn::io::Tensor& tensor : file.tensors) {
    d[tensor.name.c_str()] = tensor.dtype == "F64" ? tensor_array<double>(tensor) : tensor_array<float>(tensor);
  }
  return d;
}

/// What pickle keeps: metadata, and name, dtype, shape and bytes of every tensor.
using State = std::pair<Texts, std::vector<std::tuple<std::string, std::string, std::vector<Index>, nb::bytes>>>;

[[nodiscard]] inline State state_of(const sheafnn::io::TensorFile& file) {
  State state;
  state.first = file.metadata;
  for (const sheafnn::io::Tensor& tensor : file.tensors) {
    state.second.emplace_back(tensor.name, tensor.dtype, tensor.shape,
                              nb::bytes(tensor.data.data(), tensor.data.size()));
  }
  return state;
}
[[nodiscard]] inline sheafnn::io::TensorFile file_of(const State& state) {
  sheafnn::io::TensorFile file;
  file.metadata = state.first;
  for (const auto& [name, dtype, shape, bytes] : state.second) {
    const auto* data = static_cast<const unsigned char*>(bytes.data());
    file.tensors.push_back({name, dtype, shape, {data, data + bytes.size()}});
    const std::size_t item = dtype == "F64" ? 8 : 4;
    sheafnn::require(bytes.size() == item * static_cast<std::size_t>(file.tensors.back().size()), name,
                     bytes.size(), "is not the number of bytes that its shape needs");
  }
  return file;
}

/// The class of a kind of trained model.
///
/// \tparam Trained  is made of a path and a TensorFile; has file() and info()
template <class Trained>
nb::class_<Trained> bind_checkpoint(nb::module_& module, const char* name) {
  nb::class_<Trained> bound(module, name);
  bound
      .def_static("load",
                  [](const std::filesystem::path& path) {
                    try {
                      return Trained(path, sheafnn::io::read_safetensors(path));
                    } catch (const std::invalid_argument& error) {  // its text has no file
                      throw std::runtime_error(sheafnn::detail::concat(path.string(), ": ", error.what()));
                    }
                  })
      .def(
          "save",
          [](const Trained& model, const std::filesystem::path& path, const Texts& more) {
            sheafnn::io::TensorFile file = model.file();
            for (const auto& [key, value] : more) file.metadata[key] = value;
            sheafnn::io::write_safetensors(path, file);
          },
          nb::arg("path"), nb::arg("more") = Texts())
      .def_prop_ro("kind", [](const Trained& model) { return model.info().model; })
      .def_prop_ro("stalk_dimension", [](const Trained& model) { return model.info().stalk_dimension; })
      .def_prop_ro("metadata", [](const Trained& model) { return model.file().metadata; })
      .def("tensors", [](const Trained& model) { return tensors_of(model.file()); })
      .def("__getstate__", [](const Trained& model) { return state_of(model.file()); })
      .def("__setstate__",
           [](Trained& model, const State& state) { new (&model) Trained("pickled model", file_of(state)); });
  return bound;
}

}  // namespace python
