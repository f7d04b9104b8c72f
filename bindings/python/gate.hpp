// What a process of Python brings to a collective call: see outcore.job.collective.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "outcore/error.hpp"
#include "string_arg.hpp"

namespace outcore::python {

/// Throws the error whose fields outcore.base.errors.as_fields has made, if it is one.
inline void throw_fields(const nanobind::tuple& fields) {
  namespace nb = nanobind;
  const int errno_value = nb::cast<int>(fields[0]);
  if (errno_value == 0) return;
  throw Error(errno_value,
              {.attempted = nb::cast<std::string>(fields[1]),
               .path = nb::cast<std::string>(fields[2]),
               .offset = nb::cast<std::int64_t>(fields[3]),
               .size_bytes = nb::cast<std::int64_t>(fields[4]),
               .detail = nb::cast<std::string>(fields[5])},
              nb::cast<int>(fields[6]));
}

/// Calls `gate`, a function that outcore.job.collective.in_gate has made, inside of a gate, where the GIL is
/// not held, and gives what it brings to `take`, which holds it. What the function raised is thrown as Error,
/// for all processes to throw.
template <class Take>
void take_brought(const nanobind::callable& gate, const Take& take) {
  namespace nb = nanobind;
  const nb::gil_scoped_acquire held;
  try {
    const auto [fields, value] = nb::cast<std::pair<nb::tuple, nb::object>>(gate());
    throw_fields(fields);
    take(value);
  } catch (nb::python_error& error) {  // a signal came while the function was entered or left
    throw Error(EINTR, {.attempted = "call a function of Python", .detail = error.what()});
  } catch (const nb::cast_error&) {
    throw Error(EINVAL, {.attempted = "call a function of Python", .detail = "it returns something else"});
  }
}

/// The same of a type that holds nothing of Python.
template <class T>
[[nodiscard]] T brought(const nanobind::callable& gate) {
  T result{};
  take_brought(gate, [&](const nanobind::object& value) { result = nanobind::cast<T>(value); });
  return result;
}

}  // namespace outcore::python
