// Calls of MPI: their errors, waiting (asleep, if it lasts), large counts. The files of this folder are built
// once for each MPI, into a library of its own that is loaded when it is needed; the core has no symbol of
// MPI.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "outcore/element_type.hpp"

namespace outcore::transport::over_mpi {

/// Throws Error(EIO, or ENOMEM) with MPI's own words unless the call succeeded.
void check(int code, const char* attempted);
[[nodiscard]] int error_class(int code) noexcept;
[[nodiscard]] int errno_of(int code) noexcept;  ///< 0 if the call succeeded

/// Completes requests, asleep if that takes more than 50 us. Returns at once for those that are. `watch` is
/// called each second, and may throw.
/// Measured: [M21].
void wait(std::span<MPI_Request> requests, const char* attempted, const std::function<void()>& watch = {});
inline void wait(MPI_Request request, const char* attempted, const std::function<void()>& watch = {}) {
  wait(std::span(&request, 1), attempted, watch);
}
[[nodiscard]] bool test(std::span<MPI_Request> requests, const char* attempted);

/// After MPI_Finalize nothing of MPI may be called any more: it would end the process.
[[nodiscard]] bool finalized() noexcept;
/// Whether MPI_Finalize has come to its end. Until then it may wait for others.
[[nodiscard]] bool finalize_is_over() noexcept;
void check_alive();  ///< throws Error(ESHUTDOWN) if MPI was finalized

/// Calls a function when MPI_Finalize begins: MPI can still be used then, and others may not be waited for.
/// Destroying it calls nothing.
class AtFinalize {
 public:
  explicit AtFinalize(std::function<void()> body);
  ~AtFinalize();
  AtFinalize(const AtFinalize&) = delete;
  AtFinalize& operator=(const AtFinalize&) = delete;

 private:
  static int call(MPI_Comm, int, void* self, void*);
  std::function<void()> body_;
  int keyval_ = MPI_KEYVAL_INVALID;
};

[[nodiscard]] MPI_Datatype datatype(ElementType type);

/// A datatype that is freed, unless it is one of MPI's own.
class Type {
 public:
  explicit Type(MPI_Datatype predefined) : type_(predefined) {}
  ~Type() { reset(); }
  Type(Type&& other) noexcept : type_(other.type_), own_(other.own_) { other.own_ = false; }
  Type& operator=(Type&& other) noexcept {
    if (this != &other) {
      reset();
      type_ = other.type_;
      own_ = other.own_;
      other.own_ = false;
    }
    return *this;
  }
  [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }
  void commit() {
    if (own_) check(MPI_Type_commit(&type_), "commit a datatype");
  }
  [[nodiscard]] static Type contiguous(std::int64_t count, const Type& of);
  [[nodiscard]] static Type strided(std::int64_t count, std::int64_t stride_bytes, const Type& of);
  /// So many bytes, also more than fit an int.
  [[nodiscard]] static Type bytes(std::size_t count);

 private:
  Type(MPI_Datatype type, bool own) : type_(type), own_(own) {}
  void reset() noexcept {
    if (own_) MPI_Type_free(&type_);
    own_ = false;
  }
  MPI_Datatype type_;
  bool own_ = false;
};

/// Calls `call(count, type)` with what stands for so many bytes.
template <class Call>
auto with_bytes(std::size_t size_bytes, const Call& call) {
  if (size_bytes <= INT_MAX) return call(static_cast<int>(size_bytes), MPI_BYTE);
  Type type = Type::bytes(size_bytes);
  type.commit();
  return call(1, type.get());
}

}  // namespace outcore::transport::over_mpi
