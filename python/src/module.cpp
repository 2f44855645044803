/// \file
/// sheafnn._core: the C++ library's functions on arrays. What people import is written in Python on top of it.
#include "module.hpp"

#include <exception>
#include <sheafnn/core/caller.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/version.hpp>

#include "interpreter.hpp"

NB_MODULE(_core, module) {
  module.doc() = "The C++ library behind sheafnn; use the package's own names.";
  module.attr("version") = SHEAFNN_VERSION_STRING;
  module.attr("built_for") = SHEAFNN_BUILT_FOR;
  sheafnn::set_caller(sheafnn::Caller::python);
  python::watch_interpreter();
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const sheafnn::io::MissingFile& error) {
      PyErr_SetString(PyExc_FileNotFoundError, error.what());
    }
  });
  python::bind_dataset(module);
  python::bind_graphs(module);
  python::bind_hypergraph(module);
  python::bind_links(module);
  python::bind_model(module);
  python::bind_planted(module);
  python::bind_rotations(module);
  python::bind_rotation_cayley(module);
  python::bind_rotation_matrices(module);
  python::bind_rotation_mixtures(module);
  python::bind_sampled(module);
  python::bind_sheaf(module);
  python::bind_torch(module);
  python::bind_uncertainty(module);
}
