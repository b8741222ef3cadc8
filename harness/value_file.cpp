#include "harness/value_file.hpp"

#include "harness/error.hpp"
#include "harness/signature.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace bitwitness {
namespace {

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

int hex_digit(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

std::string shown(char character) {
  if (character > ' ' && character <= '~') return fmt::format("'{}'", character);
  return fmt::format("byte 0x{:02X}", static_cast<unsigned char>(character));
}

// Gives a file's lines one after the other from a buffer of fixed size.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& path) : name_(path.string()), buffer_(std::size_t{1} << 16) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw Error(fmt::format("{}: is a directory", name_));
    if (std::filesystem::is_fifo(path, ignored)) throw Error(fmt::format("{}: is a pipe, not a file", name_));
    file_.reset(std::fopen(path.c_str(), "rb"));
    if (!file_) throw Error(fmt::format("{}: {}", name_, reason_of(errno)));
  }

  // Returns the next line without its end, or nothing after the last. Valid until the next call.
  std::optional<std::string_view> next() {
    for (;;) {
      const std::string_view held(buffer_.data() + begin_, end_ - begin_);
      const std::size_t length = held.find('\n');
      if (length != held.npos || (at_end_ && !held.empty())) {
        std::string_view line = held.substr(0, length);
        begin_ += length == held.npos ? held.size() : length + 1;
        ++number_;
        if (line.size() > max_value_line) refuse_length();
        if (line.ends_with('\r')) line.remove_suffix(1);
        return line;
      }
      if (at_end_) return std::nullopt;
      if (held.size() > max_value_line) {
        ++number_;
        refuse_length();
      }
      fill();
    }
  }

  [[nodiscard]] std::string place() const { return fmt::format("{}:{}", name_, number_); }

 private:
  void fill() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const std::size_t got = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
    if (got == 0) {
      if (std::ferror(file_.get()) != 0) throw Error(fmt::format("{}: {}", name_, reason_of(errno)));
      at_end_ = true;
    }
    end_ += got;
  }

  [[noreturn]] void refuse_length() const {
    throw Error(fmt::format("{}: the line is longer than {} bytes", place(), max_value_line));
  }

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string name_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace

std::size_t read_hex(std::span<std::byte> out, std::string_view text) {
  std::size_t digits = 0;
  int high = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ' ' || text[at] == '\t') continue;
    const int digit = hex_digit(text[at]);
    if (digit < 0) throw Error(fmt::format("{} at column {} is not a hex digit", shown(text[at]), at + 1));
    if (digits % 2 == 0) {
      high = digit;
    } else if (digits / 2 < out.size()) {
      out[digits / 2] = static_cast<std::byte>(high << 4 | digit);
    }
    ++digits;
  }
  if (digits % 2 != 0) throw Error(fmt::format("{} hex digits, the last byte has only one", digits));
  return digits / 2;
}

void append_file(ValueRows& rows, const std::filesystem::path& path) {
  Lines lines(path);
  std::array<std::byte, max_packed_size> value{};
  while (const auto line = lines.next()) {
    const std::string_view text = line->substr(0, line->find('#'));
    if (text.find_first_not_of(" \t") == text.npos) continue;
    std::size_t bytes = 0;
    try {
      bytes = read_hex(value, text);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", lines.place(), error.what()));
    }
    if (bytes != rows.packed_size()) {
      throw Error(fmt::format("{}: {} bytes; the routine takes {}", lines.place(), bytes, rows.packed_size()));
    }
    rows.append_value(std::span(value).first(bytes));
  }
}

}  // namespace bitwitness
