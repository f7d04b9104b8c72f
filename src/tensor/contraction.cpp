#include "tensor/contraction.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/accumulate_strided.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "tensor/multiply.hpp"

namespace outcore::tensor {
namespace {

constexpr std::int64_t portion = 1 << 18;            // elements that are copied or set to zero at a time
constexpr std::int64_t hinted_bytes = 8 << 20;       // bytes of panels for which owners get a prefetch hint
constexpr std::int64_t most_hinted = 8;              // steps
constexpr std::int64_t most_cache_bytes = 64 << 20;  // bytes of all intermediate arrays on disk
constexpr int most_threads = 256;

/// Checked arguments of a call.
struct Job {
  ContractionArguments given;
  Expression expression;
  std::vector<Facts> facts;
  Plan plan;

  [[nodiscard]] std::string what() const { return "einsum '" + expression.text() + "'"; }
  [[nodiscard]] ElementType type() const { return facts.front().type; }
};

[[noreturn]] void refuse(const std::string& what, const std::string& why, int code = EINVAL) {
  throw Error(code, {.attempted = what, .detail = why});
}

/// Lowest and highest byte of memory.
std::pair<const std::byte*, const std::byte*> reach(const Operand& memory) {
  std::int64_t low = 0, high = static_cast<std::int64_t>(size_bytes(memory.type));
  for (int axis = 0; axis < memory.shape.rank(); ++axis) {
    const std::int64_t last = (memory.shape[axis] - 1) * memory.memory.stride_bytes[axis];
    (last < 0 ? low : high) += last;
  }
  return {memory.memory.data + low, memory.memory.data + high};
}

void check_arrays(const Job& job, World& world) {
  const Operand& out = job.given.out;
  std::vector<const Operand*> all;
  for (const Operand& each : job.given.operands) all.push_back(&each);
  all.push_back(&out);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Operand& each = *all[i];
    const bool is_out = i + 1 == all.size();
    const std::string name_of = is_out ? "the result" : "operand " + std::to_string(i);
    const Facts& facts = job.facts[i];
    visit(facts.type, [&](auto zero) {
      if constexpr (std::is_integral_v<decltype(zero)>)
        refuse(job.what(), name_of + " has elements of " + std::string(name(facts.type)) +
                               "; they may be float32, float64, complex64, complex128");
    });
    if (facts.type != job.type())
      refuse(job.what(), name_of + " has elements of " + std::string(name(facts.type)) + ", operand 0 of " +
                             std::string(name(job.type())));
    const World* its_world = each.global ? &each.global->world() : each.disk ? &each.disk->world() : &world;
    if (its_world != &world) refuse(job.what(), name_of + " is of another world");
    if (is_out) continue;
    const bool is_same = (out.global && out.global == each.global) || (out.disk && out.disk == each.disk);
    bool overlaps = false;
    if (facts.where == Where::process && job.facts.back().where == Where::process &&
        facts.shape.product() > 0 && job.facts.back().shape.product() > 0) {
      const auto [first, last] = reach(each);
      const auto [out_first, out_last] = reach(out);
      overlaps = first < out_last && out_first < last;
    }
    if (is_same || overlaps) refuse(job.what(), "the result is in " + name_of);
  }
  const Extents expected = job.expression.shape(job.expression.output), &found = job.facts.back().shape;
  if (found != expected)
    refuse(job.what(), "the result has shape " + expected.text() + ", what is given for it " + found.text());
  if (out.disk && out.disk->read_only()) refuse(job.what(), "the result is only read", EROFS);
  for (int axis = 0; axis < found.rank() && !out.global && !out.disk; ++axis)
    if (found[axis] > 1 && out.memory.stride_bytes[axis] == 0)
      refuse(job.what(), "elements of the result lie on one another");
}

std::uint64_t number_of(const Job& job) {
  const ContractionOptions& options = job.given.options;
  std::string text = job.given.subscripts + options.plan;
  std::vector<std::uint64_t> numbers{static_cast<std::uint64_t>(options.memory_bytes),
                                     static_cast<std::uint64_t>(options.accumulate)};
  const auto add = [&](const Operand& each, const Facts& facts) {
    numbers.push_back(static_cast<std::uint64_t>(facts.type) * 4 + static_cast<std::uint64_t>(facts.where));
    for (const std::int64_t extent : facts.shape.values())
      numbers.push_back(static_cast<std::uint64_t>(extent));
    if (each.global) numbers.push_back(each.global->number());
  };
  for (std::size_t i = 0; i < job.given.operands.size(); ++i) add(job.given.operands[i], job.facts[i]);
  add(job.given.out, job.facts.back());
  if (options.scale) text.append(static_cast<const char*>(options.scale), size_bytes(job.type()));
  return fingerprint(std::as_bytes(std::span(numbers)), fingerprint(std::as_bytes(std::span(text))));
}

/// Checks the arguments with a plan. Collective.
Job prepared(World& world, const MakeArguments& make) {
  Job job;
  world.enter("einsum", [&] {
    job.given = make();
    if (job.given.operands.empty()) refuse("einsum", "there are no operands");
    std::vector<Extents> shapes;
    for (const Operand& each : job.given.operands) {
      job.facts.push_back(each.facts());
      shapes.push_back(job.facts.back().shape);
    }
    job.facts.push_back(job.given.out.facts());
    job.expression = Expression::parse(job.given.subscripts, shapes);
    check_arrays(job, world);
    const ContractionOptions& options = job.given.options;
    if (options.memory_bytes < 0) refuse(job.what(), "the memory is negative");
    if (options.threads < 1 || options.threads > most_threads)
      refuse(job.what(),
             std::to_string(options.threads) + " threads; there may be 1 to " + std::to_string(most_threads));
    return number_of(job);
  });
  world.leave(std::nullopt);
  std::int64_t memory_bytes = job.given.options.memory_bytes;
  if (memory_bytes == 0) {
    memory_bytes = (world.budget().limit_bytes() - world.budget().used_bytes()) / 4 * 3;
    world.transport().all_reduce(std::span(&memory_bytes, 1), transport::Reduction::min);
  }
  world.together("einsum", 0, [&] {
    const bool is_empty =
        std::ranges::any_of(job.expression.extents, [](const auto& each) { return each.second == 0; });
    if (!job.given.options.plan.empty()) {
      job.plan = Plan::parse(job.given.options.plan);
      job.plan.check(job.expression, job.facts, world.size());
      if (job.plan.memory_bytes > memory_bytes)
        refuse(job.what(),
               "the plan is for " + std::to_string(job.plan.memory_bytes) + " bytes of memory; here are " +
                   std::to_string(memory_bytes),
               ENOMEM);
    } else if (is_empty) {
      job.plan = {job.expression.text(), job.facts, memory_bytes, world.size(), {}};
    } else {
      job.plan = simple_plan(job.expression, job.facts, memory_bytes, world.size());
    }
    for (const ProductPlan& each : job.plan.products)
      if (each.sharing > 1 && each.sharing != world.node_size())
        refuse(job.what(), "in the plan " + std::to_string(each.sharing) +
                               " processes of a node share panels; here a node has " +
                               std::to_string(world.node_size()));
  });
  return job;
}

/// An array of a contraction while it runs.
class Live {
 public:
  Live() = default;
  /// An array of the caller.
  explicit Live(const Operand& operand) : operand_(operand), facts_(operand.facts()) { make_boxes(); }
  /// An array that a plan makes, initially zero. If it is a number, each process has a part, and `sync` adds
  /// them up. Collective.
  Live(World& world, const Facts& facts, std::int64_t cache_bytes)
      : facts_(facts), is_sum_(facts.shape.rank() == 0) {
    if (facts.where == Where::global) {
      global_ = std::make_unique<GlobalArray>(world, facts.shape, facts.type);
      operand_.global = global_.get();
    } else if (facts.where == Where::disk) {
      DiskArrayOptions options;
      options.caches.cache_bytes = cache_bytes;
      disk_ = std::make_unique<DiskArray>(world, facts.shape, facts.type, options);
      operand_.disk = disk_.get();
    } else {
      const std::size_t bytes = static_cast<std::size_t>(temporary_bytes(facts, 1));
      world.together("einsum", 0, [&] {
        reserved_ = Reservation(world.budget(), static_cast<std::int64_t>(bytes), "an intermediate array");
        memory_ = std::make_unique<std::byte[]>(bytes);
      });
      operand_.memory = {memory_.get(), row_major(facts.shape, size_bytes(facts.type))};
      operand_.shape = facts.shape;
      operand_.type = facts.type;
    }
    make_boxes();
  }
  /// An array of ones.
  Live(ElementType type, const Extents& shape) : facts_{type, shape, Where::process, {}} {
    memory_ = std::make_unique<std::byte[]>(size_bytes(type));
    std::memcpy(memory_.get(), one_of(type), size_bytes(type));
    operand_ = {nullptr, nullptr, {memory_.get(), Extents::filled(shape.rank(), 0)}, shape, type};
    make_boxes();
  }

