// Runs what README.md shows and compares what it prints.

#include "tests/catch.hpp"
#include "tests/fixtures/corpus/corpus.hpp"
#include "tests/real_executables.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

/// A command of a console block and the lines shown below it; "…" stands for any lines.
struct Example {
  std::string command;
  std::vector<std::string> output;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Example> examples() {
  std::vector<Example> found;
  bool inside = false;
  std::size_t indent = 0;
  for (const std::string& line : lines_of(contents(BITWITNESS_SOURCE_DIR "/README.md"))) {
    const std::size_t start = line.find_first_not_of(' ');
    std::string text = line.size() >= indent ? line.substr(indent) : "";
    if (!inside && start != std::string::npos && line.substr(start) == "```console") {
      inside = true;
      indent = start;
    } else if (inside && text == "```") {
      inside = false;
      indent = 0;
    } else if (inside && text.starts_with("$ ")) {
      found.push_back({text.substr(2), {}});
    } else if (inside) {
      REQUIRE(!found.empty());
      found.back().output.push_back(text);
    }
  }
  return found;
}

struct Result {
  std::string out;
  int status = -1;
};

Result run(const std::string& command, const fs::path& folder) {
  const std::string path = fs::path(BITWITNESS_PROGRAM).parent_path().string();
  const std::string line =
      "cd '" + folder.string() + "' && PATH='" + path + "':\"$PATH\" && { " + command + "\n} 2>/dev/null";
  Result result;
  FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  for (std::size_t size = 0; (size = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.out.append(buffer.data(), size);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// Matches one line; "…" inside it stands for any text.
bool line_matches(std::string_view shown, std::string_view line) {
  constexpr std::string_view wild = "…";
  const std::size_t at = shown.find(wild);
  if (at == std::string_view::npos) return shown == line;
  if (!line.starts_with(shown.substr(0, at))) return false;
  const std::string_view rest = shown.substr(at + wild.size());
  for (std::size_t skip = at; skip <= line.size(); ++skip) {
    if (line_matches(rest, line.substr(skip))) return true;
  }
  return false;
}

/// Matches lines; a line "…" stands for any number of them.
bool matches(std::span<const std::string> shown, std::span<const std::string> lines) {
  if (shown.empty()) return lines.empty();
  if (shown.front() == "…") {
    for (std::size_t skip = 0; skip <= lines.size(); ++skip) {
      if (matches(shown.subspan(1), lines.subspan(skip))) return true;
    }
    return false;
  }
  return !lines.empty() && line_matches(shown.front(), lines.front()) && matches(shown.subspan(1), lines.subspan(1));
}

}  // namespace

TEST_CASE("the matcher tells a different line from an elided one") {
  const std::vector<std::string> lines = {"a", "b 12 c", "d"};
  CHECK(matches(std::vector<std::string>{"a", "…", "d"}, lines));
  CHECK(matches(std::vector<std::string>{"a", "b … c", "d"}, lines));
  CHECK(matches(std::vector<std::string>{"a", "b…2…c", "d"}, lines));
  CHECK_FALSE(matches(std::vector<std::string>{"a", "b…3…c", "d"}, lines));
  CHECK_FALSE(matches(std::vector<std::string>{"a", "d"}, lines));
  CHECK_FALSE(matches(std::vector<std::string>{"a", "b … d", "d"}, lines));
  CHECK_FALSE(matches(std::vector<std::string>{"a", "…", "e"}, lines));
  CHECK_FALSE(matches(std::vector<std::string>{"a", "b 12 c", "d", "e"}, lines));
}

TEST_CASE("README.md is short") {
  const auto lines = lines_of(contents(BITWITNESS_SOURCE_DIR "/README.md"));
  CHECK(lines.size() < 120);
}

TEST_CASE("every command that README.md shows prints what it shows", "[commands]") {
  const auto dll = bitwitness::tests::mingw_dll(bitwitness::tests::Width::bits_32, "libgcc_s_dw2-1.dll");
  if (!dll) return;
  const fs::path folder = fs::temp_directory_path() / ("bitwitness-readme-" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::copy_file(*dll, folder / "libgcc_s_dw2-1.dll", fs::copy_options::overwrite_existing);
  bitwitness::corpus::make_corpus(folder / "animations", {.clips = 60});
  std::size_t run_here = 0;
  for (const Example& example : examples()) {
    if (!example.command.starts_with("bitwitness ")) continue;
    INFO(example.command);
    const Result result = run(example.command, folder);
    INFO(result.out);
    CHECK(matches(example.output, lines_of(result.out)));
    ++run_here;
  }
  CHECK(run_here >= 5);
  fs::remove_all(folder);
}

TEST_CASE("scripts/run.sh prints what README.md shows", "[script]") {
  std::size_t run_here = 0;
  for (const Example& example : examples()) {
    if (!example.command.starts_with("scripts/run.sh")) continue;
    const Result result = run("scripts/run.sh --no-install", BITWITNESS_SOURCE_DIR);
    INFO(result.out);
    CHECK(result.status == 0);
    CHECK(matches(example.output, lines_of(result.out)));
    ++run_here;
  }
  CHECK(run_here == 1);
}
