#include "transport/mpi/messages.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "outcore/error.hpp"
#include "transport/agree.hpp"
#include "transport/host_mail.hpp"
#include "transport/host_wake_up.hpp"

namespace outcore::transport::over_mpi {
namespace {

using std::chrono::microseconds;

constexpr int packet_tag = 0, first_bulk_tag = 1;
constexpr std::size_t tested_at_once = 64;  // number of requests looked at, of perhaps thousands under way
constexpr microseconds min_nap{20}, max_unsure_nap{1000};
constexpr microseconds room_nap{50};  // the reader of a full mailbox sends no wake-up, and needs the core

using PacketBuffer = std::array<std::byte, Messages::max_packet_bytes>;

/// The data of a request: a packet that is sent, or a bulk transfer.
struct Subject {
  int process;
  std::unique_ptr<PacketBuffer> packet;  // null: bulk
  std::uint64_t token = 0;
  bool is_receive = false;
};

/// Requests under way. Completed ones are found by looking at some at a time.
class Requests {
 public:
  struct Done {
    Subject subject;
    int errno_value;
  };

  [[nodiscard]] std::size_t size() const noexcept { return requests_.size(); }
  [[nodiscard]] std::span<MPI_Request> all() noexcept { return requests_; }

  void add(MPI_Request request, Subject subject) {
    requests_.push_back(request);
    subjects_.push_back(std::move(subject));
  }

  /// Looks at some requests, each time at different ones, and takes out the completed ones.
  std::vector<Done> test() {
    if (next_ >= size()) next_ = 0;
    const std::size_t begin = next_, count = std::min(tested_at_once, size() - begin);
    next_ += count;
    std::array<int, tested_at_once> indices;
    std::array<MPI_Status, tested_at_once> statuses;
    int ended = 0;
    const int code = MPI_Testsome(static_cast<int>(count), requests_.data() + begin, &ended, indices.data(),
                                  statuses.data());
    const bool failed = code != MPI_SUCCESS && error_class(code) == MPI_ERR_IN_STATUS;
    if (!failed) check(code, "move messages");
    if (ended == MPI_UNDEFINED) ended = 0;
    std::vector<Done> done;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ended); ++i)
      done.push_back({std::move(subjects_[begin + static_cast<std::size_t>(indices[i])]),
                      failed ? errno_of(statuses[i].MPI_ERROR) : 0});
    std::sort(indices.begin(), indices.begin() + ended, std::greater<>());
    for (int i = 0; i < ended; ++i)
      remove(begin + static_cast<std::size_t>(indices[static_cast<std::size_t>(i)]));
    return done;
  }

 private:
  void remove(std::size_t place) {
    std::swap(requests_[place], requests_.back());
    std::swap(subjects_[place], subjects_.back());
    requests_.pop_back();
    subjects_.pop_back();
  }

  std::vector<MPI_Request> requests_;
  std::vector<Subject> subjects_;
  std::size_t next_ = 0;
};

/// Processes of the same host have mailboxes in shared memory, and fetch bulk data from one another's memory,
/// without MPI. (If the system does not allow the fetch, bulk data goes by MPI.)
///
/// Packets of other hosts are probed for, and then received from their senders. Receives from any source,
/// posted in advance, would save a copy, but MPICH over UCX (5.0.2) does not match all of them if some of the
/// senders share memory and others do not. MPI gives no notice of arrivals. So while MPI transfers are under
/// way, or some processes are on other hosts, `wait` naps and looks. As in all waits here, a nap takes a
/// sixteenth of the time since the last event. Measured: [M27].
class MpiMessages final : public Messages {
 public:
  MpiMessages(Transport& transport, MPI_Comm comm, std::shared_ptr<Session> session,
              std::vector<int> session_ranks)
      : MpiMessages(Deaf{}, transport, comm, std::move(session), std::move(session_ranks)) {
    agree(transport, [&] {
      if (!all_by_mail_)
        listener_.emplace(session_->remote_wake_up(), RemoteWakeUp::Reason::messages,
                          [this] { wake_up_.wake(rank_); });
    });
  }

