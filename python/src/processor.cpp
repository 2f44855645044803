/// \file
/// sheafnn._processor: the levels of x86-64 that this processor and its system support. It is compiled for every processor.
#define Py_LIMITED_API 0x030a0000
#include <Python.h>

namespace {

/// A list of names, the lowest first.
PyObject* levels(PyObject*, PyObject*) {
  PyObject* list = Py_BuildValue("[s]", "x86-64");
  const auto add = [&](const char* name, int supported) {
    if (list == nullptr || !supported) return;
    PyObject* text = PyUnicode_FromString(name);
    if (text == nullptr || PyList_Append(list, text) != 0) Py_CLEAR(list);
    Py_XDECREF(text);
  };
  add("x86-64-v2", __builtin_cpu_supports("x86-64-v2"));
  add("x86-64-v3", __builtin_cpu_supports("x86-64-v3"));
  add("x86-64-v4", __builtin_cpu_supports("x86-64-v4"));
  return list;
}

PyMethodDef methods[] = {{"levels", levels, METH_NOARGS,
                          "Levels of x86-64 that this processor supports, the lowest first."},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_processor", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__processor() { return PyModule_Create(&definition); }
