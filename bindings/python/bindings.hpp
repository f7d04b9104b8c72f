// The Python module is assembled from one function for each concept.
#pragma once

#include <nanobind/nanobind.h>

namespace outcore::python {

void bind_error(nanobind::module_& module);
void bind_trace(nanobind::module_& module);
void bind_request(nanobind::module_& module);
void bind_device(nanobind::module_& module);
void bind_file(nanobind::module_& module);
void bind_memory_limits(nanobind::module_& module);
void bind_world(nanobind::module_& module);
void bind_gpc(nanobind::module_& module);
void bind_chem(nanobind::module_& module);
void bind_chem_ri(nanobind::module_& module);
void bind_chem_ci(nanobind::module_& module);
void bind_chem_ci_correction(nanobind::module_& module);
void bind_chem_mrci(nanobind::module_& module);
void bind_chem_cc(nanobind::module_& module);
void bind_global_array(nanobind::module_& module);
void bind_codec(nanobind::module_& module);
void bind_disk_array(nanobind::module_& module);
void bind_shared_file(nanobind::module_& module);
void bind_record_store(nanobind::module_& module);
void bind_block_sparse_array(nanobind::module_& module);
void bind_tensor(nanobind::module_& module);
void bind_tensor_product(nanobind::module_& module);

}  // namespace outcore::python