  [[nodiscard]] Boxes& boxes() const { return *boxes_; }
  [[nodiscard]] const Facts& facts() const { return facts_; }
  [[nodiscard]] bool is_sum() const { return is_sum_; }

  /// Makes all puts visible to all processes. Collective.
  void sync(World& world) {
    if (operand_.global) operand_.global->sync();
    if (operand_.disk) {
      operand_.disk->sync();
      world.barrier();
      operand_.disk->sync();
    }
    if (is_sum_) add_up(world);
  }
  /// Collective.
  void put_zeros(World& world) {
    const bool is_own = facts_.where == Where::process;
    world.together("fill with zeros", 0, [&] {
      each_portion(is_own ? 0 : world.rank(), is_own ? 1 : world.size(),
                   [&](const Box& box, const Strided& zeros) {
                     Waits waits;
                     boxes_->put(box, zeros, false, waits);
                     wait_for(waits);
                   });
    });
    sync(world);
  }
  /// Puts or adds all elements of another array. Collective.
  void take(World& world, const Live& source, bool add) {
    world.together("copy a result", 0, [&] {
      each_portion(0, 1, [&](const Box& box, const Strided& memory) {
        Waits waits;
        source.boxes_->get(box, memory, waits);
        wait_for(waits);
        boxes_->put(box, memory, add, waits);
        wait_for(waits);
      });
    });
  }

