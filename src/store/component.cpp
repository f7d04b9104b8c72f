// The file of a component, its table, and the space it takes. Requests are in component_requests.cpp.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "outcore/error.hpp"
#include "store/checksum.hpp"
#include "store/component_state.hpp"

namespace outcore::store {
namespace {

constexpr std::int64_t free_part = 8;  // unused space is kept up to the free space divided by this

std::string hex(std::uint32_t value) {
  char text[11];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

}  // namespace

// ---- the file and its table

Component::State::State(const std::string& path, SlotTable made, const ComponentOptions& chosen, bool create)
    : table(std::move(made)),
      options(chosen),
      file(path, {.create = create,
                  .exclusive = create,
                  .read_only = chosen.read_only,
                  .page_cache = chosen.page_cache,
                  .expected_bytes = table.geometry().file_bytes(),
                  .engine = chosen.engine,
                  .unlink_after_open = chosen.unlink_after_open,
                  .directory = chosen.directory}) {
  table.account_to(options.account);
  if (encodes())
    table.for_each_written([&](std::int64_t slot) {
      table.set_room(slot, round_up(table.stored_bytes(slot), Geometry::page_bytes));
    });
}

bool Component::State::keeps(std::int64_t unused_bytes) const {
  if (!options.keep_space || encodes()) return false;
  std::error_code unknown;
  const auto space = std::filesystem::space(file.path(), unknown);
  return !unknown && static_cast<std::int64_t>(space.available) / free_part >= unused_bytes;
}

std::string Component::State::named(std::int64_t slot) const {
  return "slot " + std::to_string(slot) + (options.describe ? ", " + options.describe(slot) : "");
}

void Component::State::check_slots(const char* attempted, std::int64_t first, std::int64_t count,
                                   std::size_t memory_bytes) const {
  if (first < 0 || count < 0 || first > geometry().slots || count > geometry().slots - first)
    throw Error(EINVAL, {.attempted = attempted,
                         .path = file.path(),
                         .detail = std::to_string(count) + " slots from " + std::to_string(first) +
                                   " on; there are " + std::to_string(geometry().slots)});
  if (static_cast<std::int64_t>(memory_bytes) != count * geometry().stride_bytes())
    throw Error(EINVAL, {.attempted = attempted,
                         .path = file.path(),
                         .size_bytes = static_cast<std::int64_t>(memory_bytes),
                         .detail = "memory for " + std::to_string(count) + " slots must have " +
                                   std::to_string(count * geometry().stride_bytes()) + " bytes"});
}

/// Whether the blocks from `first_block` on are those that were written. `bytes` has all of them, read at
/// `offset`.
void Component::State::verify(std::int64_t slot, std::int64_t first_block, std::span<const std::byte> bytes,
                              std::int64_t offset) const {
  const auto expected = table.checksums(slot);
  const auto block_bytes = static_cast<std::size_t>(geometry().block_bytes);
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    const std::size_t block = static_cast<std::size_t>(first_block) + at / block_bytes;
    const auto part = bytes.subspan(at, std::min(block_bytes, bytes.size() - at));
    const std::uint32_t found = crc32c(part);
    if (found == expected[block]) continue;
    throw Error(EIO, {.attempted = "read",
                      .path = file.path(),
                      .offset = offset + static_cast<std::int64_t>(at),
                      .size_bytes = static_cast<std::int64_t>(part.size()),
                      .detail = "damaged: block " + std::to_string(block) + " of " + named(slot) +
                                " has checksum " + hex(found) + ", expected " + hex(expected[block])});
  }
}

void KeptState::add(std::int64_t slot, int side) {
  if (!ranges_.empty() && ranges_.back().end() == slot && ranges_.back().side == side)
    ++ranges_.back().count;
  else
    ranges_.push_back({{slot, 1}, side});
}

int KeptState::side(std::int64_t slot) const noexcept {
  const auto next = std::ranges::upper_bound(ranges_, slot, {}, &SideRange::first_slot);
  if (next == ranges_.begin()) return -1;
  const SideRange& range = *std::prev(next);
  return slot < range.end() ? range.side : -1;
}

int KeptState::sides() const noexcept {
  int most = -1;
  for (const SideRange& range : ranges_) most = std::max(most, range.side);
  return most + 1;
}

std::uint64_t Component::State::taken(std::int64_t slot) const noexcept {
  std::uint64_t bits = 0;
  for (const KeptState& each : kept)
    if (const int side = each.side(slot); side >= 0) bits |= std::uint64_t{1} << side;
  return bits;
}

int Component::State::next_side(std::int64_t slot) const {
  const int side = table.next_side(slot, taken(slot));
  if (side < 0)
    throw Error(EBUSY, {.attempted = "write",
                        .path = file.path(),
                        .detail = named(slot) + " is read in " + std::to_string(SlotTable::max_sides) +
                                  " states at the same time, the most that are possible"});
  return side;
}

bool Component::State::in_use(std::int64_t slot, int side) const noexcept {
  return (table.written(slot) && table.side(slot) == side) || is_kept(slot, side);
}

void Component::State::grow(int side) {
  if (side < sides_in_file.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(grow_mutex);
  if (side < sides_in_file.load(std::memory_order_relaxed)) return;
  file.truncate((side + 1) * side_bytes());
  sides_in_file.store(side + 1, std::memory_order_release);
}

void Component::State::shrink() {
  int needed = table.sides();
  for (const KeptState& each : kept) needed = std::max(needed, each.sides());
  if (needed >= sides_in_file.load()) return;
  file.truncate(needed * side_bytes());
  sides_in_file.store(needed);
}

std::int64_t Component::State::room_at(std::int64_t slot, int side) const noexcept {
  return encodes() && table.written(slot) && table.side(slot) == side ? table.room(slot) : 0;
}

/// Reserves space before a version overwrites a smaller one, so that a full disk cannot leave parts of both.
/// Reserving waits for all direct I/O of the file, so the table notes the space that a slot already has.
void Component::State::make_room(std::int64_t slot, int side, std::int64_t size) {
  const std::int64_t before = room_at(slot, side), after = round_up(size, Geometry::page_bytes);
  if (before > 0 && after > before) file.reserve(geometry().offset_of(slot, side) + before, after - before);
}

/// After a version was written: gives unused space back, if it is much, because giving back waits as
/// reserving does.
void Component::State::publish(std::int64_t slot, int side, std::int64_t size,
                               std::span<const std::uint32_t> checksums) {
  const std::int64_t before = room_at(slot, side), after = round_up(size, Geometry::page_bytes);
  table.set(slot, side, size, checksums);
  if (!encodes()) return;
  const bool shrinks = before > 2 * after;
  table.set_room(slot, shrinks ? after : std::max(before, after));
  if (shrinks) file.punch(geometry().offset_of(slot, side) + after, before - after);
}

Component::Component(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
Component::Component(Component&&) noexcept = default;
Component& Component::operator=(Component&& other) noexcept {
  state_.swap(other.state_);
  return *this;
}

Component::~Component() {
  try {
    if (state_) close();
  } catch (const std::exception&) {  // documented: call close() to see it
  }
}

Component Component::create(const std::string& path, const Geometry& geometry,
                            const ComponentOptions& options) {
  auto state = std::make_shared<State>(path, SlotTable(geometry), options, true);
  try {
    // All of its length at once: a file that grows is written by one request at a time on most file systems.
    // Measured: [M17].
    state->file.truncate(geometry.file_bytes());
    state->sides_in_file = static_cast<int>(geometry.sides());
    if (options.preallocate) state->file.preallocate(geometry.slots * geometry.stride_bytes());
  } catch (...) {
    if (!options.unlink_after_open) std::remove(path.c_str());
    throw;
  }
  return Component(std::move(state));
}

Component Component::open(const std::string& path, SlotTable table, const ComponentOptions& options) {
  auto state = std::make_shared<State>(path, std::move(table), options, false);
  const std::int64_t length = state->file.length(), side_bytes = state->side_bytes();
  const std::int64_t need =
      std::max<std::int64_t>(state->table.sides(), state->geometry().sides()) * side_bytes;
  // States that are read, or a process that died, may have left more sides, which are whole.
  const bool longer = state->geometry().shadow && side_bytes > 0 && length > need &&
                      length % side_bytes == 0 && length / side_bytes <= SlotTable::max_sides;
  if (length != need && !longer)
    throw Error(EIO, {.attempted = "open",
                      .path = path,
                      .detail = std::string(length < need ? "truncated" : "too long") + ": have " +
                                std::to_string(length) + " bytes, need " + std::to_string(need)});
  state->sides_in_file = side_bytes > 0 ? static_cast<int>(length / side_bytes) : 0;
  return Component(std::move(state));
}

const Geometry& Component::geometry() const noexcept {
  return state_->geometry();
}
const SlotTable& Component::table() const noexcept {
  return state_->table;
}
const std::string& Component::path() const noexcept {
  return state_->file.path();
}

// ---- the component as a whole

void Component::flush() {
  state_->undelivered.raise();
  state_->file.flush();
}

std::vector<std::byte> Component::encode_table() const {
  return state_->table.encode();
}

void Component::keep(std::uint64_t state, const SlotTable& its_table) {
  KeptState kept(state);
  its_table.for_each_written([&](std::int64_t slot) { kept.add(slot, its_table.side(slot)); });
  state_->kept.push_back(std::move(kept));
}

namespace {

/// Gives back places to which nothing refers any more, neighbours together: a system call for each would take
/// longer than their writes did.
class Unused {
 public:
  explicit Unused(const Geometry& geometry) : geometry_(geometry) {}

  /// For each side, slots in ascending order, as far as possible.
  void add(std::int64_t slot, int side) {
    if (ranges_.size() <= static_cast<std::size_t>(side)) ranges_.resize(static_cast<std::size_t>(side) + 1);
    auto& ranges = ranges_[static_cast<std::size_t>(side)];
    const std::int64_t begin = geometry_.offset_of(slot, side), end = begin + geometry_.stride_bytes();
    if (!ranges.empty() && ranges.back().second == begin)
      ranges.back().second = end;
    else
      ranges.emplace_back(begin, end);
    if (side < geometry_.sides()) reusable_bytes_ += geometry_.stride_bytes();
  }

  /// On the sides that always exist.
  [[nodiscard]] std::int64_t reusable_bytes() const noexcept { return reusable_bytes_; }

  void give_back(device::File& file, bool also_reusable) const {
    for (std::size_t side = also_reusable ? 0 : static_cast<std::size_t>(geometry_.sides());
         side < ranges_.size(); ++side)
      for (const auto& [begin, end] : ranges_[side]) file.punch(begin, end - begin);
  }

 private:
  const Geometry& geometry_;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges_;  ///< of each side
  std::int64_t reusable_bytes_ = 0;
};

}  // namespace

void Component::committed(std::uint64_t before, const std::function<bool(std::uint64_t state)>& is_read) {
  State& state = *state_;
  const Geometry& geometry = state.geometry();
  std::vector<KeptState> gone;
  for (KeptState& each : std::exchange(state.kept, {}))
    (is_read && is_read(each.number()) ? state.kept : gone).push_back(std::move(each));
  if (is_read && is_read(before)) {
    KeptState& last = state.kept.emplace_back(before);
    state.table.for_each_written([&](std::int64_t slot) {
      if (const int side = state.table.committed_side(slot); side >= 0) last.add(slot, side);
    });
  }
  // First the whole table, then the disk, whose failure must not leave half a change.
  Unused unused(geometry);
  state.table.commit([&](std::int64_t slot, int side) {
    if (!state.is_kept(slot, side)) unused.add(slot, side);
  });
  for (const KeptState& each : gone)
    each.for_each([&](std::int64_t slot, int side) {
      if (!state.in_use(slot, side)) unused.add(slot, side);
    });
  state.shrink();
  unused.give_back(state.file, unused.reusable_bytes() > 0 && !state.keeps(unused.reusable_bytes()));
}

void Component::release_unused() {
  State& state = *state_;
  const Geometry& geometry = state.geometry();
  state.shrink();
  if (state.keeps(state.file.space_bytes() - state.table.total_stored_bytes())) return;
  // The ranges between slots in use, in the order of the file.
  std::vector<std::pair<std::int64_t, std::int64_t>> used;
  state.table.for_each_written([&](std::int64_t slot) {
    used.emplace_back(geometry.offset_of(slot, state.table.side(slot)),
                      round_up(state.table.stored_bytes(slot), Geometry::page_bytes));
  });
  for (const KeptState& each : state.kept)
    each.for_each([&](std::int64_t slot, int side) {
      used.emplace_back(geometry.offset_of(slot, side), geometry.stride_bytes());
    });
  std::ranges::sort(used);
  std::int64_t unused = 0;
  for (const auto& [begin, bytes] : used) {
    if (begin > unused) state.file.punch(unused, begin - unused);
    unused = std::max(unused, begin + bytes);
  }
  const std::int64_t end = state.sides_in_file * state.side_bytes();
  if (unused < end) state.file.punch(unused, end - unused);
}

void Component::close() {
  state_->file.close();
  state_->undelivered.raise();
}

void Component::remove(const std::string& path) {
  device::remove_file(path);
}

}  // namespace outcore::store
