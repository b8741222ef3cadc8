#include "harness/error.hpp"
#include "harness/vectors/vector_file.hpp"
#include "tests/catch.hpp"
#include "tests/vector_samples.hpp"

#include <string>
#include <string_view>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr std::string_view good = R"(schema = "bitwitness-vectors/1"
decoder = "half"
witness = "hand"
packed_size = 2
fields = [{ name = "fraction", offset = 0, width = 10 }, { name = "rest", offset = 10, width = 6 }]
notes = ["kept by hand"]

[image]
format = "pe32+"
stand_in = true

[routine]
name = "half"
address = "0x1000"
signature = "cdecl(value u16) -> f32"

[environment]
fpcw = "037f"

[words]
kind = "f32"
names = ["value"]

[[vector]]
packed = "00 3c"
words = ["3f800000"]

[[vector]]
packed = "00 7c"
outcome = "faulted"

[[vector]]
packed = "ffff"
words = ["ffffe000"]
)";

VectorFile parse(std::string_view text) {
  return VectorFile::parse(std::as_bytes(std::span(text)), "name.toml");
}

// What reading says when one text in the good file is another.
std::string refusal(std::string_view from, std::string_view to) {
  std::string text(good);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  INFO(from << " -> " << to);
  const std::string message = error_message([&] { read_all(std::string_view(text)); });
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

}  // namespace

TEST_CASE("the text form says what a binary file says") {
  const VectorFile file = parse(good);
  const VectorHeader& header = file.header();
  CHECK(header.decoder == "half");
  CHECK(header.witness == "hand");
  CHECK(header.packed_size == 2);
  CHECK(header.word_count == 1);
  CHECK(header.fields.size() == 2);
  CHECK(header.fields[1].name == "rest");
  CHECK(header.fields[1].offset == 10);
  CHECK(header.notes == std::vector<std::string>{"kept by hand"});
  CHECK(header.image_format == ImageFormat::pe32_plus);
  CHECK(header.stand_in);
  CHECK(header.routine == "half");
  CHECK(header.address == 0x1000);
  CHECK(header.environment.fpcw == 0x037f);
  CHECK(header.environment.mxcsr == Environment{}.mxcsr);
  CHECK(header.count == 3);
  REQUIRE(file.block_count() == 1);
  const VectorBlock block = file.block(0);
  CHECK(block.outcomes == std::vector{OutcomeKind::returned, OutcomeKind::faulted, OutcomeKind::returned});
  CHECK(block.words == std::vector<std::uint32_t>{0x3f800000, 0, 0xffffe000});
  CHECK(block.packed ==
        Bytes{std::byte{0}, std::byte{0x3c}, std::byte{0}, std::byte{0x7c}, std::byte{0xff}, std::byte{0xff}});
  CHECK(file.place(0) == "name.toml:24: vectors down to line 32");
}

TEST_CASE("files keep their content in the text form and back") {
  for (const std::size_t count : {0U, 1U, 40U, 8193U}) {
    for (const std::size_t packed_size : {2U, 6U}) {
      VectorSample sample = count > 40 ? dense_vectors(packed_size, 1, count) : draw_vectors(packed_size, 3, count, 4);
      sample.header.notes = {"q\"uo'te\\ \t\n\x7f ü … \x01", "", "'''\"\"\""};
      sample.header.shard = "2/3";
      if (count > 1) {
        const auto value = [&](std::size_t i) {
          const auto bytes = std::span(sample.packed).subspan(i * packed_size, packed_size);
          return Bytes(bytes.begin(), bytes.end());
        };
        sample.header.recorded = {{9, 1, value(0)},
                                  {"a \"path\""},
                                  {{"hums", 2, value(1)}, {"reads", 1, value(0)}},
                                  3,
                                  {{value(0), OutcomeKind::faulted, 0x401000, "nop", "it's \x7f"},
                                   {value(1), OutcomeKind::unwritten, 0, "", ""}},
                                  20};
      }
      sample.header.engine.cpu = "A \"processor\" # 1";
      const Bytes bytes = write_vectors(sample);
      const VectorFile binary = VectorFile::parse(bytes, "binary");
      const std::string text = to_toml(binary);
      const VectorFile back = parse(text);
      CHECK(back.digest() == binary.digest());
      CHECK(back.header().notes == sample.header.notes);
      // All of the header: written in binary form, the text gives the same bytes.
      Bytes again;
      VectorWriter writer(back.header(), VectorDetail::words, [&](std::span<const std::byte> piece) {
        again.insert(again.end(), piece.begin(), piece.end());
      });
      for (std::size_t index = 0; index < back.block_count(); ++index) writer.add(back.block(index));
      writer.finish();
      CHECK(again == bytes);
      CHECK(to_toml(back) == text);
    }
  }
}

