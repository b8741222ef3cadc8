// The program that executes a decoder's command or loads its library, so that the tool does not, and watches it:
// decoder_host command WORD..., or decoder_host library PATH SYMBOL with a socket and shared memory as descriptors
// (host_protocol.hpp). Linked with nothing of the tool, whose libraries' names would stand in for the library's own.
#include "harness/plugins/host_protocol.hpp"
#include "harness/plugins/keeper.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace bitwitness::plugins;

using DecodeOne = void (*)(const std::uint8_t*, std::uint32_t*);
using DecodeMany = void (*)(const std::uint8_t*, std::uint32_t*, std::size_t);

constexpr std::size_t vector_alignment = 64;

HostControl* control = nullptr;

void note(HostFailure failure, const char* text) {
  std::snprintf(control->text.data(), control->text.size(), "%s", text);
  control->failure = failure;
}

[[noreturn]] void fail(HostFailure failure, const char* text) {
  note(failure, text);
  ::_exit(1);
}

void note_exit() {
  fail(HostFailure::exited, "");
}

void limit_memory(std::uint64_t more) {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  const bool is_read = file != nullptr && std::fscanf(file, "%lu", &pages) == 1;
  if (file != nullptr) std::fclose(file);
  if (!is_read) return;
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur <= most) return;
  limit.rlim_cur = most;
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Returns a symbol's address, or null when the library has none of that name.
void* find(void* library, const std::string& name) {
  ::dlerror();
  return ::dlsym(library, name.c_str());
}

void* find_function(void* library, const std::string& name) {
  void* address = find(library, name);
  if (address == nullptr) return nullptr;
  Dl_info info{};
  void* entry = nullptr;
  if (::dladdr1(address, &info, &entry, RTLD_DL_SYMENT) != 0 && entry != nullptr) {
    const auto* symbol = static_cast<const ElfW(Sym)*>(entry);
    if ((symbol->st_info & 15U) == STT_OBJECT) fail(HostFailure::not_function, name.c_str());
  }
  return address;
}

bool ends_with_batch(const std::string& name) {
  const std::size_t length = std::strlen(batch_suffix);
  return name.size() > length && name.compare(name.size() - length, length, batch_suffix) == 0;
}

struct Routines {
  DecodeOne one = nullptr;
  DecodeMany many = nullptr;  ///< is called when there is one
};

Routines load(const char* path, const std::string& symbol) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(HostFailure::no_library, ::dlerror());
  Routines routines;
  if (ends_with_batch(symbol)) {
    routines.many = reinterpret_cast<DecodeMany>(find_function(library, symbol));
  } else {
    routines.one = reinterpret_cast<DecodeOne>(find_function(library, symbol));
    routines.many = reinterpret_cast<DecodeMany>(find_function(library, symbol + batch_suffix));
  }
  if (routines.one == nullptr && routines.many == nullptr) fail(HostFailure::no_symbol, symbol.c_str());
  control->is_batch = routines.many != nullptr ? 1 : 0;
  if (const void* text = find(library, symbol + description_suffix)) {
    std::strncpy(control->description.data(), static_cast<const char*>(text), control->description.size() - 1);
  }
  return routines;
}

void check_guard(const std::uint32_t* words) {
  if (!std::all_of(words, words + guard_words, [](std::uint32_t word) { return word == guard_word; })) {
    fail(HostFailure::wrote_too_far, "");
  }
}

/// Each value's words come into memory of their own first, where writing past them shows.
void decode_each(DecodeOne decode, const std::uint8_t* packed, std::uint32_t* words, std::size_t count) {
  const std::size_t packed_size = control->packed_size;
  const std::size_t word_count = control->word_count;
  static std::vector<std::uint32_t> memory(word_count + guard_words + vector_alignment);
  void* start = memory.data();
  std::size_t space = memory.size() * sizeof(std::uint32_t);
  auto* const scratch = static_cast<std::uint32_t*>(
      std::align(vector_alignment, (word_count + guard_words) * sizeof(std::uint32_t), start, space));
  std::fill_n(scratch + word_count, guard_words, guard_word);
  for (std::size_t i = 0; i < count; ++i) {
    control->done.store(i, std::memory_order_release);
    std::fill_n(scratch, word_count, unwritten_word);
    decode(packed + i * packed_size, scratch);
    check_guard(scratch + word_count);
    std::copy_n(scratch, word_count, words + i * word_count);
  }
}

void decode_batch(DecodeMany decode, const std::uint8_t* packed, std::uint32_t* words, std::size_t count) {
  const std::size_t total = count * control->word_count;
  std::fill_n(words, total, unwritten_word);
  std::fill_n(words + total, guard_words, guard_word);
  decode(packed, words, count);
  check_guard(words + total);
}

bool receive(void* data, std::size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(host_socket, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(HostFailure::closed_socket, "");
    if (got == 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void answer() {
  const char byte = 0;
  ssize_t put = 0;
  while ((put = ::write(host_socket, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (put < 0) fail(HostFailure::closed_socket, "");
}

/// Executes a command. A process that another thread of the tool is just starting may hold the file open for writing.
int execute(char** words) {
  const int failed = keep(command_control);
  constexpr int most_busy = 100;
  constexpr timespec busy_pause{0, 10'000'000};
  for (int i = 0; i < most_busy; ++i) {
    ::execvp(words[0], words);
    if (errno != ETXTBSY) break;
    ::nanosleep(&busy_pause, nullptr);
  }
  const int reason = errno;
  return ::write(failed, &reason, sizeof reason) == sizeof reason ? 1 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && std::strcmp(argv[1], is_command) == 0) return execute(argv + 2);
  if (argc != 4) return 1;
  ::close(keep(library_control));
  constexpr std::size_t least = sizeof(HostControl);
  void* memory = ::mmap(nullptr, least, PROT_READ | PROT_WRITE, MAP_SHARED, host_memory, 0);
  if (memory == MAP_FAILED) return 1;
  const std::size_t total = static_cast<const HostControl*>(memory)->total;
  ::munmap(memory, least);
  memory = ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED, host_memory, 0);
  if (memory == MAP_FAILED) return 1;
  ::close(host_memory);
  control = static_cast<HostControl*>(memory);
  const auto* packed = static_cast<const std::uint8_t*>(memory) + control->packed_offset;
  auto* words = reinterpret_cast<std::uint32_t*>(static_cast<std::uint8_t*>(memory) + control->words_offset);

  limit_memory(control->memory_limit);
  std::atexit(note_exit);
  std::at_quick_exit(note_exit);
  try {
    const Routines routines = load(argv[2], argv[3]);
    answer();
    std::uint32_t count = 0;
    while (receive(&count, sizeof count)) {
      if (routines.many != nullptr) {
        decode_batch(routines.many, packed, words, count);
      } else {
        decode_each(routines.one, packed, words, count);
      }
      answer();
    }
  } catch (const std::exception& error) {
    fail(HostFailure::threw, error.what());
  } catch (...) {
    fail(HostFailure::threw, "something that is no std::exception");
  }
  ::_exit(0);
}
