#include "harness/plugins/external_decoder.hpp"

#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/plugins/command_worker.hpp"
#include "harness/plugins/library_worker.hpp"
#include "harness/plugins/wording.hpp"
#include "harness/plugins/worker_pool.hpp"
#include "harness/printable.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include <elf.h>
#include <fmt/format.h>

namespace bitwitness {
namespace {

namespace fs = std::filesystem;
using plugins::Sizes;
using plugins::WorkerPool;

constexpr std::string_view command_prefix = "exec:";

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw Error(fmt::format("decoder {}: {}", printable(text, true), what));
}

std::string file_note(std::string_view name, std::span<const std::byte> bytes) {
  return fmt::format("the decoder's file {} has SHA-256 {}", printable(name, true), sha256_hex(bytes));
}

/// What stands in the header of a file for the processor that this program is built for.
std::uint16_t own_machine() {
  const FileBytes self = FileBytes::open("/proc/self/exe");
  Elf64_Ehdr header{};
  std::memcpy(&header, self.bytes().data(), std::min(sizeof header, self.bytes().size()));
  return header.e_machine;
}

/// The loader says "no such file" of a library for another processor.
void require_library(const std::string& text, const std::string& path, std::span<const std::byte> bytes) {
  constexpr std::array magic = {std::byte{0x7f}, std::byte{'E'}, std::byte{'L'}, std::byte{'F'}};
  if (bytes.size() < sizeof(Elf64_Ehdr) || !std::equal(magic.begin(), magic.end(), bytes.begin())) {
    refuse(text, fmt::format("{} is no shared library (ELF)", printable(path, true)));
  }
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  const unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (header.e_ident[EI_CLASS] != own_class || header.e_machine != own_machine()) {
    refuse(text, fmt::format("{} is built for another processor (ELF machine {}, {} bits; this is {}, {} bits)",
                             printable(path, true), header.e_machine, header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32,
                             own_machine(), 8 * sizeof(void*)));
  }
  if (header.e_type != ET_DYN)
    refuse(text, fmt::format("{} is an ELF file, but no shared library", printable(path, true)));
}

/// Runtimes of other languages take their time on a busy machine.
std::chrono::milliseconds start_timeout(const ExternalDecoderOptions& options) {
  return std::max(options.timeout, options.start_timeout);
}

/// What a text asks for.
struct Plan {
  plugins::StartWorker start;
  std::string name;
  std::vector<std::string> notes;
};

Plan plan_library(const std::string& text, Sizes sizes, const ExternalDecoderOptions& options) {
  const std::size_t colon = text.rfind(':');
  const std::string path = text.substr(0, colon);
  const std::string symbol = text.substr(colon + 1);
  if (path.empty() || symbol.empty() || symbol.find('/') != std::string::npos) {
    refuse(text, "expected LIBRARY.so:SYMBOL or exec:COMMAND");
  }
  if (text.find('\0') != std::string::npos) refuse(text, "a path cannot hold a zero byte");
  std::string reason;
  const std::optional<FileBytes> file = FileBytes::open(reason, path);
  if (!file) refuse(text, fmt::format("{}: {}", printable(path, true), reason));
  require_library(text, path, file->bytes());
  Plan plan;
  // A name without a slash would be looked for where the system keeps its libraries.
  const plugins::LibrarySetup setup = {
      fs::absolute(path).string(), symbol, sizes, options.timeout, start_timeout(options), options.library_memory};
  plan.start = [setup](plugins::Spawner& spawner, const std::stop_token& stop) {
    return plugins::start_library(spawner, setup, stop);
  };
  plan.name = file_name_of(path) + ':' + symbol;
  plan.notes.push_back(file_note(file_name_of(path), file->bytes()));
  return plan;
}

/// Splits a command into words: blanks part them; '…' keeps all, "…" all but \ before \ and ", and \ the next
/// character.
std::vector<std::string> split_command(const std::string& text, std::string_view command) {
  std::vector<std::string> words;
  bool is_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      is_word = false;
      continue;
    }
    if (!is_word) words.emplace_back();
    is_word = true;
    const bool is_quote = c == '\'' || c == '"';
    if (is_quote && (quote == '\0' || quote == c)) {
      quote = quote == '\0' ? c : '\0';
    } else if (c == '\\' && quote != '\'') {
      if (i + 1 == command.size()) refuse(text, "the command ends with a backslash");
      const bool stays = quote == '"' && command[i + 1] != '\\' && command[i + 1] != '"';
      if (stays) words.back() += c;
      words.back() += command[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != '\0') refuse(text, fmt::format("the command has a {} without its other one", quote));
  if (words.empty() || words.front().empty()) refuse(text, "exec: needs a command");
  return words;
}

/// Cuts the words of a command that hold a slash to what follows the last one, and hashes those that name a file.
void describe_command(Plan& plan, const std::vector<std::string>& words) {
  std::set<std::string> seen;
  for (const std::string& word : words) {
    plan.name += fmt::format("{}{}", plan.name.empty() ? command_prefix : " ", file_name_of(word));
    std::string reason;
    if (word.empty() || !seen.insert(word).second) continue;
    if (const std::optional<FileBytes> file = FileBytes::open(reason, word)) {
      plan.notes.push_back(file_note(file_name_of(word), file->bytes()));
    }
  }
}

Plan plan_command(const std::string& text, Sizes sizes, const ExternalDecoderOptions& options) {
  if (text.find('\0') != std::string::npos) refuse(text, "a command cannot hold a zero byte");
  Plan plan;
  const plugins::CommandSetup setup = {split_command(text, std::string_view(text).substr(command_prefix.size())), sizes,
                                       options.timeout, start_timeout(options)};
  plan.start = [setup](plugins::Spawner& spawner, const std::stop_token& stop) {
    return plugins::start_command(spawner, setup, stop);
  };
  describe_command(plan, setup.arguments);
  return plan;
}

}  // namespace

