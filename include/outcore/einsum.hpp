// Contractions of arrays in memory, in global arrays and on disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/global_array.hpp"
#include "outcore/memory.hpp"
#include "outcore/world.hpp"

namespace outcore {

/// An operand of a contraction: an array, which must live until the call returns, or memory with all
/// elements, the same at each process.
class OUTCORE_API EinsumOperand {
 public:
  EinsumOperand(GlobalArray& array) noexcept : global_(&array) {}
  EinsumOperand(DiskArray& array) noexcept : disk_(&array) {}
  /// A range in C order, or an mdspan of this shape. A number has the shape {}.
  EinsumOperand(const ConstElements& elements, const Extents& shape) noexcept
      : elements_{elements}, shape_(shape) {}
  template <Multidimensional Span>
  EinsumOperand(const Span& span) : EinsumOperand(ConstElements(span), ConstElements(span).shape()) {}

  [[nodiscard]] GlobalArray* global() const noexcept { return global_; }
  [[nodiscard]] DiskArray* disk() const noexcept { return disk_; }
  /// The memory of an operand that is no array. Throws as ConstElements::strided.
  [[nodiscard]] Strided memory() const { return elements_.front().strided(shape_, type(), "einsum"); }
  [[nodiscard]] const Extents& shape() const noexcept { return shape_; }                ///< of memory
  [[nodiscard]] ElementType type() const noexcept { return elements_.front().type(); }  ///< of memory

 protected:
  GlobalArray* global_ = nullptr;
  DiskArray* disk_ = nullptr;
  std::vector<ConstElements> elements_;  ///< one entry if the operand is memory
  Extents shape_;
};

/// The result of a contraction: an array, or memory of each process that receives all elements.
class OUTCORE_API EinsumResult : public EinsumOperand {
 public:
  EinsumResult(GlobalArray& array) noexcept : EinsumOperand(array) {}
  EinsumResult(DiskArray& array) noexcept : EinsumOperand(array) {}
  EinsumResult(const Elements& elements, const Extents& shape) noexcept : EinsumOperand(elements, shape) {}
  template <Multidimensional Span>
  EinsumResult(const Span& span) : EinsumOperand(Elements(span), Elements(span).shape()) {}
};

struct EinsumOptions {
  std::int64_t memory_bytes =
      0;  ///< of each process, for panels and intermediate arrays; 0: 3/4 of what is left in the budget
  std::string plan = {};    ///< a text of `einsum_plan` or of Python's Plan.text(); empty: a simple plan
  Factor scale = 1;         ///< factor of the product
  bool accumulate = false;  ///< add to the elements of the result
  int threads = 1;          ///< of each process, 1 to 256
};

/// Traffic and operations of a contraction, summed over all processes.
struct EinsumCounts {
  std::int64_t disk_read_bytes = 0, disk_written_bytes = 0;
  std::int64_t network_bytes = 0;  ///< from and to global arrays
  std::int64_t copied_bytes = 0;   ///< from and to memory
  double flops = 0;                ///< two for each multiplication
};

/// result = scale times the sum of products of operands, as numpy.einsum defines it: "ik,kj->ij" multiplies
/// matrices. No letter may occur twice in one operand. All elements have one type: float32, float64,
/// complex64 or complex128. Puts of other processes into operands must be complete before the call (`sync`);
/// all processes see the result when it returns. Products are made by the BLAS of the program if that is in a
/// shared library (dgemm_; set it to one thread), else by loops. Collective. Throws, the same at all
/// processes, Error: EINVAL (arguments that do not fit or that differ, a plan that is damaged or made for
/// other arrays), ENOTSUP (a plan of another format), EROFS, ENOMEM (the message says how much memory is
/// enough), ENOSPC, and the errors of moving elements.
OUTCORE_API EinsumCounts einsum(World& world, std::string_view subscripts,
                                const std::vector<EinsumOperand>& operands, const EinsumResult& result,
                                const EinsumOptions& options = {});

/// The plan that `einsum` would carry out, as text. Nothing is moved. Collective. Throws as `einsum`.
[[nodiscard]] OUTCORE_API std::string einsum_plan(World& world, std::string_view subscripts,
                                                  const std::vector<EinsumOperand>& operands,
                                                  const EinsumResult& result,
                                                  const EinsumOptions& options = {});

}  // namespace outcore
