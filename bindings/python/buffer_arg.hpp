// Memory handed over from Python: any object with the buffer protocol, contiguous.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace outcore::python {

enum class Access { read, write };  ///< what the library does to the memory

/// A view of the memory of a Python object, in memory order, which keeps the object alive and its memory in
/// place. Make and destroy it with the GIL held. Raises TypeError (no buffer protocol) or ValueError
/// (read-only where the library must write, not contiguous).
class BufferArg {
 public:
  BufferArg() = default;
  BufferArg(nanobind::handle object, Access access) {
    const int writable = access == Access::write ? PyBUF_WRITABLE : 0;
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_ANY_CONTIGUOUS | writable) != 0)
      explain(object, access);
  }
  ~BufferArg() {
    if (view_.obj) PyBuffer_Release(&view_);
  }
  BufferArg(BufferArg&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  BufferArg& operator=(BufferArg&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }

  [[nodiscard]] std::span<std::byte> span() const noexcept {
    return {static_cast<std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  /// Replaces the interpreter's error by one that says what is wrong and what to do.
  [[noreturn]] static void explain(nanobind::handle object, Access access) {
    PyErr_Clear();
    const std::string type = Py_TYPE(object.ptr())->tp_name;
    Py_buffer view{};
    if (!PyObject_CheckBuffer(object.ptr()))
      throw nanobind::type_error(
          ("expected an object with the buffer protocol, such as a NumPy array, not " + type).c_str());
    if (access == Access::write && PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) == 0) {
      const bool read_only = view.readonly != 0;
      PyBuffer_Release(&view);
      if (read_only)
        throw nanobind::value_error(("cannot read into a read-only buffer (" + type + ")").c_str());
    }
    PyErr_Clear();
    throw nanobind::value_error(
        ("buffer is not contiguous (" + type + "); copy it first, e.g. with numpy.ascontiguousarray")
            .c_str());
  }

  Py_buffer view_{};
};

}  // namespace outcore::python