 private:
  struct Deaf {};
  MpiMessages(Deaf, Transport& transport, MPI_Comm comm, std::shared_ptr<Session> session,
              std::vector<int> session_ranks)
      : rank_(transport.rank()),
        session_(std::move(session)),
        session_ranks_(std::move(session_ranks)),
        wake_up_(transport, HostMail::memory_bytes),
        mail_(transport, wake_up_),
        at_finalize_([this] { end(); }) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto watch = [this] { session_->watch(session_ranks_); };
    check(MPI_Comm_idup(comm, &comm_, &request), "duplicate a communicator");
    over_mpi::wait(request, "duplicate a communicator", watch);
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "set an error handler");
    all_by_mail_ = true;
    for (int i = 0; i < transport.size(); ++i) all_by_mail_ &= mail_.reaches(i);
  }

 public:
  ~MpiMessages() override {
    if (finalized()) return;
    try {
      mail_.put_all();
      session_->check_whole();
      const auto watch = [this] { session_->watch(session_ranks_); };
      over_mpi::wait(requests_.all(), "end messages", watch);
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibarrier(comm_, &request), "end messages");
      over_mpi::wait(request, "end messages", watch);
      MPI_Comm_free(&comm_);
    } catch (const Error&) {  // MPI has failed; no other process can be told
    }
  }

  void send(int to, Packet packet) override {
    const std::size_t size = size_of(packet);
    if (size > max_packet_bytes)
      throw Error(EMSGSIZE, {.attempted = "send a packet", .size_bytes = static_cast<std::int64_t>(size)});
    const auto lock = open();
    if (mail_.reaches(to)) return mail_.send(to, packet);
    session_->check_whole();
    if (spare_.empty()) spare_.push_back(std::make_unique<PacketBuffer>());
    auto memory = std::move(spare_.back());
    spare_.pop_back();
    gather(packet, memory->data());
    // First, because it wakes another process while this one sends.
    session_->remote_wake_up().wake(session_ranks_[static_cast<std::size_t>(to)],
                                    RemoteWakeUp::Reason::messages);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(memory->data(), static_cast<int>(size), MPI_BYTE, to, packet_tag, comm_, &request),
          "send a packet");
    if (over_mpi::test(std::span(&request, 1), "send a packet"))
      spare_.push_back(std::move(memory));
    else
      add(request, {.process = to, .packet = std::move(memory)});
  }

  void send_bulk(int to, std::uint32_t tag, std::span<const std::byte> data, std::uint64_t token) override {
    const auto lock = open();
    if (fetched(to)) return mail_.send_bulk(to, tag, data, token);
    session_->check_whole();
    MPI_Request request = MPI_REQUEST_NULL;
    with_bytes(data.size(), [&](int count, MPI_Datatype type) {
      check(MPI_Isend(data.data(), count, type, to, bulk_tag(tag), comm_, &request), "send");
    });
    add(request, {.process = to, .packet = nullptr, .token = token});
    wake_up_.wake(to);
  }

  void receive_bulk(int from, std::uint32_t tag, std::span<std::byte> into, std::uint64_t token) override {
    const auto lock = open();
    if (fetched(from)) return mail_.receive_bulk(from, tag, into, token);
    session_->check_whole();
    MPI_Request request = MPI_REQUEST_NULL;
    with_bytes(into.size(), [&](int count, MPI_Datatype type) {
      check(MPI_Irecv(into.data(), count, type, from, bulk_tag(tag), comm_, &request), "receive");
    });
    add(request, {.process = from, .packet = nullptr, .token = token, .is_receive = true});
  }

  std::span<std::byte> common(int process) const noexcept override { return mail_.common(process); }

  bool poll(Receiver& receiver, int packets) override {
    const std::uint32_t heard = wake_up_.wakes();
    (void)open();
    bool any = mail_.poll(receiver, packets);
    if (!all_by_mail_) session_->check_whole();
    if (!all_by_mail_)
      for (; packets > 0 && take_packet(receiver); --packets) any = true;
    if (packets > 0) heard_ = heard;
    any |= end_requests(receiver);
    if (any) stir();
    return any;
  }

  void wait(microseconds timeout) override {
    const std::uint32_t heard = heard_;
    if (!woken_.exchange(false) && untested_ == 0 && !mail_.is_busy())
      wake_up_.sleep(heard, nap(mail_.wants_room() ? std::min(timeout, room_nap) : timeout),
                     [this] { return mail_.has_come(); });
    woken_ = false;
    if (wake_up_.wakes() != heard) stir();
    untested_ = under_way_.load();
  }

  void wake() override {
    woken_ = true;
    wake_up_.wake(rank_);
  }

  [[nodiscard]] bool alive(int process) override {
    return wake_up_.alive(process) && session_->alive(session_ranks_[static_cast<std::size_t>(process)]);
  }

  [[nodiscard]] bool is_told() const noexcept override { return all_by_mail_ && under_way_ == 0; }

 private:
  using Clock = std::chrono::steady_clock;

  static int bulk_tag(std::uint32_t tag) noexcept { return first_bulk_tag + static_cast<int>(tag); }

  /// Whether bulk data to or from a process does not go by MPI.
  [[nodiscard]] bool fetched(int process) const noexcept { return mail_.fetches() && mail_.reaches(process); }

  /// A lock under which MPI may be called.
  std::unique_lock<std::mutex> open() {
    std::unique_lock lock(mutex_);
    if (ended_)
      throw Error(ESHUTDOWN, {.attempted = "send messages", .detail = "MPI_Finalize was called before"});
    return lock;
  }

  bool take_packet(Receiver& receiver) {
    {
      const auto lock = open();
      if (incoming_ == MPI_REQUEST_NULL && !start_receive()) return false;
      if (!over_mpi::test(std::span(&incoming_, 1), "receive a packet")) return false;
    }
    session_->remote_wake_up().met(session_ranks_[static_cast<std::size_t>(sender_)],
                                   RemoteWakeUp::Reason::messages);
    receiver.packet(sender_, std::span(packet_).first(static_cast<std::size_t>(packet_bytes_)));
    return true;
  }

  /// False if there is no packet.
  bool start_receive() {
    int here = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, packet_tag, comm_, &here, &status), "look for packets");
    if (!here) return false;
    sender_ = status.MPI_SOURCE;
    check(MPI_Get_count(&status, MPI_BYTE, &packet_bytes_), "look for packets");
    check(MPI_Irecv(packet_.data(), packet_bytes_, MPI_BYTE, sender_, packet_tag, comm_, &incoming_),
          "receive a packet");
    return true;
  }

  void add(MPI_Request request, Subject subject) {
    requests_.add(request, std::move(subject));
    under_way_ = requests_.size();
    stir();
    wake_up_.wake(rank_);  // MPI moves data only inside its calls
  }

  bool end_requests(Receiver& receiver) {
    if (requests_.size() == 0) return false;
    std::vector<Requests::Done> done;
    {
      const auto lock = open();
      session_->check_whole();
      done = requests_.test();
      const std::size_t left = requests_.size();
      under_way_ = left;
      untested_ =
          !done.empty() ? left : std::min(left, untested_ - std::min(untested_.load(), tested_at_once));
    }
    for (Requests::Done& each : done) finish(each, receiver);
    return !done.empty();
  }

  void finish(Requests::Done& done, Receiver& receiver) {
    Subject& subject = done.subject;
    if (!subject.packet) {
      if (subject.is_receive) wake_up_.wake(subject.process);  // its send may be complete by now
      return receiver.bulk_done(subject.token, done.errno_value);
    }
    if (done.errno_value != 0)
      throw Error(done.errno_value,
                  {.attempted = "send a packet to process " + std::to_string(subject.process)});
    spare_.push_back(std::move(subject.packet));
  }

  void stir() noexcept { stirred_ns_ = Clock::now().time_since_epoch().count(); }

  [[nodiscard]] microseconds nap(microseconds timeout) const noexcept {
    if (is_told()) return timeout;
    if (all_by_mail_) timeout = std::min(timeout, max_unsure_nap);  // it was told before
    const std::chrono::nanoseconds quiet(Clock::now().time_since_epoch().count() - stirred_ns_);
    return std::clamp(std::chrono::duration_cast<microseconds>(quiet / 16), std::min(min_nap, timeout),
                      timeout);
  }

  void end() noexcept {
    const std::lock_guard guard(mutex_);
    ended_ = true;
  }

  int rank_;
  std::shared_ptr<Session> session_;
  std::vector<int> session_ranks_;
  HostWakeUp wake_up_;
  HostMail mail_;
  bool all_by_mail_ = false;  // no packets go by MPI
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex mutex_;  // orders calls of MPI and its end
  bool ended_ = false;

  PacketBuffer packet_;  // the one that is received
  MPI_Request incoming_ = MPI_REQUEST_NULL;
  int sender_ = 0, packet_bytes_ = 0;
  std::vector<std::unique_ptr<PacketBuffer>> spare_;
  Requests requests_;

  // Used by `wait`, in another thread.
  std::atomic<std::uint32_t> heard_{0};
  std::atomic<std::size_t> under_way_{0}, untested_{0};
  std::atomic<std::int64_t> stirred_ns_{0};
  std::atomic<bool> woken_{false};
  AtFinalize at_finalize_;
  std::optional<RemoteWakeUp::Listener> listener_;
};

}  // namespace

std::unique_ptr<Messages> messages(Transport& transport, MPI_Comm comm, std::shared_ptr<Session> session,
                                   std::vector<int> session_ranks) {
  return std::make_unique<MpiMessages>(transport, comm, std::move(session), std::move(session_ranks));
}

}  // namespace outcore::transport::over_mpi
