// outcore::Error becomes outcore.base.errors.OutcoreError in Python, with all its fields.
#include "outcore/error.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.hpp"
#include "string_arg.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

nb::object optional_number(std::int64_t value) {
  return value < 0 ? nb::object(nb::none()) : nb::cast(value);
}

/// Paths are bytes that need not be UTF-8.
nb::object decoded(const std::string& text) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

void set_error(const std::exception_ptr& pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    const ErrorContext& context = error.context();
    const nb::object type = nb::module_::import_("outcore.base.errors").attr("OutcoreError");
    const nb::object raised = type(
        error.errno_value() > 0 ? nb::object(nb::int_(error.errno_value())) : nb::object(nb::none()),
        decoded(context.attempted), "path"_a = decoded(context.path),
        "offset"_a = optional_number(context.offset), "size_bytes"_a = optional_number(context.size_bytes),
        "detail"_a = decoded(context.detail), "rank"_a = error.rank());
    PyErr_SetObject(type.ptr(), raised.ptr());
  } catch (const std::system_error& error) {  // of the C++ library
    const nb::object type = nb::module_::import_("outcore.base.errors").attr("OutcoreError");
    const nb::object raised = type(error.code().value(), "use the system", "detail"_a = error.what());
    PyErr_SetObject(type.ptr(), raised.ptr());
  }
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    set_error(pointer);
  } catch (nb::python_error& error) {
    // Making the exception runs Python, where a signal may raise KeyboardInterrupt in its place.
    error.restore();
  }
}

std::string error_message(std::optional<int> errno_value, std::string attempted, std::string path,
                          std::int64_t offset, std::int64_t size_bytes, std::string detail, int rank) {
  ErrorContext context{std::move(attempted), std::move(path), offset, size_bytes, std::move(detail)};
  return Error(errno_value.value_or(no_errno), std::move(context), rank < 0 ? process_rank() : rank).what();
}

}  // namespace

void bind_error(nb::module_& module) {
  nb::register_exception_translator(translate);
  module.def(
      "error_message", &error_message, "errno_value"_a.none(), "attempted"_a, "path"_a = "", "offset"_a = -1,
      "size_bytes"_a = -1, "detail"_a = "", "rank"_a = -1,
      "The text of an error: what was attempted, where, how much, why. Negative numbers are left out; a\n"
      "negative rank means this process.");
  module.def("set_process_rank", &set_process_rank, "rank"_a, "count"_a,
             "Names this process in messages, traces and scratch. Call it once, before other threads start.");
  module.def("process_rank", &process_rank);
  module.def("process_count", &process_count);
}

}  // namespace outcore::python
