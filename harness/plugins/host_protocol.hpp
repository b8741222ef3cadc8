#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// What the program that loads a library and the library worker share: memory and a socket. The worker sends the number
// of values; the host answers with one byte when their words are there. Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// The first argument of the host: what the decoder is. A command's words follow, or a library's path and symbol.
inline constexpr const char* is_command = "command";
inline constexpr const char* is_library = "library";

inline constexpr int command_control = 3;  ///< the keeper's (keeper.hpp), beside standard input, output and error
inline constexpr int host_socket = 3;      ///< descriptors that the host is started with
inline constexpr int host_memory = 4;
inline constexpr int library_control = 5;

/// Words behind the last one that a decoder may write, and what they hold.
inline constexpr std::size_t guard_words = 16;
inline constexpr std::uint32_t guard_word = 0x5ca1ab1e;

/// What a word that a decoder does not write holds.
inline constexpr std::uint32_t unwritten_word = 0xa5a5a5a5;

/// At the end of the name of a routine that takes a whole batch, and of the text that describes one.
inline constexpr const char* batch_suffix = "_batch";
inline constexpr const char* description_suffix = "_description";

enum class HostFailure : std::uint32_t {
  none,
  no_library,     ///< text: the loader's reason
  no_symbol,      ///< text: the symbol
  not_function,   ///< text: the symbol
  exited,         ///< the library called exit()
  threw,          ///< text: what the exception says
  wrote_too_far,  ///< past the words it was given
  closed_socket,  ///< the library closed it
};

/// The start of the shared memory. The library can write here too: nothing in it is trusted after the start.
struct HostControl {
  std::uint64_t packed_size;
  std::uint64_t word_count;
  std::uint64_t packed_offset;  ///< of the packed values in the memory
  std::uint64_t words_offset;
  std::uint64_t total;
  std::uint64_t memory_limit;  ///< bytes of address space to be added
  std::atomic<std::uint64_t> done;
  std::atomic<HostFailure> failure;
  std::atomic<std::uint32_t> is_batch;
  std::array<char, 1024> text;
  std::array<char, 4096> description;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<HostFailure>::is_always_lock_free,
              "two processes share them");

}  // namespace bitwitness::plugins
