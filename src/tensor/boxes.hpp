// Arrays as products see them: products get boxes of arrays into memory, and put them from there.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/box.hpp"
#include "outcore/disk_array_access.hpp"
#include "outcore/element_type.hpp"
#include "outcore/global_array.hpp"

namespace outcore::tensor {

/// Transfers under way. One thread waits for each once, in this order; a wait throws the error of the
/// transfer. Until then its memory is in use.
using Waits = std::vector<std::function<void()>>;

/// Waits for all transfers and removes them. Throws the first error; then the transfers that it has not
/// waited for stay.
OUTCORE_SIBLING void wait_for(Waits& waits);

/// An array. Element (i0, i1, ...) of a box lies at the sum of stride_bytes[k] * i_k in its memory. One
/// thread at a time begins gets and puts of one object.
class OUTCORE_SIBLING Boxes {
 public:
  Boxes() = default;
  virtual ~Boxes() = default;
  Boxes(const Boxes&) = delete;
  Boxes& operator=(const Boxes&) = delete;

  /// Begins a get of a box. It may leave out zero elements: the memory must be zero before.
  virtual void get(const Box& box, const Strided& to, Waits& waits) = 0;
  /// Begins to put or add a box.
  virtual void put(const Box& box, const Strided& from, bool add, Waits& waits) = 0;
  /// Gives a prefetch hint for boxes.
  virtual void prefetch(std::span<const Box> /*boxes*/) {}
  /// The box in place, if it lies in the memory of this process.
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

/// The part of an array that begins at an index along an axis.
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

/// An array to which several threads or processes add: each adds while it holds a lock, so there is no view,
/// in which a result would be made without it. `Mutex` has lock and unlock.
template <class Mutex>
class LockedAdds : public Boxes {
 public:
  LockedAdds(std::shared_ptr<Boxes> boxes, std::shared_ptr<Mutex> mutex)
      : boxes_(std::move(boxes)), mutex_(std::move(mutex)) {}
  void get(const Box& box, const Strided& to, Waits& waits) override { boxes_->get(box, to, waits); }
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override {
    if (!add) return boxes_->put(box, from, false, waits);
    const std::lock_guard held(*mutex_);
    Waits adds;
    boxes_->put(box, from, true, adds);
    wait_for(adds);
  }
  void prefetch(std::span<const Box> boxes) override { boxes_->prefetch(boxes); }

 private:
  std::shared_ptr<Boxes> boxes_;
  std::shared_ptr<Mutex> mutex_;
};

/// After an error: waits until no transfer is under way.
void wait_quietly(Waits& waits) noexcept;

/// Adds a request to the transfers, unless it is done.
void add_request(Request request, Waits& waits);

}  // namespace outcore::tensor
