/// \file
/// The parts of the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace python {

void bind_dataset(nanobind::module_& module);
void bind_graphs(nanobind::module_& module);
void bind_hypergraph(nanobind::module_& module);
void bind_links(nanobind::module_& module);
void bind_model(nanobind::module_& module);
void bind_planted(nanobind::module_& module);
void bind_rotation_cayley(nanobind::module_& module);
void bind_rotation_matrices(nanobind::module_& module);
void bind_rotation_mixtures(nanobind::module_& module);
void bind_rotations(nanobind::module_& module);
void bind_sampled(nanobind::module_& module);
void bind_sections(nanobind::module_& module);
void bind_sheaf(nanobind::module_& module);
void bind_torch(nanobind::module_& module);
void bind_uncertainty(nanobind::module_& module);

}  // namespace python
