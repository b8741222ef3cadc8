// Results: which of what a routine leaves in registers it gives.
#include "harness/probe/drafter.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr unsigned edx = edx_number;

}  // namespace

void Drafter::push(Candidate candidate, std::optional<Result> result, Confidence confidence, std::string support) {
  candidate.signature.result = result;
  candidate.confidence = std::max(candidate.confidence, confidence);
  if (!support.empty() && confidence != Confidence::certain) candidate.doubts.push_back(support);
  if (!support.empty()) candidate.support.push_back(std::move(support));
  drafts_.candidates.push_back(std::move(candidate));
}

void Drafter::add_st0_result(const Candidate& candidate) {
  constexpr unsigned many_bits = 16;  // results with fewer say nothing of where they are rounded
  const bool is_rounded = usage_.st0_was_loaded || usage_.st0_bits >= many_bits;
  if (*usage_.st0_bytes == 4 && is_rounded) {
    return push(candidate, Result{Scalar::f32, std::nullopt}, Confidence::certain,
                usage_.st0_was_loaded ? "leaves a value in st0, loaded as f32"
                                      : "leaves a value in st0, exact as f32 in every call");
  }
  if (*usage_.st0_bytes == 4) {
    push(candidate, Result{Scalar::f32, std::nullopt}, Confidence::likely,
         "leaves a value in st0, exact as f32 in every call, though of few bits");
    return push(candidate, Result{Scalar::f64, std::nullopt}, Confidence::likely,
                "leaves a value in st0, which may be an f64 as well");
  }
  push(candidate, Result{Scalar::f64, std::nullopt}, Confidence::likely,
       fmt::format("leaves a value in st0 that needs {} bits", *usage_.st0_bytes == 8 ? 64 : 80));
  push(candidate, Result{Scalar::f32, std::nullopt}, Confidence::likely,
       "leaves a value in st0, which the caller may round to f32");
}

void Drafter::add_private_results(const Candidate& candidate, std::span<const RegisterResult* const> results) {
  for (const RegisterResult* other : results) {
    const Register place{other->is_xmm ? RegisterClass::xmm : RegisterClass::general,
                         static_cast<std::uint8_t>(other->number)};
    Result result{other->is_xmm ? (other->width == 4 ? Scalar::f32 : Scalar::f64) : Scalar::u32, place};
    if (!other->is_xmm && is_64_bit_ && other->high_half) result.scalar = Scalar::u64;
    push(candidate, result, Confidence::likely,
         fmt::format("leaves a number in {} that depends on its input and that nothing reads; no convention returns "
                     "a result there",
                     to_string(place, is_64_bit_)));
  }
}

void Drafter::add_results(const Candidate& candidate) {
  if (usage_.st0_bytes && !is_64_bit_) return add_st0_result(candidate);
  const bool has_outputs = usage_.writes_memory();
  if (has_outputs) push(candidate, std::nullopt, Confidence::certain, {});
  const RegisterResult* eax = nullptr;
  const RegisterResult* high = nullptr;
  const RegisterResult* xmm0 = nullptr;
  std::vector<const RegisterResult*> others;
  for (const RegisterResult& result : usage_.results) {
    if (!result.is_xmm && result.number == edx && !is_64_bit_) high = &result;
    if (!result.depends) continue;
    if (!result.is_xmm && result.number == 0) {
      eax = &result;
    } else if (result.is_xmm && result.number == 0) {
      if (result.is_left) xmm0 = &result;
    } else if (result.is_left && &result != high) {
      others.push_back(&result);
    }
  }
  const auto xmm0_result = [this](const RegisterResult& from) {
    Result result{from.width == 4 ? Scalar::f32 : Scalar::f64, std::nullopt};
    if (!is_64_bit_) result.place = Register{RegisterClass::xmm, 0};
    return result;
  };
  if (has_outputs) {
    if (eax != nullptr && eax->is_left && eax->width >= 4) {
      push(candidate, Result{result_scalar(*eax), std::nullopt}, Confidence::likely,
           "leaves a number in eax that depends on its input and that nothing reads");
    }
    if (xmm0 != nullptr && is_64_bit_) {
      push(candidate, xmm0_result(*xmm0), Confidence::likely,
           "leaves a number in xmm0 that depends on its input and that nothing reads");
    }
    return;
  }
  const bool is_eax_left = eax != nullptr && eax->is_left;
  const std::size_t sure = others.size() + (xmm0 != nullptr ? 1 : 0) + (is_eax_left ? 1 : 0);
  const Confidence confidence = sure == 1 ? Confidence::certain : Confidence::likely;
  if (xmm0 != nullptr) {
    push(candidate, xmm0_result(*xmm0), xmm0->fills_vector ? Confidence::likely : confidence,
         xmm0->fills_vector ? "leaves 16 bytes in xmm0 that depend on its input, more than the language has a type for"
                            : "leaves a number in xmm0 that depends on its input and that nothing reads");
  }
  const bool has_eax = eax != nullptr && (is_eax_left || xmm0 == nullptr);
  if (has_eax && eax->width < 4) {
    push(candidate, Result{Scalar::u32, std::nullopt}, Confidence::possible,
         fmt::format("leaves a result in the low {} of eax", plural(eax->width, "byte")));
  } else if (has_eax && eax->narrowest < 4) {
    push(
        candidate, Result{Scalar::u32, std::nullopt}, Confidence::likely,
        fmt::format("leaves a result in eax, of which some calls set only the low {}", plural(eax->narrowest, "byte")));
  } else if (has_eax && high != nullptr && high->is_left && high->depends && is_eax_left) {
    push(candidate, Result{Scalar::u64, std::nullopt}, confidence,
         "leaves numbers in eax and edx that depend on its input and that nothing reads");
  } else if (has_eax) {
    // Of a wide result the upper half may be the same in every call.
    const bool may_be_wide = is_eax_left && high != nullptr && high->is_left;
    std::string text = "leaves a number in eax that depends on its input";
    if (is_eax_left) text += " and that nothing reads";
    if (may_be_wide) text += "; edx is written as well, which nothing reads and which was the same in every call";
    push(candidate, Result{result_scalar(*eax), std::nullopt},
         is_eax_left && !may_be_wide ? confidence : Confidence::likely, std::move(text));
    if (may_be_wide) {
      push(candidate, Result{Scalar::u64, std::nullopt}, Confidence::likely,
           "writes edx as well, which nothing reads and which was the same in every call");
    }
  }
  add_private_results(candidate, others);
}

Scalar Drafter::result_scalar(const RegisterResult& eax) const {
  return is_64_bit_ && eax.high_half ? Scalar::u64 : Scalar::u32;
}

}  // namespace bitwitness
