// Arrays as products see them: boxes of them come into memory, and go from it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/box.hpp"
#include "outcore/disk_array_access.hpp"
#include "outcore/element_type.hpp"
#include "outcore/global_array.hpp"

namespace outcore::tensor {

/// Transfers under way. Each is waited for once, in this order, by one thread; that throws what it failed
/// with. Until then its memory is in use.
using Waits = std::vector<std::function<void()>>;

/// An array. Element (i0, i1, ...) of a box lies at the sum of stride_bytes[k] * i_k of its memory. Gets and
/// puts of one object are begun by one thread at a time.
class OUTCORE_SIBLING Boxes {
 public:
  Boxes() = default;
  virtual ~Boxes() = default;
  Boxes(const Boxes&) = delete;
  Boxes& operator=(const Boxes&) = delete;

  /// Starts to bring a box. What is zero is left out: the memory is zero there.
  virtual void get(const Box& box, const Strided& to, Waits& waits) = 0;
  /// Starts to put or add a box.
  virtual void put(const Box& box, const Strided& from, bool add, Waits& waits) = 0;
  /// Hints that boxes will be got soon.
  virtual void prefetch(std::span<const Box> /*boxes*/) {}
  /// The box itself, where it lies in the memory of this process.
  [[nodiscard]] virtual std::optional<Strided> view(const Box& /*box*/) { return std::nullopt; }
};

/// Memory of this process, which the caller keeps.
class OUTCORE_SIBLING MemoryBoxes : public Boxes {
 public:
  MemoryBoxes(const Strided& memory, ElementType type) : memory_(memory), type_(type) {}
  void get(const Box& box, const Strided& to, Waits& waits) override;
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override;
  [[nodiscard]] std::optional<Strided> view(const Box& box) override;

 private:
  Strided memory_;
  ElementType type_;
};

/// A global array.
class OUTCORE_SIBLING GlobalBoxes : public Boxes {
 public:
  explicit GlobalBoxes(GlobalArray& array) : array_(array) {}
  void get(const Box& box, const Strided& to, Waits& waits) override;
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override;

 private:
  GlobalArray& array_;
};

/// A disk array.
class OUTCORE_SIBLING DiskBoxes : public Boxes {
 public:
  explicit DiskBoxes(DiskArrayAccess& array) : array_(array) {}
  void get(const Box& box, const Strided& to, Waits& waits) override;
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override;
  void prefetch(std::span<const Box> boxes) override { array_.prefetch(boxes); }

 private:
  DiskArrayAccess& array_;
};

/// The part of an array that begins at a place along an axis.
class OUTCORE_SIBLING SectionBoxes : public Boxes {
 public:
  SectionBoxes(std::shared_ptr<Boxes> whole, int axis, std::int64_t begin)
      : whole_(std::move(whole)), axis_(axis), begin_(begin) {}
  void get(const Box& box, const Strided& to, Waits& waits) override { whole_->get(moved(box), to, waits); }
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override {
    whole_->put(moved(box), from, add, waits);
  }
  void prefetch(std::span<const Box> boxes) override;
  [[nodiscard]] std::optional<Strided> view(const Box& box) override { return whole_->view(moved(box)); }

 private:
  [[nodiscard]] Box moved(Box box) const;

  std::shared_ptr<Boxes> whole_;
  int axis_;
  std::int64_t begin_;
};

/// Waits for all, and forgets them. Throws the first error, and then keeps those that were not waited for.
void wait_for(Waits& waits);
/// After an error: nothing is under way any more.
void wait_quietly(Waits& waits) noexcept;

/// Adds a request to those that are waited for, unless it is done.
void add_request(Request request, Waits& waits);

}  // namespace outcore::tensor
