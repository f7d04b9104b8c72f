// Transfers between disk arrays and the patches that processes hold of global arrays.

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "compat/dra.hpp"
#include "compat/dra_arrays.hpp"
#include "compat/global_arrays.hpp"
#include "compat/processes.hpp"
#include "outcore/compat/dra.h"

namespace outcore::compat {
namespace {

/// Each process reads sections up to this size for itself. A collective transfer synchronises all processes
/// several times, which takes longer than a read of a thin slice.
constexpr std::int64_t small_bytes = std::int64_t{1} << 20;

struct Pending {
  int d_a = 0, g_a = 0;
  std::int64_t request = 0;
  bool reads = false, direct = false, any = false;
  bool alone = false;      ///< each process reads for itself, so an error belongs to this process alone
  bool destroyed = false;  ///< the global array; its number may belong to another one now
  Patch patch;             ///< of the global array
  std::shared_ptr<std::vector<std::byte>> buffer;
  int code = OC_OK;  ///< of a read that could not begin
  std::string text, filename;
};

auto& requests = *new Numbered<Pending>;

std::string text_of(const Patch& patch, int axes) {
  std::string text = "[";
  for (int k = 0; k < axes; ++k)
    text += (k ? "," : "") + std::to_string(patch.lo[static_cast<std::size_t>(k)]) + ":" +
            std::to_string(patch.hi[static_cast<std::size_t>(k)]);
  return text + "]";
}

bool inside(const Patch& patch, const Axes& shape, int axes) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k)
    if (patch.lo[k] < 1 || patch.hi[k] > shape[k] || patch.lo[k] > patch.hi[k]) return false;
  return true;
}

Patch whole(const Axes& shape, int axes) {
  Patch patch;
  for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k) patch.lo[k] = 1, patch.hi[k] = shape[k];
  return patch;
}

/// The checked arguments of a transfer, the same at all processes.
struct Transfer {
  Array array;
  Patch section, box;
  int axes = 0;
  bool transposes = false;

  [[nodiscard]] std::size_t array_axis(std::size_t k) const {
    return transposes ? static_cast<std::size_t>(axes) - 1 - k : k;
  }
};

/// Checks that the processes can move the array. Arrays of different groups may have the same number, and a
/// process outside the group of the array cannot move its part. Nodes hold mirrored arrays, so all processes
/// of a node must take part.
int check_group(int g_a, const Members& callers, const std::string& attempted) {
  if (!pnga_get_pgroup) return OC_OK;
  const bool mirrored = pnga_is_mirrored && pnga_is_mirrored(g_a);
  return check_callers(callers, members_of(mirrored ? -1 : pnga_get_pgroup(g_a)),
                       attempted + ": the global array " + std::to_string(g_a));
}

