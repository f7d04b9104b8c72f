#include "outcore/einsum.hpp"

#include "tensor/contraction.hpp"
#include "tensor/program_blas.hpp"

namespace outcore {
namespace {

tensor::Operand operand_of(const EinsumOperand& given) {
  if (given.global()) return {.global = given.global()};
  if (given.disk()) return {.disk = given.disk()};
  return {.memory = given.memory(), .shape = given.shape(), .type = given.type()};
}

/// `factor` must live as long as the result.
tensor::MakeArguments arguments(std::string_view subscripts, const std::vector<EinsumOperand>& operands,
                                const EinsumResult& result, const EinsumOptions& options,
                                Factor::Value& factor) {
  return [=, &operands, &result, &options, &factor] {
    tensor::ContractionArguments made{
        .subscripts = std::string(subscripts), .operands = {}, .out = {}, .options = {}};
    for (const EinsumOperand& each : operands) made.operands.push_back(operand_of(each));
    made.out = operand_of(result);
    factor = options.scale.as(made.out.facts().type);
    made.options = {.memory_bytes = options.memory_bytes,
                    .plan = options.plan,
                    .scale = &factor,
                    .accumulate = options.accumulate,
                    .threads = options.threads};
    return made;
  };
}

}  // namespace

EinsumCounts einsum(World& world, std::string_view subscripts, const std::vector<EinsumOperand>& operands,
                    const EinsumResult& result, const EinsumOptions& options) {
  Factor::Value factor;
  return tensor::contract(world, tensor::program_blas(),
                          arguments(subscripts, operands, result, options, factor));
}

std::string einsum_plan(World& world, std::string_view subscripts, const std::vector<EinsumOperand>& operands,
                        const EinsumResult& result, const EinsumOptions& options) {
  Factor::Value factor;
  return tensor::plan_of(world, arguments(subscripts, operands, result, options, factor)).text();
}

}  // namespace outcore
