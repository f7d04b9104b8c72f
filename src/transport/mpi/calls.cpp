#include "transport/mpi/calls.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "base/pause.hpp"
#include "outcore/error.hpp"

#ifdef OPEN_MPI
extern "C" __attribute__((weak)) volatile std::int32_t ompi_mpi_state;  // of Open MPI 4 and 5
#endif

namespace outcore::transport::over_mpi {
namespace {

// Processes that make the same call at the same time meet within this time, or, if they share a core, within
// this many yields; a sleep and a wake-up take longer.
constexpr std::chrono::microseconds awake{50};
constexpr int min_yields = 20;
constexpr std::chrono::seconds watch_every{1};

}  // namespace

void check(int code, const char* attempted) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::string detail(text, static_cast<std::size_t>(length));
  std::replace(detail.begin(), detail.end(), '\n', ' ');
  throw Error(errno_of(code), {.attempted = attempted, .detail = "MPI: " + detail});
}

int error_class(int code) noexcept {
  int kind = MPI_ERR_OTHER;
  MPI_Error_class(code, &kind);
  return kind;
}

int errno_of(int code) noexcept {
  if (code == MPI_SUCCESS) return 0;
  return error_class(code) == MPI_ERR_NO_MEM ? ENOMEM : EIO;
}

bool test(std::span<MPI_Request> requests, const char* attempted) {
  int done = 0;
  check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
        attempted);
  return done != 0;
}

void wait(std::span<MPI_Request> requests, const char* attempted, const std::function<void()>& watch) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + awake;
  for (int yields = 0; yields < min_yields || Clock::now() < end; ++yields) {
    if (test(requests, attempted)) return;
    std::this_thread::yield();
  }
  auto watched = Clock::now();
  for (Pause pause; !test(requests, attempted); pause()) {
    if (!watch || Clock::now() - watched < watch_every) continue;
    watch();
    watched = Clock::now();
  }
}

bool finalized() noexcept {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

bool finalize_is_over() noexcept {
#ifdef OPEN_MPI
  // There, MPI_Finalized is true as soon as the attributes of MPI_COMM_SELF are deleted.
  constexpr int completed = 5;
  if (&ompi_mpi_state) return ompi_mpi_state >= completed;
#endif
  return finalized();
}

void check_alive() {
  if (finalized())
    throw Error(ESHUTDOWN,
                {.attempted = "use MPI", .detail = "MPI_Finalize was called; close worlds before"});
}

// MPI_Finalize first deletes the attributes of MPI_COMM_SELF.
AtFinalize::AtFinalize(std::function<void()> body) : body_(std::move(body)) {
  check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &call, &keyval_, nullptr), "make an attribute");
  check(MPI_Comm_set_attr(MPI_COMM_SELF, keyval_, this), "set an attribute");
}

AtFinalize::~AtFinalize() {
  if (finalized()) return;
  body_ = nullptr;
  MPI_Comm_delete_attr(MPI_COMM_SELF, keyval_);
  MPI_Comm_free_keyval(&keyval_);
}

int AtFinalize::call(MPI_Comm, int, void* self, void*) {
  if (const auto& body = static_cast<AtFinalize*>(self)->body_) body();
  return MPI_SUCCESS;
}

MPI_Datatype datatype(ElementType type) {
  switch (type) {
    case ElementType::int8:
      return MPI_INT8_T;
    case ElementType::int16:
      return MPI_INT16_T;
    case ElementType::int32:
      return MPI_INT32_T;
    case ElementType::int64:
      return MPI_INT64_T;
    case ElementType::uint8:
      return MPI_UINT8_T;
    case ElementType::float32:
      return MPI_FLOAT;
    case ElementType::float64:
      return MPI_DOUBLE;
    case ElementType::complex64:
      return MPI_C_FLOAT_COMPLEX;
    case ElementType::complex128:
      break;
  }
  return MPI_C_DOUBLE_COMPLEX;
}

Type Type::contiguous(std::int64_t count, const Type& of) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(count), of.get(), &type), "make a datatype");
  return {type, true};
}

Type Type::strided(std::int64_t count, std::int64_t stride_bytes, const Type& of) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check(MPI_Type_create_hvector(static_cast<int>(count), 1, static_cast<MPI_Aint>(stride_bytes), of.get(),
                                &type),
        "make a datatype");
  return {type, true};
}

Type Type::bytes(std::size_t count) {
  constexpr std::size_t block = std::size_t{1} << 30;
  const Type blocks = contiguous(block, Type(MPI_BYTE));
  int lengths[] = {static_cast<int>(count / block), static_cast<int>(count % block)};
  MPI_Aint places[] = {0, static_cast<MPI_Aint>(count / block * block)};
  MPI_Datatype types[] = {blocks.get(), MPI_BYTE};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check(MPI_Type_create_struct(2, lengths, places, types, &type), "make a datatype");
  return {type, true};
}

}  // namespace outcore::transport::over_mpi