int check(bool writes, bool transposes, int g_a, const Patch* section, int d_a, const Patch* box,
          Transfer* transfer) {
  if (!dra_started()) return failed(EINVAL, "DRA: dra_init was not called");
  if (!pnga_sync || !pnga_access_ptr)
    return failed(ENOTSUP, "DRA: the program has no Global Arrays, or hides them");
  const auto array = open_arrays().get(d_a);
  if (!array) return closed(d_a);
  const std::string attempted =
      std::string("DRA: ") + (writes ? "write to " : "read from ") + array->facts.filename;
  if (array->mode == (writes ? DRA_R : DRA_W))
    return failed(EACCES, attempted + ": it was opened to " + (writes ? "read" : "write") + " only");
  if (!pnga_valid_handle(g_a))
    return failed(EBADF, attempted + ": there is no global array " + std::to_string(g_a));
  const Members callers = calling_processes();
  if (const int code = check_callers(callers, array->members, attempted)) return code;
  if (const int code = check_group(g_a, callers, attempted)) return code;
  Integer type = 0, axes = 0, dims[max_axes] = {};
  pnga_inquire(g_a, &type, &axes, dims);
  if (element_type(static_cast<int>(type)) != array->element)
    return failed(EINVAL, attempted + ": it is of type " + std::to_string(array->facts.type) +
                              ", the global array of type " + std::to_string(type));
  if (axes != array->facts.axes)
    return failed(EINVAL, attempted + ": it has " + std::to_string(array->facts.axes) +
                              " axes, the global array " + std::to_string(axes));
  Axes shape{};
  std::copy_n(dims, axes, shape.begin());
  *transfer = {*array, section ? *section : whole(shape, static_cast<int>(axes)),
               box ? *box : whole(array->facts.shape, static_cast<int>(axes)), static_cast<int>(axes),
               transposes};
  if (!inside(transfer->section, shape, transfer->axes))
    return failed(EINVAL, attempted + ": section " + text_of(transfer->section, transfer->axes) +
                              " is not inside the global array " +
                              text_of(whole(shape, transfer->axes), transfer->axes));
  if (!inside(transfer->box, array->facts.shape, transfer->axes))
    return failed(EINVAL, attempted + ": section " + text_of(transfer->box, transfer->axes) +
                              " is not inside " +
                              text_of(whole(array->facts.shape, transfer->axes), transfer->axes));
  for (std::size_t k = 0; k < static_cast<std::size_t>(transfer->axes); ++k) {
    const std::size_t a = transfer->array_axis(k);
    if (transfer->section.hi[k] - transfer->section.lo[k] != transfer->box.hi[a] - transfer->box.lo[a])
      return failed(EINVAL, attempted + ": section " + text_of(transfer->box, transfer->axes) +
                                " has another shape than " + text_of(transfer->section, transfer->axes) +
                                " of the global array" + (transposes ? ", transposed" : ""));
  }
  return OC_OK;
}

/// The part of a section that this process moves: the elements that it holds, in place. If it does not hold a
/// single patch of the array, an even share of the last axis, through a buffer.
struct Part {
  Patch patch;
  bool any = false, direct = true;
  std::shared_ptr<std::vector<std::byte>> buffer;  ///< unless `direct`
};

Part own_part(int g_a, const Transfer& transfer, bool writes) {
  Part part;
  const auto axes = static_cast<std::size_t>(transfer.axes);
  const bool mirrored = pnga_is_mirrored && pnga_is_mirrored(g_a);
  auto me = pnga_nodeid();
  auto processes = pnga_nnodes();
  part.direct = !(pnga_total_blocks && pnga_total_blocks(g_a) >= 0) && !mirrored;
  if (mirrored && !writes) {  // each node has all elements, and reads them
    const Integer node = pnga_cluster_nodeid();
    processes = pnga_cluster_nprocs(node);
    if (pnga_pgroup_nodeid) me = pnga_pgroup_nodeid(-1);
    Integer number = 0;
    while (number + 1 < processes && pnga_cluster_procid(node, number) != me) ++number;
    me = number;
  }
  part.patch = transfer.section;
  part.any = true;
  if (part.direct) {
    Integer lo[max_axes] = {}, hi[max_axes] = {};
    if (pnga_get_pgroup && pnga_pgroup_nodeid) me = pnga_pgroup_nodeid(pnga_get_pgroup(g_a));
    pnga_distribution(g_a, me, lo, hi);
    for (std::size_t k = 0; k < axes; ++k) {
      part.patch.lo[k] = std::max<std::int64_t>(part.patch.lo[k], lo[k]);
      part.patch.hi[k] = std::min<std::int64_t>(part.patch.hi[k], hi[k]);
      part.any = part.any && lo[k] > 0 && part.patch.lo[k] <= part.patch.hi[k];
    }
  } else {
    const std::int64_t first = part.patch.lo[axes - 1], count = part.patch.hi[axes - 1] - first + 1;
    part.patch.lo[axes - 1] = first + count * me / processes;
    part.patch.hi[axes - 1] = first + count * (me + 1) / processes - 1;
    part.any = part.patch.lo[axes - 1] <= part.patch.hi[axes - 1];
  }
  return part;
}

/// Bytes of the elements of a patch.
std::int64_t size_bytes(const Patch& patch, const Transfer& transfer) {
  auto bytes = static_cast<std::int64_t>(oc_element_bytes(transfer.array.element));
  for (std::size_t k = 0; k < static_cast<std::size_t>(transfer.axes); ++k)
    bytes *= patch.hi[k] - patch.lo[k] + 1;
  return bytes;
}

