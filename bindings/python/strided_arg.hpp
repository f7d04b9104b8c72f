// Memory handed over from Python with its strides: NumPy arrays of any layout.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>
#include <utility>

#include "buffer_arg.hpp"
#include "outcore/box.hpp"
#include "outcore/global_array.hpp"

namespace outcore::python {

/// A view of the memory of a Python object, with its strides, which keeps the object alive and its memory in
/// place. Make and destroy it with the GIL held. The caller has checked the type of the elements.
class StridedArg {
 public:
  StridedArg() = default;
  /// Raises ValueError if the shape or the size of the elements is another, or the memory is read-only where
  /// the library must write.
  StridedArg(nanobind::handle object, Access access, const Extents& shape, std::size_t element_bytes) {
    const int flags = PyBUF_STRIDED_RO | (access == Access::write ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nanobind::python_error();
    bool fits = view_.ndim == shape.rank() && view_.itemsize == static_cast<Py_ssize_t>(element_bytes);
    strides_ = shape;
    for (int i = 0; fits && i < view_.ndim; ++i) {
      fits = view_.shape[i] == shape[i];
      strides_[i] = view_.strides[i];
    }
    if (fits) return;
    Extents found = Extents::filled(std::min(view_.ndim, max_rank), 0);
    for (int i = 0; i < found.rank(); ++i) found[i] = view_.shape[i];
    PyBuffer_Release(&view_);
    throw nanobind::value_error(
        ("memory of shape " + found.text() + " for a section of shape " + shape.text()).c_str());
  }
  ~StridedArg() { release(); }
  StridedArg(StridedArg&& other) noexcept
      : view_(std::exchange(other.view_, Py_buffer{})), strides_(other.strides_) {}
  StridedArg& operator=(StridedArg&& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(strides_, other.strides_);
    return *this;
  }

  [[nodiscard]] Strided strided() const noexcept { return {static_cast<std::byte*>(view_.buf), strides_}; }
  void release() noexcept {
    if (view_.obj) PyBuffer_Release(&view_);
  }

 private:
  Py_buffer view_{};
  Extents strides_;
};

}  // namespace outcore::python
