// The memory of Python objects that the library reads and writes.
#include "buffer_arg.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace nb = nanobind;

namespace outcore::python {
namespace {

/// Whether a format of the `struct` module, as PEP 3118 extends it, has Python objects. Names of fields are
/// between colons.
bool has_addresses(std::string_view format) {
  bool in_name = false;
  for (const char each : format) {
    if (each == ':')
      in_name = !in_name;
    else if (!in_name && std::string_view("OPX&").find(each) != std::string_view::npos)
      return true;
  }
  return false;
}

/// The C function that a type itself has for `dtype`, as NumPy's has; null: none.
const PyGetSetDef* getter_of_dtype(PyTypeObject* type) {
  const auto* each = static_cast<const PyGetSetDef*>(PyType_GetSlot(type, Py_tp_getset));
  for (; each && each->name; ++each)
    if (std::string_view(each->name) == "dtype" && each->get) return each;
  return nullptr;
}

/// `object.dtype`, or NULL without an error. Small transfers feel a look-up by name, so the function that a
/// type has for it is found once.
PyObject* dtype_of(PyObject* object) {
  static PyTypeObject* known = nullptr;  // kept alive: its address means no other type
  static const PyGetSetDef* getter = nullptr;
  PyTypeObject* const type = Py_TYPE(object);
  if (type != known) {
    getter = getter_of_dtype(type);
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    Py_XDECREF(reinterpret_cast<PyObject*>(std::exchange(known, type)));
  }
  PyObject* const dtype =
      getter ? getter->get(object, getter->closure) : PyObject_GetAttrString(object, "dtype");
  if (!dtype) PyErr_Clear();
  return dtype;
}

/// As messages name it: "numpy.ndarray", "list".
std::string name_of_type(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  const std::string name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  return module == "builtins" ? name : module + "." + name;
}

/// Whether elements are addresses, as those of NumPy's object and StringDType are: what is read back would
/// point to objects that are gone. NumPy is asked for its type, since it has no format for all types.
bool holds_addresses(PyObject* object, const Py_buffer& view) {
  if (view.itemsize < static_cast<Py_ssize_t>(sizeof(void*))) return false;
  static PyObject* last_without = nullptr;  // kept alive, as above
  if (PyObject* const dtype = dtype_of(object)) {
    if (dtype == last_without) {
      Py_DECREF(dtype);
      return false;
    }
    nb::object type = nb::steal(dtype);
    const nb::object found = nb::steal(PyObject_GetAttrString(dtype, "hasobject"));
    if (found.is_valid()) {
      if (PyObject_IsTrue(found.ptr()) == 1) return true;
      Py_XDECREF(std::exchange(last_without, type.release().ptr()));
      return false;
    }
    PyErr_Clear();
  }
  Py_buffer described{};
  if (PyObject_GetBuffer(object, &described, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool found = described.format && has_addresses(described.format);
  PyBuffer_Release(&described);
  return found;
}

/// Whether an object is one of numpy.ma, whose buffer has the elements without their mask.
bool is_masked(PyObject* object) {
  static PyTypeObject* last_plain = nullptr;  // kept alive: its address means no other type
  PyTypeObject* const given = Py_TYPE(object);
  if (given == last_plain) return false;
  for (PyTypeObject* type = given; type != nullptr;
       type = static_cast<PyTypeObject*>(PyType_GetSlot(type, Py_tp_base))) {
    const nb::object name = nb::steal(PyType_GetName(type));
    if (name.is_valid() && PyUnicode_CompareWithASCIIString(name.ptr(), "MaskedArray") == 0) return true;
    PyErr_Clear();
  }
  PyObject* const before = reinterpret_cast<PyObject*>(std::exchange(last_plain, given));
  Py_INCREF(reinterpret_cast<PyObject*>(given));
  Py_XDECREF(before);
  return false;
}

/// Replaces the interpreter's error by one that says what is wrong and what to do.
[[noreturn]] void explain(nb::handle object, Access access) {
  PyErr_Clear();
  const std::string type = name_of_type(object);
  if (!PyObject_CheckBuffer(object.ptr()))
    throw nb::type_error(
        ("expected an object with the buffer protocol, such as a NumPy array, not " + type).c_str());
  Py_buffer view{};
  if (access == Access::write && PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDED_RO) == 0) {
    const bool read_only = view.readonly != 0;
    PyBuffer_Release(&view);
    throw nb::value_error((read_only ? "cannot read into a read-only buffer (" + type + ")"
                                     : "cannot read into a buffer that is not C-contiguous (" + type +
                                           "); read into a contiguous one, then copy")
                              .c_str());
  }
  PyErr_Clear();
  throw nb::value_error(
      ("buffer is not C-contiguous (" + type + "); copy it first, e.g. with numpy.ascontiguousarray")
          .c_str());
}

}  // namespace

BufferArg::BufferArg(nb::handle object, Access access) {
  const int writable = access == Access::write ? PyBUF_WRITABLE : 0;
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | writable) != 0) explain(object, access);
  const bool masked = is_masked(object.ptr());
  if (!masked && !holds_addresses(object.ptr(), view_)) return;
  PyBuffer_Release(&view_);
  if (masked) throw nb::type_error("a masked array, whose mask would be lost; give array.filled(..)");
  const std::string type = name_of_type(object);
  throw nb::type_error(("elements of this buffer (" + type +
                        ") are addresses of objects, which mean nothing in a file or another process")
                           .c_str());
}

}  // namespace outcore::python