 private:
  void make_boxes() {
    if (operand_.global)
      boxes_ = std::make_unique<GlobalBoxes>(*operand_.global);
    else if (operand_.disk)
      boxes_ = std::make_unique<DiskBoxes>(*operand_.disk);
    else
      boxes_ = std::make_unique<MemoryBoxes>(operand_.memory, facts_.type);
  }
  /// Calls a function for every `step`-th box of some rows, with zeroed memory for it.
  template <class Visit>
  void each_portion(std::int64_t first, std::int64_t step, const Visit& visit) const {
    const Extents& shape = facts_.shape;
    const std::int64_t elements = shape.product();
    if (elements == 0) return;
    const std::size_t size = size_bytes(facts_.type);
    const std::int64_t all = shape.rank() == 0 ? 1 : shape[0];
    const std::int64_t rows = std::clamp<std::int64_t>(portion / (elements / all), 1, all);
    const auto memory =
        std::make_unique<std::byte[]>(static_cast<std::size_t>(rows * (elements / all)) * size);
    for (std::int64_t row = first * rows; row < all; row += step * rows) {
      Box box = Box::whole(shape);
      if (shape.rank() > 0) {
        box.begin[0] = row;
        box.end[0] = std::min(row + rows, all);
      }
      visit(box, Strided{memory.get(), row_major(box.shape(), size)});
    }
  }
  void add_up(World& world) {
    visit(facts_.type, [&](auto zero) {
      using Element = decltype(zero);
      if constexpr (!std::is_integral_v<Element>) {
        Element value;
        std::memcpy(&value, memory_.get(), sizeof value);
        const std::complex<double> number(value);
        double parts[] = {number.real(), number.imag()};
        world.transport().all_reduce(std::span<double>(parts), transport::Reduction::sum);
        if constexpr (std::is_floating_point_v<Element>)
          value = static_cast<Element>(parts[0]);
        else
          value = Element(static_cast<typename Element::value_type>(parts[0]),
                          static_cast<typename Element::value_type>(parts[1]));
        std::memcpy(memory_.get(), &value, sizeof value);
      }
    });
  }

