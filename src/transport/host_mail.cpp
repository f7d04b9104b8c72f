#include "transport/host_mail.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/pause.hpp"
#include "transport/host_wake_up.hpp"

namespace outcore::transport {
namespace {

/// Bytes fetched at once; few, so that packets need not wait for long.
constexpr std::size_t fetched_at_once = 1 << 20;
/// A check whether a process is alive takes as long as many letters.
constexpr std::chrono::milliseconds look_every{100};

/// Reads memory of another process. 0 or an errno value: ECONNRESET if it has ended.
int read_memory(int pid, const std::byte* from, std::span<std::byte> into) noexcept {
  while (!into.empty()) {
    const iovec mine{into.data(), into.size()}, its{const_cast<std::byte*>(from), into.size()};
    const ssize_t moved = process_vm_readv(pid, &mine, 1, &its, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return errno == ESRCH ? ECONNRESET : errno;
    if (moved == 0) return EFAULT;
    into = into.subspan(static_cast<std::size_t>(moved));
    from += moved;
  }
  return 0;
}

template <class Word>
std::span<const std::byte> bytes_of(const Word& word) noexcept {
  return std::as_bytes(std::span(&word, 1));
}

template <class Word>
Word read_as(std::span<const std::byte> bytes) noexcept {
  Word word;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

bool copied_from_shared(SharedLocation location, std::size_t done_bytes, std::span<std::byte> into) noexcept {
  if (location.offset < 0) return false;
  location.offset += static_cast<std::int64_t>(done_bytes);
  const auto from = see_shared(location, into.size());
  if (from) std::copy_n(from.get(), into.size(), into.data());
  return from != nullptr;
}

}  // namespace

// ---- a mailbox ----

bool Mailbox::put(const Letter& letter, Packet packet) noexcept {
  std::uint64_t position = written_.load(std::memory_order_relaxed);
  for (;;) {
    Cell& cell = cells_[position % cells];
    const std::uint64_t free_turn = 2 * (position / cells), turn = cell.turn.load(std::memory_order_acquire);
    if (turn < free_turn) return false;  // of the round before, still there
    if (turn > free_turn) {              // another writer was here
      position = written_.load(std::memory_order_relaxed);
      continue;
    }
    if (!written_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) continue;
    cell.letter = letter;
    gather(packet, cell.packet.data());
    cell.turn.store(free_turn + 1);  // before the writer looks whether the reader sleeps
    return true;
  }
}

Mailbox::Cell* Mailbox::look(std::uint64_t read) noexcept {
  Cell& cell = cells_[read % cells];
  return cell.turn.load() == 2 * (read / cells) + 1 ? &cell : nullptr;
}

void Mailbox::free(Cell& cell) noexcept {
  cell.turn.fetch_add(1, std::memory_order_release);
}

// ---- the mail of a process ----

HostMail::HostMail(Transport& transport, HostWakeUp& wake_up) : rank_(transport.rank()), wake_up_(wake_up) {
  std::int64_t works = try_fetching(transport) ? 1 : 0;
  transport.all_reduce(std::span(&works, 1), Reduction::min);
  fetches_ = works == 1;
}

/// Reads a word of the next process of the host, as all others do.
bool HostMail::try_fetching(Transport& transport) const {
  const std::int64_t mine = 0x6f7574636f7265 + rank_;
  if (reaches(rank_)) box(rank_)->word = reinterpret_cast<std::intptr_t>(&mine);
  transport.barrier();
  bool works = true;
  if (const char* wish = std::getenv("OUTCORE_FETCH"); wish && std::strcmp(wish, "no") == 0) works = false;
  for (int i = 1; works && i < transport.size(); ++i) {
    const int next = (rank_ + i) % transport.size();
    if (!reaches(next)) continue;
    std::int64_t word = 0;
    const auto* its = reinterpret_cast<const std::byte*>(static_cast<std::intptr_t>(box(next)->word.load()));
    const int error = read_memory(wake_up_.pid(next), its, std::as_writable_bytes(std::span(&word, 1)));
    works = error == 0 && word == 0x6f7574636f7265 + next;
    break;
  }
  transport.barrier();  // the word stays until all have read it
  return works;
}

Mailbox* HostMail::box(int process) const noexcept {
  std::byte* const memory = wake_up_.memory(process);
  return memory ? std::launder(reinterpret_cast<Mailbox*>(memory)) : nullptr;
}

std::span<std::byte> HostMail::common(int process) const noexcept {
  const auto memory = reinterpret_cast<std::uintptr_t>(wake_up_.memory(process));
  if (memory == 0) return {};
  const std::uintptr_t begin = (memory + sizeof(Mailbox) + page_bytes - 1) / page_bytes * page_bytes;
  return {reinterpret_cast<std::byte*>(begin), Messages::common_bytes};
}

void HostMail::send(int to, Packet packet) {
  put(to, Letter::Kind::packet, packet);
}

void HostMail::send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) {
  const Offer offer{.tag = tag,
                    .token = token,
                    .data = data.data(),
                    .data_bytes = data.size(),
                    .location = shared_location(data).value_or(nowhere)};
  put(to, Letter::Kind::offer, {bytes_of(offer)});
}

void HostMail::receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) {
  const auto found = offered_.find({from, tag});
  if (found == offered_.end()) {
    expected_.emplace(Key{from, tag}, Expected{into, token});
    return;
  }
  fetching_.push_back({from, found->second, into, token});
  offered_.erase(found);
  fetches_some_ = true;
  wake_up_.wake(rank_);
}

bool HostMail::try_put(int to, Letter::Kind kind, Packet packet) {
  const auto size = static_cast<std::uint32_t>(size_of(packet));
  return box(to)->put({.kind = kind, .from = rank_, .size_bytes = size}, packet);
}

/// Letters to one process keep their order, also letters that wait.
void HostMail::put(int to, Letter::Kind kind, Packet packet) {
  if (!unsent_.contains(to) && try_put(to, kind, packet)) return wake_up_.wake_sleeper(to);
  Unsent unsent{kind, std::vector<std::byte>(size_of(packet))};
  gather(packet, unsent.packet.data());
  unsent_[to].push_back(std::move(unsent));
  wants_room_ = true;
  wake_up_.wake(rank_);
}

bool HostMail::put_unsent() {
  const auto now = std::chrono::steady_clock::now();
  const bool looks = now - looked_ > look_every;
  if (looks) looked_ = now;
  bool any = false;
  for (auto each = unsent_.begin(); each != unsent_.end();) {
    auto& [to, letters] = *each;
    bool some = false;
    while (!letters.empty() && try_put(to, letters.front().kind, {letters.front().packet})) {
      letters.pop_front();
      some = true;
    }
    if (some) wake_up_.wake_sleeper(to);
    any |= some;
    // A full mailbox whose owner has died stays full: nobody will read its letters.
    const bool done = letters.empty() || (!some && looks && !wake_up_.alive(to));
    each = done ? unsent_.erase(each) : std::next(each);
  }
  return any;
}

void HostMail::put_all() {
  for (Pause pause; !unsent_.empty(); pause()) put_unsent();
}

bool HostMail::poll(Messages::Receiver& receiver, int& packets) {
  bool any = !unsent_.empty() && put_unsent();
  any |= reaches(rank_) && take(receiver, packets);
  any |= !fetching_.empty() && fetch_some(receiver);
  wants_room_.store(!unsent_.empty(), std::memory_order_relaxed);
  fetches_some_.store(!fetching_.empty(), std::memory_order_relaxed);
  return any;
}

/// A thread that polls meanwhile may take the letter that this one looked for, and leave the next one.
bool HostMail::has_come() const noexcept {
  if (!reaches(rank_)) return false;
  for (;;) {
    const std::uint64_t read = read_;
    if (box(rank_)->look(read)) return true;
    if (read_ == read) return false;
  }
}

bool HostMail::take(Messages::Receiver& receiver, int& packets) {
  struct Freed {  // again, also if a receiver throws
    Mailbox::Cell& cell;
    ~Freed() { Mailbox::free(cell); }
  };
  Mailbox& mine = *box(rank_);
  bool any = false;
  std::uint64_t read = read_.load(std::memory_order_relaxed);
  for (Mailbox::Cell* cell = nullptr; packets > 0 && (cell = mine.look(read)); any = true) {
    read_ = ++read;  // before the cell is freed, for `has_come`
    const Freed freed{*cell};
    const Letter& letter = cell->letter;
    const std::span packet = std::span(cell->packet).first(letter.size_bytes);
    if (letter.kind == Letter::Kind::packet) {
      --packets;
      receiver.packet(letter.from, packet);
    } else if (letter.kind == Letter::Kind::taken) {
      const auto word = read_as<Taken>(packet);
      receiver.bulk_done(word.token, word.errno_value);
    } else {
      const auto offer = read_as<Offer>(packet);
      const auto found = expected_.find({letter.from, offer.tag});
      if (found != expected_.end()) {
        fetching_.push_back({letter.from, offer, found->second.into, found->second.token});
        expected_.erase(found);
      } else {
        offered_.emplace(Key{letter.from, offer.tag}, offer);
      }
    }
  }
  return any;
}

bool HostMail::fetch_some(Messages::Receiver& receiver) {
  for (std::size_t left = fetched_at_once; left > 0 && !fetching_.empty();) {
    Fetch& fetch = fetching_.front();
    const auto part =
        fetch.into.subspan(fetch.done_bytes).first(std::min(left, fetch.into.size() - fetch.done_bytes));
    const std::byte* from = fetch.offer.data + fetch.done_bytes;
    const int process = fetch.from;
    int error = fetch.into.size() == fetch.offer.data_bytes ? 0 : EMSGSIZE;
    if (error == 0 && process == rank_)
      std::copy_n(from, part.size(), part.begin());
    else if (error == 0 && !copied_from_shared(fetch.offer.location, fetch.done_bytes, part))
      error = read_memory(wake_up_.pid(process), from, part);
    fetch.done_bytes += part.size();
    left -= std::max<std::size_t>(part.size(), 1);
    if (error == 0 && fetch.done_bytes < fetch.into.size()) break;
    const Fetch done = fetch;
    fetching_.pop_front();
    const Taken taken{.token = done.offer.token, .errno_value = error};
    try {
      receiver.bulk_done(done.token, error);  // the process that waits for the data comes first
    } catch (...) {
      put(process, Letter::Kind::taken, {bytes_of(taken)});  // its sender does not take part
      throw;
    }
    put(process, Letter::Kind::taken, {bytes_of(taken)});
  }
  return true;
}

}  // namespace outcore::transport
