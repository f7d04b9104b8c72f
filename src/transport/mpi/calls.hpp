// Calls of MPI: their errors, waits (asleep, if they last), large counts. The files of this folder are built
// once for each MPI, into separate libraries that are loaded when needed; the core uses no symbol of MPI.
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

/// Throws Error(EIO or ENOMEM) with the text of MPI unless the call succeeded.
void check(int code, const char* attempted);
[[nodiscard]] int error_class(int code) noexcept;
[[nodiscard]] int errno_of(int code) noexcept;  ///< 0 if the call succeeded

/// Waits for requests, asleep if that takes more than 50 us; returns at once if they are complete. `watch` is
/// called each second, and may throw. Measured: [M21].
void wait(std::span<MPI_Request> requests, const char* attempted, const std::function<void()>& watch = {});
inline void wait(MPI_Request request, const char* attempted, const std::function<void()>& watch = {}) {
  wait(std::span(&request, 1), attempted, watch);
}
[[nodiscard]] bool test(std::span<MPI_Request> requests, const char* attempted);

/// Whether MPI can still be called: after MPI_Finalize a call would end the process.
[[nodiscard]] bool finalized() noexcept;
/// Whether MPI_Finalize has ended. Until then it may wait for other processes.
[[nodiscard]] bool finalize_is_over() noexcept;
void check_alive();  ///< throws Error(ESHUTDOWN) if MPI was finalized

/// Calls a function when MPI_Finalize begins. The function may use MPI, but must not wait for other
/// processes. The destructor cancels the call.
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

/// A datatype that the destructor frees, unless it is predefined by MPI.
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
  /// A datatype of this many bytes, also more than an int can count.
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

/// Calls `call(count, type)` with a count and a datatype for this many bytes.
template <class Call>
auto with_bytes(std::size_t size_bytes, const Call& call) {
  if (size_bytes <= INT_MAX) return call(static_cast<int>(size_bytes), MPI_BYTE);
  Type type = Type::bytes(size_bytes);
  type.commit();
  return call(1, type.get());
}

}  // namespace outcore::transport::over_mpi
