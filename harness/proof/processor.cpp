#include "harness/proof/processor.hpp"

#include "harness/error.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace bitwitness::proof {

#if defined(__x86_64__)

namespace {

constexpr std::uint32_t all_masked_sse = 0x1f80;
constexpr std::uint16_t all_masked_x87 = 0x003f;

std::uint32_t mxcsr_of(const FloatMode& mode) {
  return all_masked_sse | static_cast<std::uint32_t>(mode.rounding) << 13 | (mode.denormals_are_zero ? 0x40U : 0U) |
         (mode.flush_to_zero ? 0x8000U : 0U);
}

std::uint16_t control_of(const FloatMode& mode) {
  const unsigned precision = mode.precision == 24 ? 0U : mode.precision == 53 ? 2U : 3U;
  return static_cast<std::uint16_t>(all_masked_x87 | precision << 8 | static_cast<unsigned>(mode.rounding) << 10);
}

// An 80-bit number as memory holds it.
struct alignas(16) Extended {
  std::uint64_t significand = 0;
  std::uint64_t rest = 0;  // the lower 16 bits
};

Extended extended_of(Bits bits) {
  return {static_cast<std::uint64_t>(bits), static_cast<std::uint64_t>(bits >> 64)};
}

Bits bits_of(const Extended& number) {
  return Bits{number.rest & 0xffff} << 64 | number.significand;
}

float f32_of(Bits bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
double f64_of(Bits bits) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(bits));
}
Bits bits_of(float number) {
  return std::bit_cast<std::uint32_t>(number);
}
Bits bits_of(double number) {
  return std::bit_cast<std::uint64_t>(number);
}

// One instruction between two loads of the control register. Operands in the order of the manuals: the first is the
// destination, whose NaN wins.
#define BITWITNESS_SSE(instruction, destination, source)                                                    \
  __asm__ volatile("stmxcsr %[own]\n\tldmxcsr %[asked]\n\t" instruction " %[from], %[to]\n\tldmxcsr %[own]" \
                   : [to] "+x"(destination), [own] "=m"(own)                                                \
                   : [from] "x"(source), [asked] "m"(asked))

#define BITWITNESS_X87(instructions, ...)                                                            \
  __asm__ volatile("fnstcw %[own]\n\tfldcw %[asked]\n\t" instructions "\n\tfldcw %[own]" __VA_ARGS__ \
                   : "st", "st(1)", "cc", "memory")

template <typename Number>
Number sse_arithmetic(Kind kind, const FloatMode& mode, Number a, Number b) {
  const std::uint32_t asked = mxcsr_of(mode);
  std::uint32_t own = 0;
  constexpr bool is_single = sizeof(Number) == 4;
  switch (kind) {
    case Kind::float_add:
      if constexpr (is_single)
        BITWITNESS_SSE("addss", a, b);
      else
        BITWITNESS_SSE("addsd", a, b);
      return a;
    case Kind::float_subtract:
      if constexpr (is_single)
        BITWITNESS_SSE("subss", a, b);
      else
        BITWITNESS_SSE("subsd", a, b);
      return a;
    case Kind::float_multiply:
      if constexpr (is_single)
        BITWITNESS_SSE("mulss", a, b);
      else
        BITWITNESS_SSE("mulsd", a, b);
      return a;
    case Kind::float_divide:
      if constexpr (is_single)
        BITWITNESS_SSE("divss", a, b);
      else
        BITWITNESS_SSE("divsd", a, b);
      return a;
    case Kind::float_min:
      if constexpr (is_single)
        BITWITNESS_SSE("minss", a, b);
      else
        BITWITNESS_SSE("minsd", a, b);
      return a;
    case Kind::float_max:
      if constexpr (is_single)
        BITWITNESS_SSE("maxss", a, b);
      else
        BITWITNESS_SSE("maxsd", a, b);
      return a;
    case Kind::float_sqrt: {
      Number root = 0;
      if constexpr (is_single)
        BITWITNESS_SSE("sqrtss", root, a);
      else
        BITWITNESS_SSE("sqrtsd", root, a);
      return root;
    }
    default:
      throw Error(fmt::format("there is no {} of f32 or f64", to_string(kind)));
  }
}

