// Memory handed over from Python: any object with the buffer protocol, C-contiguous.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace outcore::python {

enum class Access : std::uint8_t { read, write };  ///< what the library does to the memory

/// A view of the elements of a Python object in C order, which keeps the object alive and its memory in
/// place. Make and destroy it with the GIL held. Raises TypeError (no buffer protocol; a masked array;
/// elements that are addresses of objects) or ValueError (read-only where the library must write; not
/// C-contiguous: the order of the memory is not that of the elements).
class BufferArg {
 public:
  BufferArg() = default;
  BufferArg(nanobind::handle object, Access access);
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
  Py_buffer view_{};
};

}  // namespace outcore::python