  Operand operand_ = {};
  Facts facts_ = {};
  bool is_sum_ = false;
  Reservation reserved_;
  std::unique_ptr<std::byte[]> memory_;
  std::unique_ptr<GlobalArray> global_;
  std::unique_ptr<DiskArray> disk_;
  std::unique_ptr<Boxes> boxes_;
};

class Run {
 public:
  Run(World& world, const Blas& blas, const Job& job) : world_(world), blas_(blas), job_(job) {
    for (const Operand& each : job.given.operands) arrays_.push_back(std::make_unique<Live>(each));
    out_ = std::make_unique<Live>(job.given.out);
    const auto on_disk = std::ranges::count_if(job.plan.products, [](const ProductPlan& each) {
      return !each.is_last && each.where == Where::disk;
    });
    cache_bytes_ =
        std::min(world.budget().limit_bytes() / 16, most_cache_bytes) / std::max<std::int64_t>(1, on_disk);
  }

  EinsumCounts run() {
    if (job_.plan.products.empty() && !job_.given.options.accumulate) out_->put_zeros(world_);
    for (const ProductPlan& each : job_.plan.products) {
      if (each.is_last) {
        last(each);
      } else {
        const Facts facts{job_.type(), job_.expression.shape(each.product.arrays[2]), each.where, {}};
        auto made = std::make_unique<Live>(world_, facts, cache_bytes_);
        multiply(each, *made, false);
        arrays_.push_back(std::move(made));
      }
    }
    std::int64_t numbers[] = {counted_.disk_read_bytes, counted_.disk_written_bytes, counted_.network_bytes,
                              counted_.copied_bytes};
    world_.transport().all_reduce(std::span<std::int64_t>(numbers), transport::Reduction::sum);
    world_.transport().all_reduce(std::span<double>(&counted_.flops, 1), transport::Reduction::sum);
    return {numbers[0], numbers[1], numbers[2], numbers[3], counted_.flops};
  }

 private:
  /// If the result is memory, it is made in an array to which all processes can put, and each process copies
  /// all of it.
  void last(const ProductPlan& plan) {
    const bool add = job_.given.options.accumulate;
    if (out_->facts().where != Where::process || world_.size() == 1) return multiply(plan, *out_, add);
    Facts facts = out_->facts();
    if (facts.shape.rank() > 0) facts.where = Where::global;
    Live made(world_, facts, cache_bytes_);
    multiply(plan, made, false);
    out_->take(world_, made, add);
    world_.barrier();
  }