/// Allocates before the processes agree, because one may have no memory. Returns a code.
int make_buffer(const Transfer& transfer, Part* part) {
  if (!part->any || part->direct) return OC_OK;
  const std::int64_t bytes = size_bytes(part->patch, transfer);
  try {
    part->buffer = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(bytes));
    return OC_OK;
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM, "DRA: no memory for " + std::to_string(bytes) +
                              " bytes of a global array on their way to or from " +
                              transfer.array.facts.filename);
  }
}

void copy(const Patch& patch, Integer* lo, Integer* hi) {
  std::copy(patch.lo.begin(), patch.lo.end(), lo);
  std::copy(patch.hi.begin(), patch.hi.end(), hi);
}

/// Leading dimensions of contiguous memory of a patch.
void leading(const Patch& patch, int axes, Integer* ld) {
  for (int k = 0; k + 1 < axes; ++k)
    ld[k] = static_cast<Integer>(patch.hi[static_cast<std::size_t>(k)] -
                                 patch.lo[static_cast<std::size_t>(k)] + 1);
}

/// Whether a write of this array was begun here and not waited for.
bool is_written(int d_a) {
  bool writes = false;
  requests.for_each(
      [&](int, Pending& pending) { writes = writes || (pending.d_a == d_a && !pending.reads); });
  return writes;
}

/// Waits for earlier reads, so that a write comes after them.
void complete_reads_of(int d_a) {
  requests.for_each([&](int, Pending& pending) {
    int which = 0;
    if (pending.d_a == d_a && pending.alone && pending.request > 0) oc_wait_any(1, &pending.request, &which);
  });
}

/// Waits for the part of this process. Returns a code.
int wait_for(Pending& pending) {
  int code = pending.code;
  if (code) {
    failed(code, pending.text);
  } else if (pending.request > 0) {
    code = oc_wait(pending.request, nullptr);
    if (code) failed(code);
  }
  if (pending.any && !pending.destroyed && !pnga_valid_handle(pending.g_a))
    // Its memory is not in windows of MPI: nobody could wait for this.
    return failed(EBADF, "DRA: the global array " + std::to_string(pending.g_a) + " of a transfer of " +
                             pending.filename + " was destroyed before dra_wait");
  return code;
}

/// Gives the memory of a global array back after a transfer, updated if elements were read.
void give_back(const Pending& pending, bool is_read) {
  if (!pending.any || pending.destroyed || !pnga_valid_handle(pending.g_a)) return;
  Integer lo[max_axes], hi[max_axes], ld[max_axes] = {};
  copy(pending.patch, lo, hi);
  if (pending.direct) {
    (pending.reads ? pnga_release_update : pnga_release)(pending.g_a, lo, hi);
  } else if (is_read) {
    leading(pending.patch, static_cast<int>(pnga_ndim(pending.g_a)), ld);
    pnga_put(pending.g_a, lo, hi, pending.buffer->data(), ld);
  }
}

}  // namespace

void finish_transfers_of_destroyed_arrays() noexcept {
  requests.for_each([](int, Pending& pending) {
    int which = 0;
    if (!pending.any || pending.destroyed || pnga_valid_handle(pending.g_a)) return;
    pending.destroyed = true;
    if (pending.direct && pending.request > 0)
      oc_wait_any(1, &pending.request, &which);  // its error is for dra_wait
  });
}

