/// \file
/// sheafnn._processor: the levels of x86-64 that this processor and its system support. It is compiled for every processor.
#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include "levels/processor_levels.hpp"

namespace {

/// A list of names, the lowest first.
PyObject* levels(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  programs::for_supported_levels([&](const char* name) {
    if (list == nullptr) return;
    PyObject* text = PyUnicode_FromString(name);
    if (text == nullptr || PyList_Append(list, text) != 0) Py_CLEAR(list);
    Py_XDECREF(text);
  });
  return list;
}

PyMethodDef methods[] = {{"levels", levels, METH_NOARGS,
                          "Levels of x86-64 that this processor supports, the lowest first."},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_processor", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModule_Create(&definition); }
