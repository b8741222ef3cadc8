#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// How arguments are passed and who removes them. `automatic` ("auto") leaves it to be inferred.
enum class Convention : std::uint8_t { cdecl_call, stdcall_call, thiscall_call, fastcall_call, win64, automatic };

enum class Scalar : std::uint8_t { u8, u16, u32, u64, i8, i16, i32, i64, f32, f64 };

/// General registers are named by number in the order eax ecx edx ebx esp ebp esi edi r8 … r15.
enum class RegisterClass : std::uint8_t { general, xmm };

struct Register {
  RegisterClass kind = RegisterClass::general;
  std::uint8_t number = 0;
  bool operator==(const Register&) const = default;
};

/// Bytes behind a pointer that a routine passes over: they are neither packed value nor output.
struct Skip {
  std::uint32_t before = 0;  ///< index of the element that follows
  std::uint32_t bytes = 0;
  bool operator==(const Skip&) const = default;
};

/// A scalar or an array of `count` of them.
struct Type {
  Scalar scalar = Scalar::u8;
  std::uint32_t count = 1;
  bool is_array = false;      ///< "u8[1]" and "u8" differ in print only
  std::vector<Skip> skips{};  ///< by rising index; of what a pointer points to only

  [[nodiscard]] std::size_t size() const;                          ///< bytes of the elements
  [[nodiscard]] std::size_t extent() const;                        ///< bytes from the pointer to the last element's end
  [[nodiscard]] std::size_t offset_of(std::size_t element) const;  ///< bytes from the pointer on
  [[nodiscard]] std::size_t word_count()
      const;  ///< 32-bit words when it is output: 2 for an 8-byte scalar, else 1, each
  bool operator==(const Type&) const = default;
};

enum class Role : std::uint8_t {
  in,       ///< pointer to packed bytes
  out,      ///< pointer to results
  inout,    ///< pointer to a buffer that holds packed bytes before and results after
  value,    ///< the packed bytes themselves
  constant  ///< an argument that is the same on every call
};

struct Argument {
  Role role = Role::in;
  Type type;
  std::uint64_t literal = 0;  ///< bits of a constant, zero-extended from its type's width
  std::optional<Register> place;
  bool operator==(const Argument&) const = default;
};

struct Result {
  Scalar scalar = Scalar::f32;  ///< f32, f64, u32 or u64
  std::optional<Register> place;
  bool operator==(const Result&) const = default;
};

/// What a routine takes and gives. Several `in`, `inout` and `value` arguments take consecutive bytes of the packed
/// value; several `out` and `inout` arguments, then the result, give consecutive 32-bit words of the output. An element
/// of fewer than four bytes becomes one word (signed ones sign-extended), one of eight bytes two words, low first.
struct Signature {
  Convention convention = Convention::cdecl_call;
  std::vector<Argument> arguments;
  std::optional<Result> result;

  [[nodiscard]] std::size_t packed_size() const;  ///< bytes of one packed value
  [[nodiscard]] std::size_t word_count() const;   ///< 32-bit words of one output
  bool operator==(const Signature&) const = default;
};

/// Upper limits of a signature, so that one value's buffers stay below a page.
inline constexpr std::size_t max_packed_size = 256;
inline constexpr std::size_t max_output_bytes = 1024;
inline constexpr std::size_t max_arguments = 16;
inline constexpr std::size_t max_skips = 64;

/// Parses the signature language. Throws Error with the text, a caret's column (from 1) and what was expected there.
///
///   signature  := convention "(" [argument {"," argument}] ")" ["->" result]
///   convention := cdecl | stdcall | thiscall | fastcall | win64 | auto
///   argument   := ("in" | "out" | "inout") type ["@" register] | "value" type ["@" register] | type "=" literal ["@"
///   register] type       := scalar ["[" ["+" bytes ","] count {"," "+" bytes "," count} "]"] result     := (f32 | f64
///   | u32 | u64) ["@" register] literal    := decimal or 0x… integer; of an f32 or f64 a decimal number, or 0x… for
///   its bits
///
/// "+ bytes" passes over what lies there: `out f32[4, +16, 4]` is two times four floats, 32 bytes apart.
/// `auto` has no arguments and stands alone. Nothing else may lack packed input or output, or name a register twice.
Signature parse_signature(std::string_view text);

/// Prints a signature so that parse_signature gives it back.
std::string to_string(const Signature& signature);
std::string to_string(const Type& type);
std::string_view to_string(Scalar scalar);
std::string_view to_string(Convention convention);
std::string to_string(Register reg, bool is_64_bit);

/// Bytes of one scalar.
std::size_t size_of(Scalar scalar);

/// Throws Error when an image of that width cannot have such a routine (win64 in PE32, r8 in 32-bit code, …).
void require_callable(const Signature& signature, bool is_64_bit);

}  // namespace bitwitness
