#pragma once
#include "tests/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

// Runs the program as a user does. BITWITNESS_PROGRAM comes from CMake.

namespace bitwitness::tests {

/// A folder that is removed with what is in it.
struct Folder {
  std::filesystem::path path = unused_path();
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path / name).string(); }

 private:
  static std::filesystem::path unused_path() {
    static int number = 0;
    return std::filesystem::temp_directory_path() /
           ("bitwitness-cli-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
  }
};

struct Result {
  int status = -1;
  std::string out;
  std::string err;
};

using Words = std::vector<std::string>;

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  REQUIRE(file.flush());
}

inline std::string quoted(const std::string& word) {
  return "'" + std::regex_replace(word, std::regex("'"), "'\\''") + "'";
}

/// Runs a shell command line and returns what came out of it.
inline Result run_shell(const Folder& folder, const std::string& command) {
  const std::string out = folder.file("stdout");
  const std::string err = folder.file("stderr");
  const int status =
      std::system(("{ " + command + "\n} >" + quoted(out) + " 2>" + quoted(err) + " </dev/null").c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), contents(out), contents(err)};
}

inline std::string command_line(const Words& arguments) {
  std::string line = quoted(BITWITNESS_PROGRAM);
  for (const std::string& argument : arguments) line += " " + quoted(argument);
  return line;
}

inline Result run(const Folder& folder, const Words& arguments) {
  return run_shell(folder, command_line(arguments));
}

inline std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline void check_refused(const Result& result, const std::string& named) {
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err.starts_with("bitwitness: "));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK(result.err.ends_with("\n"));
  INFO("must name " << named);
  CHECK(result.err.find(named) != std::string::npos);
}

}  // namespace bitwitness::tests
