#include "harness/cli/surroundings.hpp"

#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

/// Library bases are tried in steps of what Windows allows.
constexpr std::uint64_t step = 0x10000;
constexpr std::uint64_t first_base = 0x6000'0000;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
};

Range range_of(const Image& image) {
  return {image.base(), image.base() + image.size()};
}

/// Loads a library where nothing else is: at the base that it asks for, or the first free one.
Image load_library(const std::string& path, const std::vector<Range>& taken) {
  Image library = Image::load(path);
  const auto is_free = [&](const Range& range) {
    return std::ranges::none_of(taken, [&](const Range& other) { return range.meets(other); });
  };
  if (is_free(range_of(library))) return library;
  Range range{first_base, first_base + library.size()};
  while (!is_free(range)) {
    range.begin += step;
    range.end += step;
  }
  return Image::load(path, {.base = range.begin});
}

bool is_hex(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0 || c == ' '; });
}

std::pair<std::string, std::string> split_memory(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(fmt::format("--memory {}: expected ADDRESS=BYTES, as in 0x402000=00ff or 0x402000=table.bin", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

MemoryPatch parse_memory_patch(const Image& image, const std::string& text) {
  const auto [location, content] = split_memory(text);
  try {
    MemoryPatch patch{image.resolve(location), {}};
    if (is_hex(content)) {
      patch.bytes = parse_hex(content);
    } else {
      const FileBytes file = FileBytes::open(content);
      patch.bytes.assign(file.bytes().begin(), file.bytes().end());
    }
    return patch;
  } catch (const Error& error) {
    throw Error(fmt::format("--memory {}: {}", text, error.what()));
  }
}

}  // namespace

Image with_surroundings(Image image, const ImageArguments& arguments) {
  Surroundings surroundings;
  surroundings.c_runtime = !arguments.no_runtime;
  std::vector<Range> taken{range_of(image)};
  for (const std::string& path : arguments.dlls) {
    Image library = load_library(path, taken);
    taken.push_back(range_of(library));
    surroundings.libraries.push_back(std::move(library));
  }
  for (const std::string& text : arguments.memory) surroundings.memory.push_back(parse_memory_patch(image, text));
  return Image::link(std::move(image), std::move(surroundings));
}

std::vector<std::string> surrounding_files(const ImageArguments& arguments) {
  std::vector<std::string> files = arguments.dlls;
  for (const std::string& text : arguments.memory) {
    if (std::string content = split_memory(text).second; !is_hex(content)) files.push_back(std::move(content));
  }
  return files;
}

std::vector<std::string> surrounding_options(const ImageArguments& arguments) {
  std::vector<std::string> options;
  for (const std::string& path : arguments.dlls) options.insert(options.end(), {"--with-dll", path});
  for (const std::string& text : arguments.memory) options.insert(options.end(), {"--memory", text});
  if (arguments.no_runtime) options.emplace_back("--no-runtime");
  return options;
}

}  // namespace bitwitness::cli
