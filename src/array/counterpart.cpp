#include "array/counterpart.hpp"

#include <cassert>
#include <cerrno>
#include <numeric>
#include <string>

#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::array {
namespace {

/// Bytes from the first element of `outer` to that of `inner`.
std::int64_t distance(const Box& outer, const Box& inner, const Extents& stride_bytes) {
  std::int64_t bytes = 0;
  for (int i = 0; i < outer.rank(); ++i) bytes += (inner.begin[i] - outer.begin[i]) * stride_bytes[i];
  return bytes;
}

}  // namespace

SectionCounterpart::SectionCounterpart(const GlobalArray& array, Section section, const Box& box)
    : array_(array), hold_(array.hold()), section_(std::move(section)), box_(box) {
  if (section_.order.empty()) {
    section_.order.resize(static_cast<std::size_t>(box.rank()));
    std::iota(section_.order.begin(), section_.order.end(), 0);
  }
  const std::string attempted = "transfer between section " + section_.box.text() + " and " + box.text();
  if (section_.box.rank() != array.shape().rank() || section_.box.rank() != box.rank())
    throw Error(EINVAL,
                {.attempted = attempted,
                 .detail = "the global array has " + std::to_string(array.shape().rank()) + " dimensions"});
  if (!Box::whole(array.shape()).contains(section_.box))
    throw Error(EINVAL, {.attempted = attempted,
                         .detail = "the section is not inside the global array " + array.shape().text()});
  if (const Extents shape = permuted(section_.box.shape(), section_.order); shape != box.shape())
    throw Error(EINVAL, {.attempted = attempted,
                         .detail = "the section has shape " + shape.text() + " in this order of axes, not " +
                                   box.shape().text()});
}

std::pair<Box, Strided> SectionCounterpart::in_section(const Box& box, const Strided& chunk) const {
  Box section = section_.box;
  Strided memory = chunk;
  for (int k = 0; k < box.rank(); ++k) {
    const int axis = section_.order[static_cast<std::size_t>(k)];
    section.begin[axis] = section_.box.begin[axis] + box.begin[k] - box_.begin[k];
    section.end[axis] = section_.box.begin[axis] + box.end[k] - box_.begin[k];
    memory.stride_bytes[axis] = chunk.stride_bytes[k];
  }
  return {section, memory};
}

void SectionCounterpart::get(const Box& box, const Strided& chunk, Pending& pending) const {
  const auto [section, memory] = in_section(box, chunk);
  pending.push_back(array_.get_async(section, memory));
}

void SectionCounterpart::put(const Box& box, const Strided& chunk, Pending& pending) const {
  const auto [section, memory] = in_section(box, chunk);
  assert(target_ != nullptr);
  pending.push_back(target_->put_async(section, memory));
}

BlockCounterpart::BlockCounterpart(const Strided& memory, const Box& box, ElementType type)
    : memory_(memory), box_(box), element_bytes_(size_bytes(type)) {}

Strided BlockCounterpart::at(const Box& box) const {
  return {memory_.data + distance(box_, box, memory_.stride_bytes), memory_.stride_bytes};
}

void BlockCounterpart::copy(const Box& box, const Strided& to, const Strided& from) const {
  copy_strided(to.data, to.stride_bytes, from.data, from.stride_bytes, box.shape(), element_bytes_);
}

void BlockCounterpart::get(const Box& box, const Strided& chunk, Pending&) const {
  copy(box, chunk, at(box));
}

void BlockCounterpart::put(const Box& box, const Strided& chunk, Pending&) const {
  copy(box, at(box), chunk);
}

RemoteCounterpart::RemoteCounterpart(transport::Segment& segment, int process, std::int64_t offset,
                                     const Box& box, ElementType type)
    : segment_(segment),
      process_(process),
      offset_(offset),
      box_(box),
      stride_bytes_(row_major(box.shape(), size_bytes(type))),
      type_(type) {}

transport::StridedTransfer RemoteCounterpart::transfer(const Box& box, const Strided& chunk) const {
  return {.process = process_,
          .offset = offset_ + distance(box_, box, stride_bytes_),
          .stride_bytes = stride_bytes_,
          .memory = chunk.data,
          .memory_stride_bytes = chunk.stride_bytes,
          .count = box.shape(),
          .type = type_};
}

void RemoteCounterpart::get(const Box& box, const Strided& chunk, Pending& pending) const {
  pending.push_back(segment_.get(transfer(box, chunk)));
}

void RemoteCounterpart::put(const Box& box, const Strided& chunk, Pending& pending) const {
  pending.push_back(segment_.put(transfer(box, chunk)));
}

}  // namespace outcore::array
