#include "decoders/animation_writer.hpp"
#include "harness/cli/corpus.hpp"
#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

// What the reader of files makes of one file: objects, refusals, chains of clips, and a stop in the middle of a scan.

namespace bitwitness::tests {
namespace {

using namespace decoders;
namespace fs = std::filesystem;
using cli::CorpusOptions;
using cli::CorpusSummary;
using cli::FileRefusal;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("bitwitness-reader-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name, std::span<const std::byte> bytes) const {
    const fs::path path = path_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path.string();
  }

  /// A file of zeros that takes no room on the disk.
  [[nodiscard]] std::string zeros(const std::string& name, std::size_t size) const {
    const std::string path = file(name, {});
    fs::resize_file(path, size);
    return path;
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Seen {
  std::vector<std::size_t> kinds;  ///< indices of the variant
  std::vector<Bytes> own;          ///< what each object was read from
  std::vector<FileRefusal> refusals;
  std::vector<std::uint64_t> keys;  ///< of .mab clips
  CorpusSummary summary;
};

class SeeingVisitor final : public cli::CorpusVisitor {
 public:
  explicit SeeingVisitor(Seen& seen) : seen_(seen) {}
  void visit(const cli::AnimationObject& object, std::span<const std::byte> bytes) override {
    seen_.kinds.push_back(object.index());
    seen_.own.emplace_back(bytes.begin(), bytes.end());
    if (const auto* const clip = std::get_if<Mab>(&object)) seen_.keys.push_back(clip->key_count);
  }
  void refuse(FileRefusal refusal) override { seen_.refusals.push_back(std::move(refusal)); }
  void finish() override {}

 private:
  Seen& seen_;
};

/// Reads on one thread.
Seen read(const std::vector<std::string>& files, const CorpusOptions& options = {}) {
  Seen seen;
  seen.summary = cli::read_corpus(files, options, [&] { return std::make_unique<SeeingVisitor>(seen); });
  return seen;
}

Seen scan(const std::vector<std::string>& files) {
  CorpusOptions options;
  options.scan = true;
  return read(files, options);
}

constexpr std::size_t base = 16;
constexpr std::size_t table = mab_duration_4c + 4;
constexpr std::size_t clip_size = 0xA0 + 24;

// A clip of version 4C of one track with one key, and where its chain goes on: 0 for nowhere.
Bytes chained_clip(std::uint8_t key, std::uint32_t next) {
  Bytes clip(0xA0);
  set<std::uint32_t>(clip, mab_duration_4c, 0x3E000000);  // 0.125 s at 30 a second: one group
  set<std::uint32_t>(clip, table + 4 * Mab::rotation_section, 0xA0);
  set<std::uint32_t>(clip, table + 32, next);
  const Bytes section = from_hex("0100 0300 1e00 0000 10000000 18000000 000000000000 00 00");
  clip.insert(clip.end(), section.begin(), section.end());
  clip[0xA0 + 16] = std::byte{key};
  return clip;
}

Bytes chain(std::span<const Bytes> clips) {
  Bytes file(base);
  file[0] = std::byte{0x4C};
  for (const Bytes& clip : clips) file.insert(file.end(), clip.begin(), clip.end());
  return file;
}

}  // namespace

TEST_CASE("each clip of a chain is an object of its own bytes") {
  const Folder folder;
  const std::array clips{chained_clip(1, clip_size), chained_clip(2, clip_size), chained_clip(1, 0)};
  const Bytes file = chain(clips);
  const Seen seen = read({folder.file("chain.mab", file)});
  CHECK(seen.refusals.empty());
  CHECK(seen.kinds == std::vector<std::size_t>{3, 3, 3});
  CHECK(seen.keys == std::vector<std::uint64_t>{1, 1, 1});
  REQUIRE(seen.own.size() == 3);
  CHECK(seen.own[0] == Bytes(file.begin(), file.begin() + base + clip_size));
  CHECK(seen.own[1] == clips[1]);
  CHECK(seen.own[2] == clips[2]);
  CHECK(seen.summary.files == 1);
  CHECK(seen.summary.bytes == file.size());
}

TEST_CASE("a chained clip that cannot be read is a refusal, and the ones before it count") {
  const Folder folder;
  std::array clips{chained_clip(1, clip_size), chained_clip(2, clip_size), chained_clip(3, 0)};
  set<std::uint32_t>(clips[1], 0xA0 + 8, 0x11);  // where its group begins
  const std::string path = folder.file("chain.mab", chain(clips));
  for (const Seen& seen : {read({path}), scan({path})}) {
    CHECK(seen.kinds.size() == 1);
    REQUIRE(seen.refusals.size() == 1);
    CHECK(seen.refusals[0].rule == "group table");
    CHECK(seen.refusals[0].offset == base + clip_size + 0xA0 + 8);
  }
}

TEST_CASE("a chain made to be read again and again ends with a refusal") {
  const Folder folder;
  // Every clip's table names the file's end as well: each has all that follows.
  constexpr std::size_t count = 200;
  std::vector<Bytes> clips(count, chained_clip(1, clip_size));
  set<std::uint32_t>(clips.back(), table + 32, 0);
  for (std::size_t i = 0; i < count; ++i) {
    set<std::uint32_t>(clips[i], table + 4, static_cast<std::uint32_t>((count - i) * clip_size));
  }
  const Seen seen = read({folder.file("chain.mab", chain(clips))});
  CHECK(seen.kinds.size() >= 8);
  CHECK(seen.kinds.size() < count / 4);
  REQUIRE(seen.refusals.size() == 1);
  CHECK(seen.refusals[0].rule == name(Rule::work));
}

TEST_CASE("a scan that finds nothing and refuses nothing leaves the exact reader's refusal") {
  const Folder folder;
  Random random(3);
  const Bytes object = make_sws(random).bytes;
  const Bytes whole = chain(std::array{chained_clip(1, 0)});
  const std::string cut = folder.file("cut.mab", std::span(whole).first(base + 0x80));
  const std::string text = folder.file("text", from_hex("ff00ff00"));
  Bytes in_blob = from_hex("ff00ff00");
  in_blob.insert(in_blob.end(), object.begin(), object.end());
  const std::string blob = folder.file("blob", in_blob);
  in_blob[0] = std::byte{0x61};
  const std::string as_mab = folder.file("as_mab", in_blob);

  for (const Seen& seen : {read({cut}), scan({cut})}) {
    REQUIRE(seen.refusals.size() == 1);
    CHECK(seen.refusals[0].rule == "truncated");
    CHECK(seen.refusals[0].offset > 0);
  }
  const Seen nothing = scan({text});
  REQUIRE(nothing.refusals.size() == 1);
  CHECK(nothing.refusals[0].rule == "format");
  const Seen found = scan({blob});
  CHECK(found.kinds == std::vector<std::size_t>{0});
  CHECK(found.refusals.empty());
  // It opens as .mab, which no scan looks for: what is found in it does not make up for that.
  const Seen both = scan({as_mab});
  CHECK(both.kinds == std::vector<std::size_t>{0});
  CHECK(both.refusals.size() == 1);

  CorpusOptions options;
  options.scan = true;
  options.format = Game::rr;
  const Seen unwanted = read({blob}, options);
  CHECK(unwanted.kinds.empty());
  CHECK(unwanted.refusals.size() == 1);
}

TEST_CASE("a scan that refuses something is not refused once more") {
  const Folder folder;
  Random random(4);
  SwsSample broken = make_sws(random);
  while (broken.tracks.empty()) broken = make_sws(random);
  broken.tracks[0].size_word += 1;
  Bytes bytes = from_hex("ff00ff00");
  write_sws_animation(bytes, broken.clip, broken.mappings, broken.tracks);
  const Seen seen = scan({folder.file("broken", bytes)});
  REQUIRE(seen.refusals.size() == 1);
  CHECK(seen.refusals[0].rule == "size word");
}

TEST_CASE("a stop request ends a scan in the middle of a file, which counts as not read") {
  const Folder folder;
  constexpr std::size_t size = std::size_t{64} << 20;
  const std::vector<std::string> files{folder.zeros("0", size), folder.file("1", from_hex("ff"))};
  const Seen whole = scan(files);
  CHECK(whole.summary.files == 2);
  CHECK(whole.summary.bytes == size + 1);
  CHECK(whole.refusals.size() == 2);

  std::stop_source stop;
  std::vector<cli::CorpusProgress> shown;
  CorpusOptions options;
  options.scan = true;
  options.stop = stop.get_token();
  options.progress = [&](const cli::CorpusProgress& progress) {
    shown.push_back(progress);
    stop.request_stop();
  };
  const Seen seen = read(files, options);
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].files == 0);
  CHECK(shown[0].of_files == 2);
  CHECK(shown[0].bytes > 0);
  CHECK(shown[0].bytes < size / 4);
  CHECK(seen.summary.files == 0);
  CHECK(seen.summary.bytes == 0);
  CHECK(seen.summary.not_read == 2);
  CHECK(seen.refusals.empty());
}

TEST_CASE("a file that cannot be opened is told by its path and a bare reason") {
  const Folder folder;
  const Seen seen = read({folder / "missing"});
  REQUIRE(seen.summary.unreachable.size() == 1);
  CHECK(seen.summary.unreachable[0].path == folder / "missing");
  CHECK(seen.summary.unreachable[0].reason == "No such file or directory");
  CHECK(seen.summary.not_read == 0);
}

}  // namespace bitwitness::tests