// st(0) is a, st(1) is b.
#define BITWITNESS_X87_BINARY(instruction)                                                    \
  BITWITNESS_X87("fldt %[b]\n\tfldt %[a]\n\t" instruction "\n\tfstpt %[out]\n\tfstp %%st(0)", \
                 : [own] "=m"(own), [out] "=m"(out)                                           \
                 : [asked] "m"(asked), [a] "m"(left), [b] "m"(right))
#define BITWITNESS_X87_UNARY(instruction)                        \
  BITWITNESS_X87("fldt %[a]\n\t" instruction "\n\tfstpt %[out]", \
                 : [own] "=m"(own), [out] "=m"(out)              \
                 : [asked] "m"(asked), [a] "m"(left))

Bits x87_arithmetic(Kind kind, const FloatMode& mode, Bits a, Bits b) {
  const std::uint16_t asked = control_of(mode);
  std::uint16_t own = 0;
  const Extended left = extended_of(a);
  const Extended right = extended_of(b);
  Extended out;
  // With st(0) as the destination both syntaxes of these instructions mean the same.
  switch (kind) {
    case Kind::float_add:
      BITWITNESS_X87_BINARY("fadd %%st(1), %%st");
      break;
    case Kind::float_subtract:
      BITWITNESS_X87_BINARY("fsub %%st(1), %%st");
      break;
    case Kind::float_multiply:
      BITWITNESS_X87_BINARY("fmul %%st(1), %%st");
      break;
    case Kind::float_divide:
      BITWITNESS_X87_BINARY("fdiv %%st(1), %%st");
      break;
    case Kind::float_sqrt:
      BITWITNESS_X87_UNARY("fsqrt");
      break;
    case Kind::float_round:
      BITWITNESS_X87_UNARY("frndint");
      break;
    default:
      throw Error(fmt::format("there is no {} of x80", to_string(kind)));
  }
  return bits_of(out);
}

Bits to_extended(Format source, Bits a) {
  const std::uint16_t asked = control_of({Format::x80, 64, Rounding::nearest});
  std::uint16_t own = 0;
  Extended out;
  const float single = f32_of(a);
  const double wide = f64_of(a);
  if (source == Format::f32) {
    BITWITNESS_X87("flds %[a]\n\tfstpt %[out]",
                   : [own] "=m"(own), [out] "=m"(out)
                   : [asked] "m"(asked), [a] "m"(single));
  } else {
    BITWITNESS_X87("fldl %[a]\n\tfstpt %[out]", : [own] "=m"(own), [out] "=m"(out) : [asked] "m"(asked), [a] "m"(wide));
  }
  return bits_of(out);
}

Bits from_extended(const FloatMode& mode, Bits a) {
  const std::uint16_t asked = control_of(mode);
  std::uint16_t own = 0;
  const Extended left = extended_of(a);
  if (mode.format == Format::f32) {
    std::uint32_t out = 0;
    BITWITNESS_X87("fldt %[a]\n\tfstps %[out]", : [own] "=m"(own), [out] "=m"(out) : [asked] "m"(asked), [a] "m"(left));
    return out;
  }
  std::uint64_t out = 0;
  BITWITNESS_X87("fldt %[a]\n\tfstpl %[out]", : [own] "=m"(own), [out] "=m"(out) : [asked] "m"(asked), [a] "m"(left));
  return out;
}

Bits x87_to_integer(const FloatMode& mode, unsigned width, Bits a) {
  const std::uint16_t asked = control_of(mode);
  std::uint16_t own = 0;
  const Extended left = extended_of(a);
  if (width == 16) {
    std::uint16_t out = 0;
    BITWITNESS_X87("fldt %[a]\n\tfistps %[out]",
                   : [own] "=m"(own), [out] "=m"(out)
                   : [asked] "m"(asked), [a] "m"(left));
    return out;
  }
  if (width == 32) {
    std::uint32_t out = 0;
    BITWITNESS_X87("fldt %[a]\n\tfistpl %[out]",
                   : [own] "=m"(own), [out] "=m"(out)
                   : [asked] "m"(asked), [a] "m"(left));
    return out;
  }
  std::uint64_t out = 0;
  BITWITNESS_X87("fldt %[a]\n\tfistpll %[out]", : [own] "=m"(own), [out] "=m"(out) : [asked] "m"(asked), [a] "m"(left));
  return out;
}

