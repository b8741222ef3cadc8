#include "tests/program.hpp"

#include <functional>

#include <nlohmann/json.hpp>

using namespace bitwitness::tests;

namespace {

using Json = nlohmann::ordered_json;

const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
const std::string examples = BITWITNESS_SOURCE_DIR "/scripts/ci-examples/";

/// A decoder that agrees with the stand-in, and one that does not (the control word is not the one it is for).
const Words agreeing = {"--image", x87, "--values", "random:30000", "--routine", "packed_quat48"};
const Words differing = agreeing + Words{"--fpcw", "007f", "027f", "--limit", "7"};

std::string verify_to(const Folder& folder, const std::string& name, const Words& options, int status) {
  const Result result = run(folder, Words{"verify", "--jobs", "1", "--json", folder.file(name)} + options);
  INFO(result.err);
  CHECK(result.status == status);
  return folder.file(name);
}

std::vector<std::string> verify_shards(const Folder& folder, int count, const Words& options, int status) {
  std::vector<std::string> files;
  for (int i = 1; i <= count; ++i) {
    const std::string text = std::to_string(i);
    files.push_back(verify_to(folder, "shard-" + text + ".json",
                              options + Words{"--shard", text + "/" + std::to_string(count)}, status));
  }
  return files;
}

void check_same_files(const std::string& one, const std::string& other) {
  const bool same = contents(one) == contents(other);
  CHECK(same);
}

bool has_programs(const Folder& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (run_shell(folder, "command -v " + name).status == 0) continue;
    skip(name + " is not installed");
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("merge makes the unsharded report, byte for byte, and has its exit status", "[merge]") {
  const Folder folder;
  const std::string whole = verify_to(folder, "whole.json", differing, 1);
  Words files = verify_shards(folder, 3, differing, 1);
  std::swap(files[0], files[2]);
  const Result result =
      run(folder, Words{"merge", "--out", folder.file("merged.json"), "--junit", folder.file("merged.xml")} + files);
  CHECK(result.err == "");
  CHECK(result.status == 1);
  CHECK_THAT(last_line(result.out), contains_text("differ: "));
  check_same_files(whole, folder.file("merged.json"));
  const Result junit = run(folder, Words{"verify", "--jobs", "1", "--junit", "-"} + differing);
  CHECK(junit.out == contents(folder.path / "merged.xml"));
  const Result out = run(folder, Words{"merge", "--out", "-"} + files);
  CHECK(out.out == contents(whole));

  const Folder other;
  const std::string agree = verify_to(other, "whole.json", agreeing, 0);
  CHECK(run(other, Words{"merge", "--out", other.file("merged.json")} + verify_shards(other, 2, agreeing, 0)).status ==
        0);
  check_same_files(agree, other.file("merged.json"));
}

TEST_CASE("a shard without values exits 3 and counts when it is merged", "[merge]") {
  const Folder folder;
  const Words one_value = {"--image", x87, "--values", "hex:000000000000", "--routine", "packed_quat48"};
  const std::string whole = verify_to(folder, "whole.json", one_value, 0);
  const std::string first = verify_to(folder, "1.json", one_value + Words{"--shard", "1/2"}, 0);
  const std::string second = verify_to(folder, "2.json", one_value + Words{"--shard", "2/2"}, 3);
  CHECK(run(folder, {"merge", "--out", folder.file("merged.json"), second, first}).status == 0);
  check_same_files(whole, folder.file("merged.json"));
}

TEST_CASE("merge makes the whole recording of vector files, byte for byte", "[merge]") {
  const Folder folder;
  const auto record = [&folder](const std::string& name, const Words& more) {
    CHECK(run(folder, Words{"record", "--jobs", "1", "--out", folder.file(name)} + agreeing + more).status == 0);
    return folder.file(name);
  };
  for (const Words& detail : {Words{}, Words{"--digests-only"}}) {
    const std::string whole = record("whole", detail);
    const std::string second = record("2", detail + Words{"--shard", "2/2"});
    const std::string first = record("1", detail + Words{"--shard", "1/2"});
    const Result result = run(folder, {"merge", second, first, "--out", folder.file("merged")});
    CHECK(result.err == "");
    CHECK(result.status == 0);
    check_same_files(whole, folder.file("merged"));
    check_refused(run(folder, {"merge", second, "--out", folder.file("not")}), second + ": shard 1/2 is missing");
    check_refused(run(folder, {"merge", second, first, "--out", folder.file("not"), "--junit", "-"}), "--junit");
    CHECK_FALSE(std::filesystem::exists(folder.path / "not"));
  }
}

TEST_CASE("what cannot be merged or compared is refused with one line", "[merge]") {
  const Folder folder;
  const Words files = verify_shards(folder, 2, agreeing, 0);
  const std::string whole = verify_to(folder, "whole.json", agreeing, 0);
  const std::string out = folder.file("merged.json");
  write(folder.path / "text.toml", "nonsense");
  write(folder.path / "bad.json", "{\"schema\": \"bitwitness-report/1\"");
  struct Case {
    Words arguments;
    std::string named;
  };
  const std::vector<Case> cases = {
      {{"merge", "--out", out}, "files"},
      {{"merge", files[0], files[1]}, "--out"},
      {{"merge", "--out", out, files[0]}, files[0] + ": shard 2/2 is missing"},
      {{"merge", "--out", out, files[0], files[0]}, files[0] + ": shard 1/2 is there twice, as file 1 ("},
      {{"merge", "--out", out, files[0], whole}, whole + ": is a whole"},
      {{"merge", "--out", out, files[0], folder.file("bad.json")}, "bad.json: not JSON"},
      {{"merge", "--out", out, files[0], folder.file("text.toml")}, "text.toml: is no report"},
      {{"merge", "--out", out, folder.file("text.toml")}, "text.toml"},
      {{"merge", "--out", out, folder.file("nosuch.json")}, "nosuch.json"},
      {{"merge", "--out", files[1], files[0], files[1]}, "would overwrite"},
      {{"merge", "--out", folder.file("no/such/folder"), files[0], files[1]}, "--out"},
      {{"compare", whole}, "after"},
      {{"compare", whole, folder.file("bad.json")}, "bad.json: not JSON"},
      {{"compare", whole, folder.file("nosuch.json")}, "nosuch.json"},
      {{"compare", whole, whole, "--limit", "x"}, "--limit"},
      {{"compare", whole, whole, "--json", whole}, "would overwrite"},
      {{"compare", whole, whole, "--json", "-", "--markdown", "-"}, "--markdown"},
      {{"compare", whole, files[0]}, "another shard: whole in the old report, 1/2 in the new one"},
  };
  for (const Case& one : cases) {
    INFO(command_line(one.arguments));
    check_refused(run(folder, one.arguments), one.named);
    CHECK_FALSE(std::filesystem::exists(out));
  }
}

TEST_CASE("a shard must be one of a number that somebody may start", "[shard]") {
  const Folder folder;
  const std::string out = folder.file("out.bwv");
  const auto refused = [&](const std::string& shard, const std::string& said) {
    check_refused(run(folder, Words{"verify", "--shard", shard} + agreeing), said);
    check_refused(run(folder, Words{"record", "--out", out, "--shard", shard} + agreeing), said);
  };
  refused("1/4294967296", "shard 1/4294967296: at most 65536 shards are possible");
  refused("1/65537", "at most 65536 shards");
  refused("", "shard: nothing is given; expected I/N");
  CHECK(run(folder, Words{"verify", "--shard", "65536/65536"} + agreeing).status == 3);
}

TEST_CASE("compare says what is new, worse and fixed, and exits 1 when something is worse", "[compare]") {
  const Folder folder;
  const std::string good = verify_to(folder, "good.json", agreeing, 0);
  // What another decoder would give: one word of one value is another.
  Json json = Json::parse(contents(good));
  Json& changed = json["runs"][0];
  changed["counts"]["agreed"] = changed["counts"]["agreed"].get<int>() - 1;
  changed["counts"]["differed"] = 1;
  changed["differing"] = {1, 0, 0, 0};
  changed["max_ulp"] = 1;
  changed["differences"].push_back({{"value", "34 12 78 56 45 23"},
                                    {"reference", {"3f433af1", "bf018814", "3e7e3c18", "bea2849b"}},
                                    {"subject", {"3f433af2", "bf018814", "3e7e3c18", "bea2849b"}},
                                    {"ulp", {1, 0, 0, 0}}});
  changed["verdict"] = json["verdict"] = "differ";
  const std::string bad = folder.file("bad.json");
  write(bad, json.dump());

  const Result same = run(folder, {"compare", good, good});
  CHECK(same.status == 0);
  CHECK(last_line(same.out) == "same: 0 values differed before, 0 differ now");
  const Result worse =
      run(folder, {"compare", good, bad, "--json", folder.file("c.json"), "--markdown", folder.file("c.md")});
  CHECK(worse.status == 1);
  CHECK(worse.err == "");
  CHECK_THAT(worse.out, contains_text("  new      34 12 78 56 45 23  before: agrees; now: x 1\n"));
  CHECK_THAT(worse.out, contains_text("STAND-IN"));
  CHECK(Json::parse(contents(folder.path / "c.json"))["runs"][0]["told"]["new"] == 1);
  CHECK_THAT(contents(folder.path / "c.md"), contains_text("### bitwitness: worse"));
  CHECK_THAT(contents(folder.path / "c.md"), contains_text("**STAND-IN"));
  const Result fixed = run(folder, {"compare", bad, good});
  CHECK(fixed.status == 0);
  CHECK(last_line(fixed.out) == "better: 1 values differed before, 0 differ now");
  const Result shown = run(folder, {"compare", bad, good, "--markdown", "-"});
  CHECK_THAT(shown.out, contains_text("### bitwitness: better"));

  // The comment says why, too, and the line is there.
  const std::string other =
      verify_to(folder, "other.json", {"--image", x87, "--values", "special", "--routine", "packed_quat48"}, 0);
  const Result refused = run(folder, {"compare", good, other, "--markdown", folder.file("n.md")});
  check_refused(refused, "values from other sources");
  CHECK_THAT(contents(folder.path / "n.md"), contains_text("- not comparable: `packed_quat48 against"));
}

TEST_CASE("GNU parallel runs the shards and their merged report is that of one run", "[parallel]") {
  const Folder folder;
  if (!has_programs(folder, {"parallel"})) {
    CHECK(std::getenv("BITWITNESS_REQUIRE_FIXTURES") == nullptr);  // scripts/test.sh installs it
    return;
  }
  const std::string whole = verify_to(folder, "whole.json", differing, 1);
  const auto in_shards = [&folder](const std::string& count, const Words& options) {
    std::string line = "BITWITNESS=" + quoted(BITWITNESS_PROGRAM) + " PARALLEL_OPTIONS=--jobs=2 " +
                       quoted(examples + "verify_shards.sh") + " " + count + " " + quoted(folder.file("it's here"));
    for (const std::string& option : options) line += " " + quoted(option);
    return run_shell(folder, line);
  };
  const Result result = in_shards("6", differing);  // of 4 chunks: two shards are empty
  INFO(result.err);
  CHECK(result.status == 1);
  check_same_files(whole, folder.file("it's here/whole.json"));
  const Result agree = in_shards("2", agreeing);
  INFO(agree.err);
  CHECK(agree.status == 0);
  const Result bad = in_shards("2", {"--image", folder.file("nosuch.exe")});
  CHECK(bad.status == 2);
  CHECK_THAT(bad.err, contains_text("a shard failed"));
  CHECK_FALSE(std::filesystem::exists(folder.path / "it's here/whole.json"));
  CHECK(in_shards("1", agreeing).status == 2);
}

TEST_CASE("a Slurm job array runs the shards and their merged report is that of one run", "[slurm]") {
  const Folder folder;
  if (!has_programs(folder, {"munged", "slurmctld", "slurmd", "sbatch", "scontrol"})) return;
  const std::string whole = verify_to(folder, "whole.json", differing, 1);
  std::string line = "BITWITNESS=" + quoted(BITWITNESS_PROGRAM) + " bash " +
                     quoted(BITWITNESS_TESTS_DIR "/slurm_once.sh") + " " + quoted(folder.file("slurm")) +
                     " --array=1-3 " + quoted(examples + "verify_array.slurm") + " " + quoted(folder.file("shards"));
  for (const std::string& option : differing) line += " " + quoted(option);
  const Result result = run_shell(folder, line);
  INFO(result.out << result.err);
  if (result.out.find("SKIPPED: ") != std::string::npos) {
    skip(result.out.substr(result.out.find("SKIPPED: ") + 9));
    return;
  }
  REQUIRE(result.status == 0);
  const Words shards = {folder.file("shards/shard-1.json"), folder.file("shards/shard-2.json"),
                        folder.file("shards/shard-3.json")};
  CHECK(run(folder, Words{"merge", "--out", folder.file("merged.json")} + shards).status == 1);
  check_same_files(whole, folder.file("merged.json"));
}
