#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/signature.hpp"
#include "harness/subject.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace bitwitness {

enum class ConstantKind : std::uint8_t {
  f32,   ///< four bytes, in data or as an immediate
  f64,   ///< eight bytes, in data, as an immediate or as two immediates
  mask,  ///< an integer immediate of two or four bytes
  shift  ///< a shift of a register by so many bits
};

/// Something that the code of a wanted routine holds or refers to.
struct KnownConstant {
  ConstantKind kind = ConstantKind::f32;
  std::uint64_t bits = 0;
  /// Rare enough that each reference to it is looked at. Others count only where several kinds stand close together.
  bool is_decisive = false;
};

/// Prints a constant: "f64 3f06a0cba0000000", "mask 7fff", "shift by 15".
std::string to_string(const KnownConstant& constant);

/// Says what a routine at an address may take and give, likeliest first.
using SignatureProposer = std::function<std::vector<Signature>(const Image&, std::uint64_t)>;

/// Proposes the usual ways to pass one packed value and its words, also in halves: by every convention with pointers in
/// both orders, small values by value, few words as a result. Ways that the routine's own return contradicts are left
/// out.
SignatureProposer usual_signatures(const Subject& subject);

/// Proposes what optimisers make of routines that nobody else calls: packed bytes and results through any registers.
SignatureProposer register_signatures(const Subject& subject);

/// A routine of another image that the wanted one may equal.
struct LikeRoutine {
  const Image* image = nullptr;
  std::uint64_t address = 0;
};

/// A routine to find.
struct WantedRoutine {
  std::string name;
  Subject subject;                  ///< what it has to agree with
  std::optional<LikeRoutine> like;  ///< searched for by its instructions
  /// Later ones only while no candidate agrees on every value, the last one only for code that more speaks for than
  /// common constants.
  std::vector<SignatureProposer> signatures;
};

/// How the values of one candidate ended with the signature that fits best.
struct TriedSignature {
  Signature signature;
  std::size_t tried = 0;
  std::size_t agreed = 0;

  [[nodiscard]] bool is_full() const { return tried > 0 && agreed == tried; }
};

/// Code that may be the wanted routine.
struct FoundCode {
  std::uint64_t address = 0;
  std::vector<std::string> reasons;     ///< sentences without a subject: "refers to f64 3f06a0cba0000000 at 0x403000"
  std::optional<TriedSignature> trial;  ///< the best of those run; nothing when none could be
  std::optional<double> alike;          ///< share of the like routine's bytes that are here, addresses left out
  std::vector<std::uint64_t> thunks;    ///< jumps that lead to it
};

enum class Standing : std::uint8_t {
  clear,        ///< one routine agrees on every value tried
  several,      ///< more than one does, and nothing tells which is meant
  partial,      ///< the first agrees on some values
  unconfirmed,  ///< none agrees on any value: what is listed only refers to constants or looks alike
  nothing       ///< no candidate
};

std::string_view to_string(Standing standing);

/// A place that calls a located routine.
struct CallSite {
  std::uint64_t address = 0;   ///< of the call
  std::uint64_t returns = 0;   ///< address after it
  std::uint64_t function = 0;  ///< start of the function around it; 0 when unknown
  std::vector<std::string> reasons;
};

/// What was found of one wanted routine.
struct RoutineLocation {
  std::string name;
  Standing standing = Standing::nothing;
  std::vector<FoundCode> candidates;  ///< best first
  std::vector<CallSite> calls;        ///< of the first candidate when its standing is clear, by address
  std::vector<std::string> notes;     ///< what was left out
};

struct LocateOptions {
  std::size_t values = 64;        ///< packed values that a candidate has to agree on
  std::size_t most_run = 96;      ///< candidates that are executed for one routine
  std::uint64_t budget = 20'000;  ///< instructions one value may execute
  double candidate_seconds = 2;   ///< after which no further signature of a candidate is tried
  double seconds = 30;            ///< after which no further candidate of any routine is run
  Environment environment;
  std::stop_token stop;
};

/// What was found, and how much there was to search.
struct Location {
  std::vector<RoutineLocation> routines;  ///< in the order wanted
  std::uint64_t code_bytes = 0;
  std::size_t references = 0;  ///< to decisive constants
  bool interrupted = false;
};

/// Searches an image for routines: for code that refers to the constants, for code with the instructions of the like
/// routines, and for the callers of both; and runs what it finds against the subjects. Throws Error when a wanted
/// routine's subject has no values. Takes time in proportion to the code, and a bounded time for each candidate.
Location locate(const Image& image, std::span<const WantedRoutine> wanted, std::span<const KnownConstant> constants,
                const LocateOptions& options = {});

}  // namespace bitwitness