struct Relation {
  bool zero = false;
  bool parity = false;
  bool carry = false;
};

#define BITWITNESS_FLAGS "\n\tsetz %[zero]\n\tsetp %[parity]\n\tsetc %[carry]"
#define BITWITNESS_SSE_COMPARE(instruction, x, y)                                                        \
  __asm__ volatile("stmxcsr %[own]\n\tldmxcsr %[asked]\n\t" instruction " %[y_], %[x_]" BITWITNESS_FLAGS \
                   "\n\tldmxcsr %[own]"                                                                  \
                   : [own] "=m"(own), [zero] "=&q"(zero), [parity] "=&q"(parity), [carry] "=&q"(carry)   \
                   : [x_] "x"(x), [y_] "x"(y), [asked] "m"(asked)                                        \
                   : "cc")

Relation relation_of(const FloatMode& mode, Bits a, Bits b) {
  std::uint8_t zero = 0;
  std::uint8_t parity = 0;
  std::uint8_t carry = 0;
  if (mode.format == Format::x80) {
    const std::uint16_t asked = control_of(mode);
    std::uint16_t own = 0;
    const Extended left = extended_of(a);
    const Extended right = extended_of(b);
    BITWITNESS_X87("fldt %[b]\n\tfldt %[a]\n\tfucomip %%st(1), %%st" BITWITNESS_FLAGS "\n\tfstp %%st(0)",
                   : [own] "=m"(own), [zero] "=&q"(zero), [parity] "=&q"(parity), [carry] "=&q"(carry)
                   : [asked] "m"(asked), [a] "m"(left), [b] "m"(right));
  } else {
    const std::uint32_t asked = mxcsr_of(mode);
    std::uint32_t own = 0;
    if (mode.format == Format::f32) {
      BITWITNESS_SSE_COMPARE("ucomiss", f32_of(a), f32_of(b));
    } else {
      BITWITNESS_SSE_COMPARE("ucomisd", f64_of(a), f64_of(b));
    }
  }
  return {zero != 0, parity != 0, carry != 0};
}

}  // namespace

Bits processor_arithmetic(Kind kind, const FloatMode& mode, Bits a, Bits b) {
  switch (mode.format) {
    case Format::f32:
      return bits_of(sse_arithmetic(kind, mode, f32_of(a), f32_of(b)));
    case Format::f64:
      return bits_of(sse_arithmetic(kind, mode, f64_of(a), f64_of(b)));
    case Format::x80:
      break;
  }
  return x87_arithmetic(kind, mode, a, b);
}

Bits processor_convert(Format source, const FloatMode& mode, Bits a) {
  if (mode.format == Format::x80) return to_extended(source, a);
  if (source == Format::x80) return from_extended(mode, a);
  const std::uint32_t asked = mxcsr_of(mode);
  std::uint32_t own = 0;
  float single = f32_of(a);
  double wide = f64_of(a);
  if (source == Format::f32) {
    BITWITNESS_SSE("cvtss2sd", wide, single);
    return bits_of(wide);
  }
  BITWITNESS_SSE("cvtsd2ss", single, wide);
  return bits_of(single);
}

Bits processor_widen(Format source, Bits a) {
  const unsigned fraction_bits = precision_of(source) - 1U;
  const Bits quiet = Bits{1} << (fraction_bits - 1);
  const Bits magnitude = a & ones(width_of(source) - 1);
  const Bits infinity = ones(width_of(source) - 1) & ~ones(fraction_bits);
  const Bits wide = to_extended(source, a);
  constexpr unsigned wide_quiet_bit = 62;
  return magnitude > infinity && (a & quiet) == 0 ? wide & ~(Bits{1} << wide_quiet_bit) : wide;
}

