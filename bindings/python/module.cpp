#include <pthread.h>

#include "bindings.hpp"

NB_MODULE(_core, module) {
  // A forked child leaves objects that it cannot end to its parent; this is no leak of the bindings.
  pthread_atfork(nullptr, nullptr, [] { nanobind::set_leak_warnings(false); });
  module.def(
      "ends_by_signal", [] { nanobind::set_leak_warnings(false); },
      "This process is ending because of a signal: that objects are left is no mistake of the bindings.");
  module.doc() = "Native core of Outcore. Use it through the outcore package.";
  outcore::python::bind_error(module);
  outcore::python::bind_trace(module);
  outcore::python::bind_request(module);
  outcore::python::bind_device(module);
  outcore::python::bind_file(module);
  outcore::python::bind_memory_limits(module);
  outcore::python::bind_world(module);
  outcore::python::bind_gpc(module);
  outcore::python::bind_chem(module);
  outcore::python::bind_chem_ri(module);
  outcore::python::bind_chem_ci(module);
  outcore::python::bind_chem_ci_correction(module);
  outcore::python::bind_chem_mrci(module);
  outcore::python::bind_chem_cc(module);
  outcore::python::bind_global_array(module);
  outcore::python::bind_codec(module);
  outcore::python::bind_disk_array(module);
  outcore::python::bind_shared_file(module);
  outcore::python::bind_record_store(module);
  outcore::python::bind_block_sparse_array(module);
  outcore::python::bind_tensor(module);
  outcore::python::bind_tensor_product(module);
}