bool names_external_decoder(std::string_view text) {
  return text.find_first_of(":/") != std::string_view::npos || text.ends_with(".so");
}

struct ExternalDecoders::Started {
  std::string name;
  std::vector<std::string> notes;
  std::shared_ptr<WorkerPool> pool;
  std::string description;
};

ExternalDecoders::ExternalDecoders(ExternalDecoderOptions options) : options_(std::move(options)) {}
ExternalDecoders::~ExternalDecoders() = default;

const ExternalDecoders::Started& ExternalDecoders::start(const Key& key) {
  const auto& [text, packed, words] = key;
  const Sizes sizes = {packed, words};
  if (const auto found = started_.find(key); found != started_.end()) return *found->second;
  Plan plan =
      text.starts_with(command_prefix) ? plan_command(text, sizes, options_) : plan_library(text, sizes, options_);
  const auto pool = std::make_shared<WorkerPool>(text, sizes, options_.timeout, std::move(plan.start));
  std::string description = pool->start_first(options_.stop);
  auto started =
      std::make_unique<Started>(Started{std::move(plan.name), std::move(plan.notes), pool, std::move(description)});
  return *started_.emplace(key, std::move(started)).first->second;
}

Subject ExternalDecoders::subject(const std::string& text, DecoderShape shape) {
  const Sizes sizes = {shape.packed_size, shape.word_names.size()};
  if (sizes.packed == 0 || sizes.packed > max_packed_size || sizes.words == 0 ||
      sizes.words > max_output_bytes / sizeof(std::uint32_t)) {
    refuse(text, fmt::format("values of {} bytes with {} words cannot be asked for", sizes.packed, sizes.words));
  }
  if (!text.starts_with(command_prefix) && text.find(':') == std::string::npos) {
    refuse(text, "expected LIBRARY.so:SYMBOL or exec:COMMAND");
  }
  const Started& started = start({text, sizes.packed, sizes.words});
  try {
    apply_description(shape, started.description);
  } catch (const Error& error) {
    refuse(text, fmt::format("it describes itself as '{}': {}", plugins::quotable(started.description), error.what()));
  }
  if (shape.fields.empty()) shape.fields.push_back({"value", 0, static_cast<unsigned>(8 * sizes.packed)});
  Subject subject;
  subject.name = started.name;
  subject.option = text;
  subject.packed_size = sizes.packed;
  subject.word_names = std::move(shape.word_names);
  subject.fields = std::move(shape.fields);
  subject.word_kind = shape.word_kind;
  subject.notes = started.notes;
  subject.decode = [pool = started.pool](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    pool->decode(packed, words, {});
  };
  subject.decode_batch = [pool = started.pool](std::span<const std::byte> packed, std::span<std::uint32_t> words,
                                               const std::stop_token& stop) {
    return pool->decode(packed, words, stop);
  };
  subject.finish = [pool = started.pool] { pool->finish(); };
  return subject;
}

Subject make_external_subject(const std::string& text, DecoderShape shape, const ExternalDecoderOptions& options) {
  return ExternalDecoders(options).subject(text, std::move(shape));
}

std::vector<std::string> files_of_external_decoder(const std::string& text) {
  if (!text.starts_with(command_prefix)) return {text.substr(0, text.rfind(':'))};
  std::vector<std::string> files = split_command(text, std::string_view(text).substr(command_prefix.size()));
  std::erase_if(files, [](const std::string& word) {
    std::error_code error;
    return !fs::is_regular_file(word, error);
  });
  return files;
}

}  // namespace bitwitness