Bits processor_from_integer(const FloatMode& mode, unsigned width, Bits a) {
  const std::uint32_t asked = mxcsr_of(mode);
  std::uint32_t own = 0;
  const auto low = static_cast<std::uint64_t>(a);
  const auto integer = width == 16   ? std::int64_t{static_cast<std::int16_t>(low)}
                       : width == 32 ? std::int64_t{static_cast<std::int32_t>(low)}
                                     : static_cast<std::int64_t>(low);
  float single = 0;
  double wide = 0;
#define BITWITNESS_FROM_INTEGER(instruction, destination)                                                   \
  __asm__ volatile("stmxcsr %[own]\n\tldmxcsr %[asked]\n\t" instruction " %[from], %[to]\n\tldmxcsr %[own]" \
                   : [to] "+x"(destination), [own] "=m"(own)                                                \
                   : [from] "r"(integer), [asked] "m"(asked))
  switch (mode.format) {
    case Format::f32:
      BITWITNESS_FROM_INTEGER("cvtsi2ssq", single);
      return bits_of(single);
    case Format::f64:
      BITWITNESS_FROM_INTEGER("cvtsi2sdq", wide);
      return bits_of(wide);
    case Format::x80:
      break;
  }
  Extended out;
  std::uint16_t own_control = 0;
  const std::uint16_t asked_control = control_of(mode);
  BITWITNESS_X87("fildll %[a]\n\tfstpt %[out]",
                 : [own] "=m"(own_control), [out] "=m"(out)
                 : [asked] "m"(asked_control), [a] "m"(integer));
  return bits_of(out);
}

Bits processor_to_integer(const FloatMode& mode, unsigned width, Bits a) {
  if (mode.format == Format::x80) return x87_to_integer(mode, width, a);
  if (width == 16) throw Error("SSE rounds no number to an integer of 16 bits");
  const std::uint32_t asked = mxcsr_of(mode);
  std::uint32_t own = 0;
  std::uint64_t out = 0;
  const float single = f32_of(a);
  const double wide = f64_of(a);
#define BITWITNESS_TO_INTEGER(instruction, source, size)                                                            \
  __asm__ volatile("stmxcsr %[own]\n\tldmxcsr %[asked]\n\t" instruction " %[from], %" size "[to]\n\tldmxcsr %[own]" \
                   : [to] "+r"(out), [own] "=m"(own)                                                                \
                   : [from] "x"(source), [asked] "m"(asked))
  if (mode.format == Format::f32) {
    if (width == 32)
      BITWITNESS_TO_INTEGER("cvtss2si", single, "k");
    else
      BITWITNESS_TO_INTEGER("cvtss2si", single, "q");
  } else if (width == 32) {
    BITWITNESS_TO_INTEGER("cvtsd2si", wide, "k");
  } else {
    BITWITNESS_TO_INTEGER("cvtsd2si", wide, "q");
  }
  return out;
}

bool processor_compare(Kind kind, const FloatMode& mode, Bits a, Bits b) {
  const Relation relation = relation_of(mode, a, b);
  if (kind == Kind::float_unordered) return relation.parity;
  if (relation.parity) return false;
  return kind == Kind::float_less ? relation.carry : relation.zero;
}

#else

namespace {

[[noreturn]] void refuse() {
  throw Error("floating-point expressions are computed by an x86-64 processor only");
}

}  // namespace

Bits processor_arithmetic(Kind, const FloatMode&, Bits, Bits) {
  refuse();
}
Bits processor_convert(Format, const FloatMode&, Bits) {
  refuse();
}
Bits processor_widen(Format, Bits) {
  refuse();
}
Bits processor_from_integer(const FloatMode&, unsigned, Bits) {
  refuse();
}
Bits processor_to_integer(const FloatMode&, unsigned, Bits) {
  refuse();
}
bool processor_compare(Kind, const FloatMode&, Bits, Bits) {
  refuse();
}

#endif

}  // namespace bitwitness::proof
