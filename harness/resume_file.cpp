#include "harness/resume_file.hpp"

#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/json_place.hpp"
#include "harness/printable.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bitwitness {
namespace {

namespace fs = std::filesystem;

/// No text begins like this, and a transfer that converts line ends breaks it.
constexpr std::array<unsigned char, 8> magic{0x89, 'B', 'W', 'R', '\r', '\n', 0x1a, '\n'};
constexpr std::uint32_t version = 1;
constexpr std::string_view schema = "bitwitness-resume/1";
constexpr std::size_t preamble_size = magic.size() + 2 * sizeof(std::uint32_t);
constexpr std::size_t digest_size = sizeof(Sha256Bytes);

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

template <typename Integer>
Integer integer_at(std::span<const std::byte> bytes, std::size_t at) {
  Integer value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename Integer>
void append(std::string& out, Integer value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string header_of(const RunFingerprint& fingerprint) {
  nlohmann::ordered_json json = {{"schema", schema}};
  for (const auto& [name, text] : fingerprint) json[name] = text;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

/// A text of a file in a message about it.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 100;
  return "'" + printable(text.substr(0, most), true) + (text.size() > most ? "…'" : "'");
}

/// Says what the header of a file and that of these runs do not have in common.
std::string first_other(std::string_view old_header, std::string_view new_header, const std::string& path) {
  const nlohmann::json old_json = parse_json(old_header, path);
  const auto new_json = nlohmann::ordered_json::parse(new_header);
  const auto text_of = [](const auto& json) {
    return json.is_string() ? shown(json.template get<std::string>()) : std::string("something else");
  };
  for (const auto& [name, text] : new_json.items()) {
    const auto found = old_json.find(name);
    if (found == old_json.end()) return fmt::format("{} none → {}", name, text_of(text));
    if (*found != nlohmann::json(text)) return fmt::format("{} {} → {}", name, text_of(*found), text_of(text));
  }
  for (const auto& [name, text] : old_json.items()) {
    if (!new_json.contains(name)) return fmt::format("{} {} → none", printable(name, true), text_of(text));
  }
  return "the order of what it says";
}

/// Closes a descriptor, and with it unlocks the file.
void close_file(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

bool is_at(int file, const std::string& path) {
  struct stat opened {};
  struct stat there {};
  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

/// A file that is removed unless it has got its final name.
struct NewFile {
  std::string path;
  int file = -1;

  ~NewFile() {
    if (file < 0) return;
    ::unlink(path.c_str());
    ::close(file);
  }
};

}  // namespace

ResumeFile::ResumeFile(std::string path) : path_(std::move(path)), final_path_(path_) {
  const auto refuse = [this](std::string_view why) -> void { throw Error(fmt::format("{}: {}", path_, why)); };
  const auto fail = [&](std::string_view what, int reason) {
    close_file(file_);
    refuse(fmt::format("{}: {}", what, std::strerror(reason)));
  };
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) refuse("is not a regular file");
    final_path_ = fs::canonical(path_, error).string();
    if (error) refuse(error.message());
  }
  while (true) {
    is_made_ = false;
    file_ = ::open(final_path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0 && errno == ENOENT) {
      file_ = ::open(final_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno == EEXIST && !fs::is_symlink(final_path_, error)) continue;
      is_made_ = file_ >= 0;
    }
    if (file_ < 0) fail("cannot be read and written", errno);
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      if (reason != EWOULDBLOCK) fail("cannot be locked", reason);
      close_file(file_);
      refuse("another process is using it");
    }
    // Who had it before may have put another file in its place.
    if (is_at(file_, final_path_)) return;
    close_file(file_);
  }
}

ResumeFile::~ResumeFile() {
  if (is_made_) ::unlink(final_path_.c_str());
  close_file(file_);
}

/// A file that goes on far beyond what it says of itself is not read to its end.
void ResumeFile::require_bounded(std::span<const std::byte> bytes, std::size_t runs) const {
  constexpr std::uint64_t most_unread = std::uint64_t{1} << 26;
  const std::uint64_t end = bytes.size() - digest_size;
  std::uint64_t at = preamble_size + integer_at<std::uint32_t>(bytes, magic.size() + sizeof version);
  for (std::size_t i = 0; i < runs && at + sizeof(std::uint64_t) <= end; ++i) {
    const auto size = integer_at<std::uint64_t>(bytes, static_cast<std::size_t>(at));
    at += sizeof size + std::min(size, end);
  }
  if (at > end || end - at <= most_unread) return;  // its digest tells the rest
  throw Error(fmt::format("{}: offset {}: more follows than the runs that it is of", path_, at));
}

bool ResumeFile::load(const RunFingerprint& fingerprint, std::size_t runs) {
  header_ = header_of(fingerprint);
  runs_.assign(runs, {});
  offsets_.assign(runs, 0);
  const FileBytes contents = FileBytes::open(final_path_);
  const std::span<const std::byte> bytes = contents.bytes();
  if (bytes.empty()) return false;

  const auto refuse = [this](std::uint64_t offset, std::string_view why) {
    throw Error(fmt::format("{}: offset {}: {}", path_, offset, why));
  };
  const std::size_t compared = std::min(bytes.size(), magic.size());
  if (std::memcmp(bytes.data(), magic.data(), compared) != 0) refuse(0, "is not a file that keeps a run");
  if (bytes.size() < preamble_size + digest_size) refuse(bytes.size(), "ends too early: it was cut short");
  const auto its_version = integer_at<std::uint32_t>(bytes, magic.size());
  if (its_version != version) {
    refuse(magic.size(), fmt::format("version {} is not known, only {}", its_version, version));
  }
  const std::size_t end = bytes.size() - digest_size;
  require_bounded(bytes, runs);
  Sha256 hash;
  hash.update(bytes.first(end));
  const Sha256Bytes digest = hash.digest();
  if (std::memcmp(bytes.data() + end, digest.data(), digest_size) != 0) {
    refuse(end, "is not the digest of what stands before it: the file was damaged, cut or changed");
  }

  std::size_t at = preamble_size;
  const auto take = [&](std::uint64_t size) {
    if (size > end - at) refuse(at, fmt::format("{} bytes are missing", size - (end - at)));
    const std::size_t begin = std::exchange(at, at + static_cast<std::size_t>(size));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + begin, static_cast<std::size_t>(size));
  };
  const std::string_view header = take(integer_at<std::uint32_t>(bytes, magic.size() + sizeof its_version));
  if (header != header_) {
    throw Error(fmt::format("{}: is of another run (old → new): {}", path_, first_other(header, header_, path_)));
  }
  for (std::size_t i = 0; i < runs; ++i) {
    const auto size = integer_at<std::uint64_t>(bytes_of(take(sizeof(std::uint64_t))), 0);
    offsets_[i] = at;
    runs_[i] = take(size);
  }
  if (at != end) refuse(at, "more follows than the runs that it is of");
  return true;
}