TEST_CASE("what has no text form is refused") {
  const Bytes digests = write_vectors(draw_vectors(3, 1, 5), VectorDetail::digests);
  CHECK_THAT(error_message([&] { to_toml(VectorFile::parse(digests, "d")); }),
             contains_text("d: the text form has words"));
  const Bytes large = write_vectors(draw_vectors(3, 9, 20000));
  CHECK_THAT(error_message([&] { to_toml(VectorFile::parse(large, "l")); }),
             contains_text("l: its text form would exceed"));
}

TEST_CASE("known differences are not lost without a word") {
  const std::string text =
      std::string(good) + "\n[[known_difference]]\nvalue = \"00 3c\"\ndecoder = \"half\"\nreason = \"r\"\n";
  CHECK(parse(text).has_known_differences());
  CHECK_FALSE(parse(good).has_known_differences());
  CHECK_THAT(error_message([&] { to_toml(parse(text)); }),
             contains_text("name.toml: its known differences would be lost in the text form"));
}

TEST_CASE("errors of the text form name file and line") {
  CHECK(refusal("half", "half").empty());
  CHECK_THAT(refusal("vectors/1", "vectors/2"), contains_text("name.toml:1: schema"));
  CHECK_THAT(refusal("schema", "scheme"), contains_text("name.toml:1: unknown key 'scheme'"));
  CHECK_THAT(refusal("witness = \"hand\"", ""), contains_text("lacks the key 'witness'"));
  CHECK_THAT(refusal("packed_size = 2", "packed_size = 0"), contains_text("name.toml:4: packed_size"));
  CHECK_THAT(refusal("packed_size = 2", "packed_size = 257"), contains_text("name.toml:4: packed_size"));
  CHECK_THAT(refusal("packed_size = 2", "packed_size = -2"), contains_text("name.toml:4: packed_size"));
  CHECK_THAT(refusal("packed_size = 2", "packed_size = \"2\""), contains_text("name.toml:4: packed_size"));
  CHECK_THAT(refusal("packed_size = 2", "packed_size = 3"), contains_text("name.toml:25: packed of vector 1: 2 bytes"));
  CHECK_THAT(refusal("width = 6", "width = 5"), contains_text("the fields have 15 bits, the values 16"));
  CHECK_THAT(refusal("width = 6", "width = 6, high = 1"), contains_text("name.toml:5: unknown key 'high' in field 2"));
  CHECK_THAT(refusal("\"kept by hand\"", "7"), contains_text("name.toml:6: notes"));
  CHECK_THAT(refusal("pe32+", "elf"), contains_text("name.toml:9: format of [image]: 'elf'"));
  CHECK_THAT(refusal("stand_in = true", "stand_in = 1"), contains_text("name.toml:10: stand_in"));
  CHECK_THAT(refusal("stand_in", "stand_out"), contains_text("name.toml:10: unknown key 'stand_out' in [image]"));
  CHECK_THAT(refusal("0x1000", "1000"), contains_text("name.toml:14: address"));
  CHECK_THAT(refusal("0x1000", "0x11112222333344445"), contains_text("name.toml:14: address"));
  CHECK_THAT(refusal("value u16", "value u32"), contains_text("takes 4 bytes"));
  CHECK_THAT(refusal("037f", "1037f"), contains_text("name.toml:18: fpcw"));
  CHECK_THAT(refusal("\"f32\"", "\"f64\""), contains_text("name.toml:21: kind of [words]"));
  CHECK_THAT(refusal("[words]\nkind = \"f32\"\nnames = [\"value\"]", ""), contains_text("lacks the key 'words'"));
  CHECK_THAT(refusal("[\"value\"]", "[]"), contains_text("name.toml:22: names"));
  CHECK_THAT(refusal("[\"value\"]", "[\"a\", \"b\"]"),
             contains_text("name.toml:26: words of vector 1: 1 words instead of 2"));
  CHECK_THAT(refusal("00 3c", "00 3"), contains_text("name.toml:25: packed of vector 1"));
  CHECK_THAT(refusal("00 3c", "00 3g"), contains_text("name.toml:25: packed of vector 1"));
  CHECK_THAT(refusal("00 3c", "00 3c 00"), contains_text("name.toml:25: packed of vector 1: 3 bytes instead of 2"));
  CHECK_THAT(refusal("00 3c", "01 7c"), contains_text("name.toml:29: packed of vector 2: values must rise"));
  CHECK_THAT(refusal("00 3c", "00 7c"), contains_text("name.toml:29: packed of vector 2: values must rise"));
  CHECK_THAT(refusal("3f800000", "3f80000"), contains_text("name.toml:26: words: '3f80000' is not 8"));
  CHECK_THAT(refusal("3f800000", "3F800000"), contains_text("name.toml:26: words"));
  CHECK_THAT(refusal("\"3f800000\"", "1.0"), contains_text("name.toml:26: words"));
  CHECK_THAT(refusal("words = [\"3f800000\"]", ""), contains_text("name.toml:24: vector 1 lacks the key 'words'"));
  CHECK_THAT(refusal("outcome = \"faulted\"", "outcome = \"returned\""), contains_text("name.toml:30: outcome"));
  CHECK_THAT(refusal("outcome = \"faulted\"", "outcome = \"faulted\"\nwords = [\"00000000\"]"),
             contains_text("name.toml:31: words of vector 2: a value that did not return has none"));
  CHECK_THAT(refusal("outcome = \"faulted\"", "result = \"faulted\""),
             contains_text("name.toml:30: unknown key 'result'"));
  CHECK_THAT(refusal("[[vector]]", "[vector]"), contains_text("name.toml:"));
  CHECK_THAT(refusal("[image]", "image = 3\n[other]"), contains_text("name.toml:"));
  CHECK_THAT(refusal("hand\"", "hand"), contains_text("name.toml:3: "));
  CHECK_THAT(refusal("[image]", "[recorded]\nlimit = 1\n[image]"),
             contains_text("name.toml:8: recorded.isolation is missing"));
  CHECK_THAT(refusal("[image]", "[recorded]\nlimit = 1.5\n[image]"), contains_text("name.toml:9: recorded"));
  CHECK_THAT(refusal("[image]", "[recorded]\nlimits = -1\n[image]"),
             contains_text("name.toml:8: recorded.limits is not known"));
  CHECK_THAT(error_message([] { read_all(std::string_view("just a text")); }), contains_text("name.toml:1: "));
  CHECK_THAT(error_message([] { read_all(std::string(max_vector_text + 1, ' ')); }),
             contains_text("longer than 1048576"));
}

TEST_CASE("texts cut anywhere are refused or shorter, never wrong") {
  const std::string text(good);
  std::size_t accepted = 0;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    const std::string message = error_message([&] { read_all(std::string_view(cut)); });
    if (message.empty()) {
      CHECK(parse(cut).header().count < 3 + (size + 1 == text.size() ? 1U : 0U));
      ++accepted;
    } else {
      CHECK(message.starts_with("name.toml:"));
    }
  }
  CHECK(accepted < 12);
}
