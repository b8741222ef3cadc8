#include "tests/program.hpp"
#include "tests/report_samples.hpp"

#include <utility>

using namespace bitwitness;
using namespace bitwitness::tests;

// That a report keeps to tests/junit.xsd says something only if the schema refuses what is wrong.

namespace {

bool is_valid(const Folder& folder, const std::string& xml) {
  write(folder.path / "report.xml", xml);
  const auto result =
      run_shell(folder, "xmllint --noout --nonet --schema " + quoted(BITWITNESS_TESTS_DIR "/junit.xsd") + " " +
                            quoted(folder.file("report.xml")));
  INFO(result.err);
  REQUIRE((result.status == 0 || result.status == 1 || result.status == 3));  // valid, not well-formed, not valid
  return result.status == 0;
}

Report example() {
  RunReport interrupted = sample_run();
  interrupted.counts.agreed = interrupted.counts.run = 5;
  interrupted.counts.not_run = interrupted.distinct - 5;
  return sample_report({sample_run(), sample_run({difference("010000000000")}), interrupted, RunReport()});
}

}  // namespace

TEST_CASE("what the program writes keeps to the schema", "[junit]") {
  const Folder folder;
  CHECK(is_valid(folder, to_junit(example())));
  const Words command = {"verify", "--jobs", "1", "--junit", "-", "--values", "random:100"};
  for (const Words& more : {Words{}, Words{"--fpcw", "007f", "037f", "--shard", "1/2"}, Words{"--shard", "2/2"}}) {
    const auto result = run(folder, command + more);
    CHECK(result.status != 2);
    CHECK(is_valid(folder, result.out));
  }
}

TEST_CASE("the schema refuses what no reader of JUnit should be given", "[junit]") {
  const Folder folder;
  const std::string good = to_junit(example());
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"<testcase name=\"", "<testcase title=\""},
      {" classname=\"stand_in_x87.exe.packed_quat48\"", ""},
      {"<failure ", "<skipped/><failure "},
      {"<failure ", "<error message=\"a\" type=\"vacuous\"/><failure "},
      {" type=\"differ\"", " type=\"error\""},
      {" type=\"incomplete\"", ""},
      {" failures=\"1\"", " failures=\"-1\""},
      {" tests=\"4\"", " tests=\"0\""},
      {" errors=\"2\"", ""},
      {"<property name=\"cpu\"", "<property time=\"1\" name=\"cpu\""},
      {"  </testsuite>", "  </testsuite><testsuite/>"},
      {"<testsuites ", "<testsuites time=\"1\" "},
      {"<testsuites ", "<testsuites"},
      {"</testsuites>", ""},
  };
  for (const auto& [from, to] : changes) {
    INFO(from << " -> " << to);
    std::string bad = good;
    REQUIRE(bad.find(from) != std::string::npos);
    bad.replace(bad.find(from), from.size(), to);
    CHECK_FALSE(is_valid(folder, bad));
  }
}