  void multiply(const ProductPlan& plan, Live& out, bool add) {
    const auto element_bytes = static_cast<std::int64_t>(size_bytes(job_.type()));
    std::optional<Steps> its_steps;
    Reservation
        workspace;  // by all before any begins: processes that share panels would wait for a failed one
    world_.together("einsum", 0, [&] {
      its_steps = plan.steps();
      const std::int64_t bytes = plan.sharing > 1
                                     ? element_bytes * plan.results * plan.largest(its_steps->groups)[2]
                                     : plan.workspace_bytes(its_steps->groups, element_bytes);
      workspace = Reservation(world_.budget(), bytes, "panels of " + job_.what());
    });
    const Steps& steps = *its_steps;
    if (plan.parts > 1 && !add && !out.is_sum()) out.put_zeros(world_);
    std::unique_ptr<Live> ones;
    if (plan.right < 0)
      ones = std::make_unique<Live>(job_.type(), job_.expression.shape(plan.product.arrays[1]));
    const Live& left = *arrays_[static_cast<std::size_t>(plan.left)];
    const Live& right = ones ? *ones : *arrays_[static_cast<std::size_t>(plan.right)];
    const auto largest = plan.largest(steps.groups);
    const Execution how{.slots = plan.slots,
                        .results = plan.results,
                        .unit = plan.unit,
                        .hinted = hinted(left, largest[0] * element_bytes, right, largest[1] * element_bytes),
                        .threads = job_.given.options.threads,
                        .add = add || plan.parts > 1 || out.is_sum(),
                        .one_put = false,
                        .element_bytes = static_cast<std::size_t>(element_bytes)};
    std::optional<NodePanels> shared;
    if (plan.sharing > 1) {
      const std::int64_t units = (steps.tasks() + plan.unit - 1) / plan.unit;
      shared.emplace(world_, plan.slots, std::array{largest[0] * element_bytes, largest[1] * element_bytes},
                     units);
    }
    std::optional<Counter> counter;
    if (world_.size() / plan.sharing > 1) counter.emplace(world_);
    const void* scale =
        plan.is_last && job_.given.options.scale ? job_.given.options.scale : one_of(job_.type());
    const Multiply function = multiply_by(blas_, job_.type(), scale);
    Moved moved;
    world_.together("einsum", 1, [&] {
      moved = carry_out(steps, how, {left.boxes(), right.boxes(), out.boxes()}, function,
                        counter ? &*counter : nullptr, {}, {shared ? &*shared : nullptr, plan.shares});
    });
    out.sync(world_);
    count(left.facts(), moved.got[0] * element_bytes);
    count(right.facts(), moved.got[1] * element_bytes);
    count(out.facts(), moved.put * element_bytes, true, how.add);
    counted_.flops += moved.flops;
  }

  static int hinted(const Live& left, std::int64_t left_bytes, const Live& right, std::int64_t right_bytes) {
    const std::int64_t each = (left.facts().where == Where::disk ? left_bytes : 0) +
                              (right.facts().where == Where::disk ? right_bytes : 0);
    return each == 0 ? 0 : static_cast<int>(std::min(most_hinted, hinted_bytes / each));
  }

  void count(const Facts& facts, std::int64_t bytes, bool is_put = false, bool adds = false) {
    if (facts.where == Where::disk) {
      (is_put ? counted_.disk_written_bytes : counted_.disk_read_bytes) += bytes;
      if (adds) counted_.disk_read_bytes += bytes;
    } else {
      (facts.where == Where::global ? counted_.network_bytes : counted_.copied_bytes) += bytes;
    }
  }

  World& world_;
  const Blas& blas_;
  const Job& job_;
  std::vector<std::unique_ptr<Live>> arrays_;
  std::unique_ptr<Live> out_;
  std::int64_t cache_bytes_;
  EinsumCounts counted_;
};

}  // namespace

Facts Operand::facts() const {
  if (global) return {global->type(), global->shape(), Where::global, {}};
  if (disk) return {disk->type(), disk->shape(), Where::disk, disk->chunk()};
  return {type, shape, Where::process, {}};
}

EinsumCounts contract(World& world, const Blas& blas, const MakeArguments& make) {
  world.barrier();  // after it the puts of others are visible
  const Job job = prepared(world, make);
  return Run(world, blas, job).run();
}

Plan plan_of(World& world, const MakeArguments& make) {
  return prepared(world, make).plan;
}

}  // namespace outcore::tensor