int dra_move(bool writes, bool transposes, int g_a, const Patch* section, int d_a, const Patch* box,
             int* request) {
  Transfer transfer;
  *request = DRA_REQ_INVALID;
  Part part;
  int number = 0;
  Vote written{is_written(d_a)};
  // All allocations come first, so that the others learn if one process lacks memory.
  const int own = guarded([&]() -> int {
    if (const int code = check(writes, transposes, g_a, section, d_a, box, &transfer)) return code;
    part = own_part(g_a, transfer, writes);
    if (const int code = make_buffer(transfer, &part)) return code;
    number = requests.add({});
    return OC_OK;
  });
  const int refused = agreed(own, "DRA: another process has refused the transfer", &written);
  if (refused) {
    requests.take(number);
    return refused;
  }
  if (writes) complete_reads_of(d_a);
  pnga_sync();  // the puts of others are complete, or no longer needed
  const int axes = transfer.axes;
  Pending pending;
  pending.d_a = d_a;
  pending.g_a = g_a;
  pending.reads = !writes;
  pending.direct = part.direct;
  pending.any = part.any;
  pending.alone = !writes && size_bytes(transfer.section, transfer) <= small_bytes && !written.any;
  pending.patch = part.patch;
  pending.buffer = part.buffer;
  pending.filename = transfer.array.facts.filename;
  std::int64_t begin[max_axes] = {}, end[max_axes] = {}, strides[max_axes] = {};
  std::byte* memory = nullptr;
  if (part.any) {
    const auto element_bytes = static_cast<std::int64_t>(oc_element_bytes(transfer.array.element));
    Integer lo[max_axes], hi[max_axes], ld[max_axes] = {};
    copy(part.patch, lo, hi);
    if (part.direct) {
      pnga_access_ptr(g_a, lo, hi, static_cast<void*>(&memory), ld);
    } else {
      memory = part.buffer->data();
      leading(part.patch, axes, ld);
      if (writes) pnga_get(g_a, lo, hi, memory, ld);
    }
    std::int64_t stride = element_bytes;
    for (std::size_t k = 0; k < static_cast<std::size_t>(axes); ++k) {
      const std::size_t a = transfer.array_axis(k), c = static_cast<std::size_t>(axes) - 1 - a;
      begin[c] = transfer.box.lo[a] - 1 + part.patch.lo[k] - transfer.section.lo[k];
      end[c] = begin[c] + part.patch.hi[k] - part.patch.lo[k] + 1;
      strides[c] = stride;
      if (k + 1 < static_cast<std::size_t>(axes)) stride *= ld[k];
    }
  }
  if (writes && !part.direct) pnga_sync();  // helps others that get, who may need this process for it
  if (pending.alone) {
    if (part.any) pending.code = oc_dra_get_async(d_a, begin, end, memory, strides, &pending.request);
    if (pending.code) pending.text = oc_last_error();  // dra_wait returns it, and tells the others
    requests.put(*request = number, std::move(pending));
    return OC_OK;
  }
  const int code = writes ? oc_dra_write_blocks_all_async(d_a, begin, end, memory, strides, &pending.request)
                          : oc_dra_read_blocks_all_async(d_a, begin, end, memory, strides, &pending.request);
  if (code) {
    requests.take(number);
    return failed(code);
  }
  requests.put(*request = number, std::move(pending));
  return OC_OK;
}

int dra_wait_for(int request) {
  Vote none{request == DRA_REQ_INVALID};
  auto pending = requests.take(request);
  int code = OC_OK;
  if (pending)
    code = wait_for(*pending);
  else if (!none.any && !requests.was_given(request))  // else the program has waited for it before
    code = failed(EINVAL, "DRA: there is no request " + std::to_string(request));
  const bool together = pnga_sync && dra_started();  // else there are no other processes
  if (together)
    code = agreed(code,
                  "DRA: " + (pending ? "the transfer of " + pending->filename : "a transfer") +
                      " has failed at another process, or that has no such request",
                  &none);
  if (code == OC_OK && none.any && !none.all)
    code = failed(EINVAL, "DRA: dra_wait has DRA_REQ_INVALID at some processes, and a request at others");
  if (pending) give_back(*pending, pending->reads && code == OC_OK);
  if (together) pnga_sync();  // also helps others that put
  return code;
}

int dra_look(int request, bool* done) {
  *done = true;
  if (request == DRA_REQ_INVALID) return OC_OK;
  const auto pending = requests.get(request);
  if (!pending && requests.was_given(request)) return OC_OK;
  if (!pending) return failed(EINVAL, "DRA: there is no request " + std::to_string(request));
  int its_done = 1;
  if (pending->request == 0) return OC_OK;  // this process holds nothing of it
  if (const int code = oc_test(pending->request, &its_done)) return failed(code);
  *done = its_done != 0;
  return OC_OK;
}
}  // namespace outcore::compat
