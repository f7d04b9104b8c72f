#include "tensor/boxes.hpp"

#include <utility>

#include "base/accumulate_strided.hpp"

namespace outcore::tensor {

void wait_for(Waits& waits) {
  while (!waits.empty()) {
    const auto first = std::move(waits.front());
    waits.erase(waits.begin());
    first();
  }
}

void wait_quietly(Waits& waits) noexcept {
  while (!waits.empty()) try {
      wait_for(waits);
    } catch (...) {  // the first error is thrown
    }
}

void add_request(Request request, Waits& waits) {
  waits.emplace_back([request = std::move(request)]() mutable { request.wait(); });
}

// ---- memory ----

std::optional<Strided> MemoryBoxes::view(const Box& box) {
  Strided found = memory_;
  for (int axis = 0; axis < box.rank(); ++axis) found.data += box.begin[axis] * memory_.stride_bytes[axis];
  return found;
}

void MemoryBoxes::get(const Box& box, const Strided& to, Waits& /*waits*/) {
  const Strided from = *view(box);
  copy_strided(to.data, to.stride_bytes, from.data, from.stride_bytes, box.shape(), size_bytes(type_));
}

void MemoryBoxes::put(const Box& box, const Strided& from, bool add, Waits& /*waits*/) {
  const Strided to = *view(box);
  if (add && box.rank() == 0)
    accumulate_strided(to.data, {0}, from.data, {0}, {1}, type_, one_of(type_));
  else if (add)
    accumulate_strided(to.data, to.stride_bytes, from.data, from.stride_bytes, box.shape(), type_,
                       one_of(type_));
  else
    copy_strided(to.data, to.stride_bytes, from.data, from.stride_bytes, box.shape(), size_bytes(type_));
}

// ---- arrays of all processes ----

void GlobalBoxes::get(const Box& box, const Strided& to, Waits& waits) {
  add_request(array_.get_async(box, to), waits);
}

void GlobalBoxes::put(const Box& box, const Strided& from, bool add, Waits& waits) {
  add_request(add ? array_.accumulate_async(box, from, nullptr) : array_.put_async(box, from), waits);
}

void DiskBoxes::get(const Box& box, const Strided& to, Waits& waits) {
  add_request(array_.get_async(box, to), waits);
}

void DiskBoxes::put(const Box& box, const Strided& from, bool add, Waits& waits) {
  add_request(add ? array_.accumulate_async(box, from, nullptr) : array_.put_async(box, from), waits);
}

// ---- sections ----

Box SectionBoxes::moved(Box box) const {
  box.begin[axis_] += begin_;
  box.end[axis_] += begin_;
  return box;
}

void SectionBoxes::prefetch(std::span<const Box> boxes) {
  std::vector<Box> all;
  for (const Box& box : boxes) all.push_back(moved(box));
  whole_->prefetch(all);
}

}  // namespace outcore::tensor
