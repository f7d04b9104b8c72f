#include "blas.hpp"

#include <nanobind/nanobind.h>

#include <cerrno>
#include <complex>
#include <optional>
#include <string>

#include "outcore/error.hpp"

namespace nb = nanobind;

namespace outcore::python {
namespace {

template <class Pointer>
Pointer blas_function(const char* name) {
  const nb::object table = nb::module_::import_("scipy.linalg.cython_blas").attr("__pyx_capi__");
  const nb::object capsule = table[name];
  const char* signature = PyCapsule_GetName(capsule.ptr());
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), signature);
  if (!pointer) throw nb::python_error();
  const std::string text = signature ? signature : "";
  if (!text.starts_with("void (char *, char *, int *, int *, int *, "))  // sizes of another type, say
    throw Error(ENOTSUP, {.attempted = std::string("use scipy's ") + name, .detail = "it is " + text});
  return reinterpret_cast<Pointer>(pointer);
}

}  // namespace

const Blas& scipy_blas() {
  static std::optional<Blas> found;  // guarded by the GIL
  if (found) return *found;
  found = {blas_function<Blas::Gemm<double>>("dgemm"), blas_function<Blas::Gemm<float>>("sgemm"),
           blas_function<Blas::Gemm<std::complex<double>>>("zgemm"),
           blas_function<Blas::Gemm<std::complex<float>>>("cgemm")};
  return *found;
}

}  // namespace outcore::python
