#pragma once
#include "harness/disassembly.hpp"
#include "harness/emulator.hpp"
#include "harness/image.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace bitwitness {

/// Follows one call and says where its path depends on the processor (cpuid, xgetbv) or on bytes of the image's
/// writable data, which a program's own start-up code may have set and which are here as in the file. Is told of every
/// instruction, load and store in their order.
class PathRecorder {
 public:
  PathRecorder(const Image& image, const Emulator& emulator);

  void on_instruction(std::uint64_t address);
  void on_read(std::uint64_t address, unsigned size);
  void on_write(std::uint64_t address, unsigned size);

  /// One clause for each fact in the order of their first appearance, such as "executes cpuid at 0x401000, …". After a
  /// few, one that counts the others.
  [[nodiscard]] std::vector<std::string> clauses() const;

 private:
  /// Where a jump that depends on a fact went.
  struct Branch {
    std::uint64_t address = 0;
    std::uint64_t target = 0;
    std::optional<bool> taken;  ///< nothing for an indirect jump or call
  };

  /// What cpuid or xgetbv gave, in the order eax ecx edx ebx.
  struct Answer {
    std::uint32_t leaf = 0;
    std::uint32_t subleaf = 0;
    std::array<std::uint32_t, 4> registers{};
  };

  struct Fact {
    enum class Kind : std::uint8_t { cpuid, xgetbv, data };
    Kind kind = Kind::data;
    std::uint64_t instruction = 0;
    std::vector<Answer> answers;
    std::uint64_t address = 0;  ///< of data
    std::uint64_t size = 0;
    std::vector<Branch> branches;
  };

  /// The registers and flags that carry what a fact gave.
  struct Carrier {
    std::size_t fact = 0;
    std::uint16_t registers = 0;
    bool flags = false;
    bool decides = false;  ///< the current instruction goes where it says
    unsigned left = 0;     ///< instructions to follow it for
  };

  void complete(std::uint64_t next);
  void begin_query(std::uint64_t address);
  void answer();
  /// Has a carrier of what the current instruction reads stand for the fact.
  void carry(std::size_t fact);
  static void follow(Carrier& carrier, const Instruction& instruction);
  [[nodiscard]] bool is_data(std::uint64_t address, unsigned size) const;
  [[nodiscard]] bool was_read(std::uint64_t address, unsigned size) const;
  void note_read(std::uint64_t address, unsigned size);
  [[nodiscard]] bool was_written(std::uint64_t address, unsigned size) const;
  [[nodiscard]] bool was_set(const Fact& fact) const;
  [[nodiscard]] std::string clause(const Fact& fact) const;
  [[nodiscard]] std::string data_text(const Fact& fact) const;
  static std::string query_text(const Fact& fact);

  const Image& image_;
  const Emulator& emulator_;
  std::vector<Fact> facts_;
  std::vector<Carrier> carriers_;
  std::unordered_set<std::uint64_t> slots_;      ///< of imports
  std::map<std::uint64_t, std::uint64_t> read_;  ///< ranges of data that facts are about: first byte, end
  std::unordered_set<std::uint64_t> written_;    ///< bytes of the image
  bool is_blind_ = false;                        ///< has seen more than it keeps
  std::uint64_t current_ = 0;
  std::optional<Instruction> instruction_;  ///< the current one, when it has been decoded
  std::optional<Answer> query_;             ///< of the current instruction
  std::size_t query_fact_ = 0;
};

}  // namespace bitwitness
