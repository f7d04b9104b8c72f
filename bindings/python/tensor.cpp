// Tiles of tensors: permute, scale, add; pack pairs of indices.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "outcore/element_type.hpp"
#include "strided_arg.hpp"
#include "string_arg.hpp"
#include "tensor/tiles.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace outcore::python {
namespace {

/// The shape of an object with the buffer protocol.
Extents shape_of(nb::handle array) {
  Py_buffer view{};
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDED_RO) != 0) throw nb::python_error();
  std::vector<std::int64_t> shape(view.shape, view.shape + view.ndim);
  PyBuffer_Release(&view);
  return Extents(shape);
}

void permute(nb::handle out, nb::handle value, const std::string& dtype, nb::handle alpha, bool accumulate) {
  const ElementType type = element_type(dtype);
  const Extents shape = shape_of(out);
  const StridedArg to(out, Access::write, shape, size_bytes(type));
  const StridedArg from(value, Access::read, shape, size_bytes(type));
  const BufferArg factor(alpha, Access::read);
  if (factor.span().size() != size_bytes(type)) throw nb::value_error("alpha is not one element");
  const nb::gil_scoped_release release;
  tensor::permute(to.strided().data, to.strided().stride_bytes, from.strided().data,
                  from.strided().stride_bytes, shape, type, factor.span().data(), accumulate);
}

/// Square matrices and their packed halves, contiguous.
struct Pairs {
  Pairs(nb::handle matrices, nb::handle plus, nb::handle minus, const std::string& dtype, std::int64_t side,
        bool unpacks)
      : type(element_type(dtype)),
        n(side),
        x(matrices, unpacks ? Access::write : Access::read),
        p(plus, unpacks ? Access::read : Access::write),
        m(minus, unpacks ? Access::read : Access::write) {
    const auto of_matrix = static_cast<std::size_t>(n * n) * size_bytes(type);
    rows = n < 1 ? 0 : static_cast<std::int64_t>(x.span().size() / of_matrix);
    const auto fits = [&](const BufferArg& half, std::int64_t elements) {
      return half.span().size() == static_cast<std::size_t>(rows * elements) * size_bytes(type);
    };
    if (n < 1 || !fits(x, n * n) || !fits(p, n * (n + 1) / 2) || !fits(m, n * (n - 1) / 2))
      throw nb::value_error("matrices and their halves do not fit");
  }

  ElementType type;
  std::int64_t n, rows = 0;
  BufferArg x, p, m;
};

}  // namespace

void bind_tensor(nb::module_& module) {
  module.def("tensor_permute", permute, "out"_a, "value"_a, "dtype"_a, "alpha"_a, "accumulate"_a,
             "out = alpha * value, or added to it, of any strides; as tensor/tiles.hpp says. Any thread.");
  module.def(
      "tensor_pack_pairs",
      [](nb::handle x, nb::handle plus, nb::handle minus, const std::string& dtype, std::int64_t n,
         double diagonal) {
        const Pairs pairs(x, plus, minus, dtype, n, false);
        const nb::gil_scoped_release release;
        tensor::pack_pairs(pairs.x.span().data(), pairs.p.span().data(), pairs.m.span().data(), pairs.rows, n,
                           pairs.type, diagonal);
      },
      "x"_a, "plus"_a, "minus"_a, "dtype"_a, "n"_a, "diagonal"_a,
      "Sums and differences of pairs of elements, as tensor/tiles.hpp says. Any thread.");
  module.def(
      "tensor_unpack_pairs",
      [](nb::handle x, nb::handle plus, nb::handle minus, const std::string& dtype, std::int64_t n,
         double diagonal) {
        const Pairs pairs(x, plus, minus, dtype, n, true);
        const nb::gil_scoped_release release;
        tensor::unpack_pairs(pairs.x.span().data(), pairs.p.span().data(), pairs.m.span().data(), pairs.rows,
                             n, pairs.type, diagonal);
      },
      "x"_a, "plus"_a, "minus"_a, "dtype"_a, "n"_a, "diagonal"_a, "The reverse. Any thread.");
}

}  // namespace outcore::python
