// Operations on tiles of tensors: permute, scale, add; pack pairs of indices.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "outcore/element_type.hpp"
#include "outcore/error.hpp"
#include "strided_arg.hpp"
#include "string_arg.hpp"
#include "tensor/multiply.hpp"
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

/// Multiplies matrices whose elements lie side by side along rows or columns, with less than 2^31 along each
/// side; returns false, and does nothing, for others.
bool multiply(nb::handle left, nb::handle right, nb::handle out, const std::string& dtype, nb::handle alpha,
              bool add) {
  const ElementType type = element_type(dtype);
  const std::size_t element_bytes = size_bytes(type);
  const BufferArg factor(alpha, Access::read);
  if (factor.span().size() != element_bytes) throw nb::value_error("alpha is not one element");
  const Extents shapes[] = {shape_of(left), shape_of(right), shape_of(out)};
  const StridedArg memory[] = {StridedArg(left, Access::read, shapes[0], element_bytes),
                               StridedArg(right, Access::read, shapes[1], element_bytes),
                               StridedArg(out, Access::write, shapes[2], element_bytes)};
  if (shapes[0].rank() != 2 || shapes[1].rank() != 2 || shapes[0][1] != shapes[1][0] ||
      shapes[2] != Extents{shapes[0][0], shapes[1][1]})
    throw nb::value_error("matrices that cannot be multiplied");
  std::array<tensor::Matrices, 3> matrices;
  for (std::size_t i = 0; i < 3; ++i) {
    const Strided strided = memory[i].strided();
    matrices[i] = {
        strided.data, {1, shapes[i][0], shapes[i][1]}, {0, strided.stride_bytes[0], strided.stride_bytes[1]}};
    const auto found = tensor::leading(matrices[i], static_cast<std::int64_t>(element_bytes));
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    if (!found || std::max({found->elements, shapes[i][0], shapes[i][1]}) > most) return false;
  }
  const auto function = tensor::multiply_by(scipy_blas(), type, factor.span().data());
  const nb::gil_scoped_release release;
  function(matrices[0], matrices[1], matrices[2], add);
  return true;
}

bool has_blas() {
  try {
    (void)scipy_blas();
    return true;
  } catch (const Error&) {
    return false;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return false;
  }
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
             "out = alpha * value, or out += alpha * value; any strides. See tensor/tiles.hpp. Any thread.");
  module.def(
      "tensor_multiply", multiply, "left"_a, "right"_a, "out"_a, "dtype"_a, "alpha"_a, "add"_a,
      "out = alpha left right, or out += alpha left right, for matrices of a type that BLAS multiplies.\n"
      "Returns false and does nothing if elements lie side by side neither along rows nor along\n"
      "columns. Any thread.");
  module.def("tensor_has_blas", has_blas, "Whether SciPy's BLAS can be called.");
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
      "Sums and differences of pairs of elements, as tensor/tiles.hpp defines them. Any thread.");
  module.def(
      "tensor_unpack_pairs",
      [](nb::handle x, nb::handle plus, nb::handle minus, const std::string& dtype, std::int64_t n,
         double diagonal) {
        const Pairs pairs(x, plus, minus, dtype, n, true);
        const nb::gil_scoped_release release;
        tensor::unpack_pairs(pairs.x.span().data(), pairs.p.span().data(), pairs.m.span().data(), pairs.rows,
                             n, pairs.type, diagonal);
      },
      "x"_a, "plus"_a, "minus"_a, "dtype"_a, "n"_a, "diagonal"_a, "The reverse of pack_pairs. Any thread.");
}

}  // namespace outcore::python
