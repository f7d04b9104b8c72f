// The memory at the other end of a transfer of a disk array.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "outcore/disk_array.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/global_array.hpp"

namespace outcore::array {

/// One-sided operations under way.
using Pending = std::vector<Request>;

/// Waits for all of them, and throws the first error.
inline void complete(Pending& pending) {
  Pending begun = std::exchange(pending, {});
  wait_all(begun);
}

/// Elements are given by their place in the disk array; `chunk` is where they lie in memory of this process.
/// Operations that are begun are added to `pending`.
class Counterpart {
 public:
  virtual ~Counterpart() = default;
  virtual void get(const Box& box, const Strided& chunk, Pending& pending) const = 0;
  virtual void put(const Box& box, const Strided& chunk, Pending& pending) const = 0;
};

/// A section of a global array, which stays open until the transfer ends.
class SectionCounterpart final : public Counterpart {
 public:
  /// Throws Error(EINVAL) if the section does not fit the box, or is not inside the array.
  SectionCounterpart(const GlobalArray& array, Section section, const Box& box);  ///< to get from
  SectionCounterpart(GlobalArray& array, const Section& section, const Box& box)
      : SectionCounterpart(std::as_const(array), section, box) {
    target_ = &array;
  }
  void get(const Box& box, const Strided& chunk, Pending& pending) const override;
  void put(const Box& box, const Strided& chunk, Pending& pending) const override;

 private:
  [[nodiscard]] std::pair<Box, Strided> in_section(const Box& box, const Strided& chunk) const;

  const GlobalArray& array_;
  std::shared_ptr<void> hold_;
  GlobalArray* target_ = nullptr;
  Section section_;
  Box box_;
};

/// A block in the memory of this process.
class BlockCounterpart final : public Counterpart {
 public:
  BlockCounterpart(const Strided& memory, const Box& box, ElementType type);
  void get(const Box& box, const Strided& chunk, Pending& pending) const override;
  void put(const Box& box, const Strided& chunk, Pending& pending) const override;

 private:
  void copy(const Box& box, const Strided& to, const Strided& from) const;
  [[nodiscard]] Strided at(const Box& box) const;

  Strided memory_;
  Box box_;
  std::size_t element_bytes_;
};

/// A block in the one-sided memory of a process, row-major.
class RemoteCounterpart final : public Counterpart {
 public:
  RemoteCounterpart(transport::Segment& segment, int process, std::int64_t offset, const Box& box,
                    ElementType type);
  void get(const Box& box, const Strided& chunk, Pending& pending) const override;
  void put(const Box& box, const Strided& chunk, Pending& pending) const override;

 private:
  [[nodiscard]] transport::StridedTransfer transfer(const Box& box, const Strided& chunk) const;

  transport::Segment& segment_;
  int process_;
  std::int64_t offset_;
  Box box_;
  Extents stride_bytes_;
  ElementType type_;
};

}  // namespace outcore::array
