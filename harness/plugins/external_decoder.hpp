#pragma once
#include "harness/plugins/decoder_shape.hpp"
#include "harness/subject.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace bitwitness {

/// What a decoder outside of this program is granted.
struct ExternalDecoderOptions {
  std::chrono::milliseconds timeout{10'000};        ///< without progress, then it is ended
  std::chrono::milliseconds start_timeout{60'000};  ///< for its start, or `timeout` where that is longer
  std::uint64_t library_memory = std::uint64_t{2}
                                 << 30;  ///< bytes of address space that a library may add; commands have no limit
  std::stop_token stop{};                ///< ends the wait for its start
};

/// Tells whether a text names a decoder outside of this program: `LIBRARY.so:SYMBOL` or `exec:COMMAND`. Such a text may
/// only come from the user, never from a report, a target or a vector file: it says what to execute.
bool names_external_decoder(std::string_view text);

/// Starts a decoder in a process of its own and returns it as a subject whose `decode_batch` may be called from several
/// threads; each call has a process to itself, and processes are used again until `finish`. Its name is the text with
/// paths cut to file names, `option` the text, `notes` the SHA-256 of its files. The tool never loads the library.
/// Throws Error with the decoder, what is wrong and, where there is one, the value: so do `decode`, `decode_batch` and
/// `finish`.
Subject make_external_subject(const std::string& text, DecoderShape shape, const ExternalDecoderOptions& options = {});

/// The decoders of a run over several files: subjects of the same text and sizes have their processes in common. Used
/// by one thread; what it returns does not need it.
class ExternalDecoders {
 public:
  explicit ExternalDecoders(ExternalDecoderOptions options = {});
  ~ExternalDecoders();
  ExternalDecoders(const ExternalDecoders&) = delete;
  ExternalDecoders& operator=(const ExternalDecoders&) = delete;

  /// Returns what `make_external_subject` would; starts a process only for a text and sizes that are new.
  Subject subject(const std::string& text, DecoderShape shape);

 private:
  struct Started;
  using Key = std::tuple<std::string, std::size_t, std::size_t>;  // text, bytes of a value, words

  const Started& start(const Key& key);

  ExternalDecoderOptions options_;
  std::map<Key, std::unique_ptr<Started>> started_;
};

/// Returns the files that such a decoder is made of: the library, or the files that words of the command name. Nothing
/// may be written to them. Throws Error for a command that cannot be split into words.
std::vector<std::string> files_of_external_decoder(const std::string& text);

}  // namespace bitwitness