RunState ResumeFile::state(std::size_t run, const RunStateShape& shape) const {
  if (runs_[run].empty()) return {shape.environments, shape.limit, shape.word_count, true};
  return read_run_state({bytes_of(runs_[run]), offsets_[run], path_}, shape);
}

void ResumeFile::keep(std::size_t run, const RunState& state) {
  runs_[run] = to_bytes(state);
  write();
}

void ResumeFile::write() {
  const auto fail = [this](std::string_view what) {
    throw Error(fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
  };
  NewFile made{final_path_ + ".tmp"};
  ::unlink(made.path.c_str());  // of a process that was killed: the file is this one's
  made.file = ::open(made.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made.file < 0) fail("cannot write beside it");
  struct stat before {};
  if (::fstat(file_, &before) != 0 || ::fchmod(made.file, before.st_mode & 0777) != 0) fail("cannot be written");
  // Locked before it gets its name, so that no other process can take it.
  if (::flock(made.file, LOCK_EX | LOCK_NB) != 0) fail("cannot be locked");

  Sha256 hash;
  const auto put = [&](std::string_view text) {
    hash.update(bytes_of(text));
    while (!text.empty()) {
      const ssize_t written = ::write(made.file, text.data(), text.size());
      if (written < 0 && errno != EINTR) fail("cannot be written");
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
  };
  std::string head(reinterpret_cast<const char*>(magic.data()), magic.size());
  append(head, version);
  append(head, static_cast<std::uint32_t>(header_.size()));
  put(head + header_);
  for (const std::string& run : runs_) {
    std::string size;
    append(size, std::uint64_t{run.size()});
    put(size);
    put(run);
  }
  const Sha256Bytes digest = hash.digest();
  put({reinterpret_cast<const char*>(digest.data()), digest.size()});
  if (::fsync(made.file) != 0) fail("cannot be written");
  if (::rename(made.path.c_str(), final_path_.c_str()) != 0) fail("cannot be replaced");
  close_file(file_);
  file_ = std::exchange(made.file, -1);
  is_made_ = false;
}

}  // namespace bitwitness
