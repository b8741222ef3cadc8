#include "harness/file_bytes.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace bitwitness;

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("bitwitness-files-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name, const std::string& text = "x") const {
    const fs::path path = path_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string text_of(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string error_of(const std::string& path) {
  try {
    FileBytes::open(path);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

FileList list(std::vector<std::string> paths) {
  return list_files(paths);
}

}  // namespace

TEST_CASE("files are read whole, small ones and large ones", "[files]") {
  const Folder folder;
  CHECK(text_of(FileBytes::open(folder.file("empty", ""))).empty());
  CHECK(text_of(FileBytes::open(folder.file("small", "some bytes"))) == "some bytes");
  std::string large(3'000'001, 'a');
  for (std::size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>('b' + i / 1000 % 20);
  CHECK(text_of(FileBytes::open(folder.file("large", large))) == large);
}

TEST_CASE("what is no file is refused by name and does not wait", "[files]") {
  const Folder folder;
  CHECK(error_of(folder / "missing") == folder / "missing" + ": cannot read: No such file or directory");
  CHECK(error_of(folder.path()) == folder.path() + ": cannot read: not a regular file");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_of(folder / "pipe") == folder / "pipe" + ": cannot read: not a regular file");
  std::string reason;
  CHECK_FALSE(FileBytes::open(reason, folder / "missing"));
  CHECK(reason == "No such file or directory");
  CHECK(describe({"a", reason}) == "a: cannot read: No such file or directory");
}

TEST_CASE("folders are listed with all below them, sorted, each file once", "[files]") {
  const Folder folder;
  const std::vector<std::string> expected{folder.file("a/1"), folder.file("a/2/3"), folder.file("b")};
  const FileList found = list({folder / "b", folder.path(), folder / "a/1"});
  CHECK(found.files == expected);
  CHECK(found.unreachable.empty());
  CHECK(list({folder / "a"}).files == std::vector<std::string>{expected[0], expected[1]});
}

TEST_CASE("a file reached under several spellings is listed once", "[files]") {
  const Folder folder;
  folder.file("a/1");
  folder.file("b/1");
  const FileList found = list({folder / "a/1", folder / "a/./1", folder / "b/../a//1", folder / "./a", folder / "b"});
  CHECK(found.files == std::vector<std::string>{folder / "./a/1", folder / "b/1"});
  const fs::path here = fs::current_path();
  fs::current_path(folder.path());
  const FileList relative = list({"a/1", "./a", folder / "a/1"});
  fs::current_path(here);
  CHECK(relative.files.size() == 1);
}

TEST_CASE("behind a link two dots lead elsewhere than they are spelled", "[files]") {
  const Folder folder;
  folder.file("a/1", "of a");
  folder.file("b/1", "of b");
  folder.file("b/c/2");
  fs::create_directory_symlink(folder / "b/c", folder / "a/link");
  const std::vector<std::string> both{folder / "a/1", folder / "a/link/../1"};
  CHECK(list(both).files == both);
  CHECK(text_of(FileBytes::open(both[1])) == "of b");
}

TEST_CASE("links to folders end a walk, links to files do not", "[files]") {
  const Folder folder;
  folder.file("a/1");
  fs::create_directory_symlink(folder.path(), folder / "a/loop");
  fs::create_symlink(folder / "a/1", folder / "a/link");
  fs::create_symlink(folder / "nowhere", folder / "a/broken");
  const FileList found = list({folder.path()});
  CHECK(found.files == std::vector<std::string>{folder / "a/1", folder / "a/link"});
  REQUIRE(found.unreachable.size() == 1);
  CHECK(found.unreachable[0].path == folder / "a/broken");
  CHECK(list({folder / "a/loop"}).files.size() == 2);  // named, so it is followed
}

TEST_CASE("what cannot be listed is told, and the rest listed", "[files]") {
  const Folder folder;
  const std::string file = folder.file("x");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const FileList found = list({folder / "missing", folder.path()});
  CHECK(found.files == std::vector<std::string>{file});
  REQUIRE(found.unreachable.size() == 2);
  CHECK(found.unreachable[0].path == folder / "missing");
  CHECK(found.unreachable[0].reason == "No such file or directory");
  CHECK(found.unreachable[1].path == folder / "pipe");
  CHECK(found.unreachable[1].reason == "neither a file nor a folder");
}
