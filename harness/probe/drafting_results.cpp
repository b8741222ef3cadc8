// Results: which of what a routine leaves in registers it gives.
#include "harness/probe/drafter.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr unsigned edx = edx_number;

}  // namespace

void Drafter::push(Candidate candidate, std::optional<Result> result, Confidence confidence, std::string support) {
  candidate.signature.result = result;
  candidate.confidence = std::max(candidate.confidence, confidence);
  if (!support.empty()) candidate.support.push_back(std::move(support));
  drafts_.candidates.push_back(std::move(candidate));
}

void Drafter::add_results(const Candidate& candidate) {
  if (usage_.st0_bytes && !is_64_bit_) {
    if (*usage_.st0_bytes == 4) {
      return push(candidate, Result{Scalar::f32, std::nullopt}, Confidence::certain,
                  "leaves a value in st0, always exact as f32");
    }
    push(candidate, Result{Scalar::f64, std::nullopt}, Confidence::likely,
         fmt::format("leaves a value in st0 that needs {} bits", *usage_.st0_bytes == 8 ? 64 : 80));
    return push(candidate, Result{Scalar::f32, std::nullopt}, Confidence::likely,
                "leaves a value in st0, which the caller may round to f32");
  }
  const bool has_outputs = usage_.writes_memory();
  if (has_outputs) push(candidate, std::nullopt, Confidence::certain, {});
  const RegisterResult* eax = nullptr;
  const RegisterResult* high = nullptr;
  std::vector<const RegisterResult*> others;
  for (const RegisterResult& result : usage_.results) {
    if (!result.depends) continue;
    if (!result.is_xmm && result.number == 0) {
      eax = &result;
    } else if (!result.is_xmm && result.number == edx && !is_64_bit_) {
      high = &result;
    } else if (result.is_left) {
      others.push_back(&result);
    }
  }
  if (has_outputs) {
    if (eax != nullptr && eax->is_left && eax->width >= 4) {
      push(candidate, Result{result_scalar(*eax), std::nullopt}, Confidence::likely,
           "leaves a number in eax that depends on its input and that nothing reads");
    }
    for (const RegisterResult* other : others) {
      if (!is_64_bit_ || !other->is_xmm || other->number != 0) continue;
      push(candidate, Result{other->width == 4 ? Scalar::f32 : Scalar::f64, std::nullopt}, Confidence::likely,
           "leaves a number in xmm0 that depends on its input and that nothing reads");
    }
    return;
  }
  std::size_t sure = others.size() + (eax != nullptr && eax->is_left ? 1 : 0);
  const Confidence confidence = sure == 1 ? Confidence::certain : Confidence::likely;
  for (const RegisterResult* other : others) {
    Result result{other->is_xmm ? (other->width == 4 ? Scalar::f32 : Scalar::f64) : Scalar::u32, std::nullopt};
    const bool is_usual = is_64_bit_ && other->is_xmm && other->number == 0;
    if (!is_usual) {
      result.place = Register{other->is_xmm ? RegisterClass::xmm : RegisterClass::general,
                              static_cast<std::uint8_t>(other->number)};
    }
    if (!other->is_xmm && is_64_bit_ && other->high_half) result.scalar = Scalar::u64;
    push(candidate, result, confidence,
         fmt::format("leaves a number in {} that depends on its input and that nothing reads",
                     to_string(Register{other->is_xmm ? RegisterClass::xmm : RegisterClass::general,
                                        static_cast<std::uint8_t>(other->number)},
                               is_64_bit_)));
  }
  if (eax == nullptr || (!eax->is_left && sure != 0)) return;
  if (eax->width < 4) {
    return push(candidate, Result{Scalar::u32, std::nullopt}, Confidence::possible,
                fmt::format("leaves a result in the low {} of eax", plural(eax->width, "byte")));
  }
  if (high != nullptr && high->is_left && eax->is_left) {
    return push(candidate, Result{Scalar::u64, std::nullopt}, confidence,
                "leaves numbers in eax and edx that depend on its input and that nothing reads");
  }
  push(candidate, Result{result_scalar(*eax), std::nullopt}, eax->is_left ? confidence : Confidence::likely,
       eax->is_left ? "leaves a number in eax that depends on its input and that nothing reads"
                    : "leaves a number in eax that depends on its input");
}

Scalar Drafter::result_scalar(const RegisterResult& eax) const {
  return is_64_bit_ && eax.high_half ? Scalar::u64 : Scalar::u32;
}

}  // namespace bitwitness
