// The instructions that the table of the audit is held against, as machine code.
#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/values.hpp"
#include "tests/instruction_trials.hpp"

#include <sstream>
#include <string_view>

namespace bitwitness::tests {
namespace {

struct Form {
  Shape shape = Shape::bits;
  std::string_view code;  // hex, blanks between instructions
  bool is_64_bit = false;
  unsigned left = 0;
  std::string_view before{};
  std::string_view after{};
};

// clang-format off
constexpr Form forms[] = {
    {.shape = Shape::f32, .code =
     "0f58c1 0f5cc1 0f59c1 0f5ec1 0f51c1 0f5dc1 0f5fc1 0f54c1 0f55c1 0f56c1 0f57c1 0f14c1 0f15c1 0f52c1 "
     "0f53c1 f20f7cc1 f20f7dc1 f20fd0c1 f30f12c1 f30f16c1 0fc2c100 0fc2c101 0fc2c102 0fc2c103 0fc2c104 "
     "0fc2c105 0fc2c106 0fc2c107 0fc6c11b 660f3a40c1ff 660f3a40c17f 660f3a0cc105 660f3a21c105 660f3814c1 "
     "660f3a08c100 660f3a08c101 660f3a08c102 660f3a08c103 660f3a08c104 660f3a08c108 0faef8 0faee8 0faef0 "
     "0f1806 0f180e 0f1816 0f181e"},
    {.shape = Shape::f32_scalar, .code =
     "f30f58c1 f30f5cc1 f30f59c1 f30f5ec1 f30f51c1 f30f5dc1 f30f5fc1 f30f52c1 f30f53c1 0f2fc1 0f2ec1 f30f10c1 "
     "f30fc2c100 f30fc2c101 f30fc2c102 f30fc2c103 f30fc2c104 f30fc2c105 f30fc2c106 f30fc2c107 660f3a0ac100 "
     "660f3a0ac101 660f3a0ac102 660f3a0ac103 660f3a0ac104 660f3a0ac108"},
    {.shape = Shape::f64, .code =
     "660f58c1 660f5cc1 660f59c1 660f5ec1 660f51c1 660f5dc1 660f5fc1 660f54c1 660f55c1 660f56c1 660f57c1 "
     "660f14c1 660f15c1 660f7cc1 660f7dc1 660fd0c1 f20f12c1 660fc2c100 660fc2c101 660fc2c102 660fc2c103 "
     "660fc2c104 660fc2c105 660fc2c106 660fc2c107 660fc6c101 660f3a41c133 660f3a0dc101 660f3815c1 "
     "660f3a09c100 660f3a09c101 660f3a09c102 660f3a09c103 660f3a09c104 660f3a09c108"},
    {.shape = Shape::f64_scalar, .code =
     "f20f58c1 f20f5cc1 f20f59c1 f20f5ec1 f20f51c1 f20f5dc1 f20f5fc1 660f2fc1 660f2ec1 f20f10c1 f20fc2c100 "
     "f20fc2c101 f20fc2c102 f20fc2c103 f20fc2c104 f20fc2c105 f20fc2c106 f20fc2c107 660f3a0bc100 660f3a0bc101 "
     "660f3a0bc102 660f3a0bc103 660f3a0bc104 660f3a0bc108"},
    {.shape = Shape::bits, .code =
     "660f3810c1 0f28c1 0f10c1 660f28c1 660f10c1 660f6fc1 f30f6fc1 0f12c1 0f16c1 f30f7ec1 0f114f24 660f114f24 "
     "f30f7f4f24 f30f114f24 f20f114f24 f30f104610 f20f104610 0f124610 0f164610 660f124610 660f164610 0f134f24 "
     "0f174f24 660f134f24 660f174f24 f20ff04610 0fc35724 660f6ec2 660f7eca 0f6ec2 0f7eca 0f6fc1 0f7f4f24 "
     "660fd64f24 0fe74f24 0f50d1 660f50d1 660fd7d1 0fd7d1 f30fd6c1 f20fd6c1 660fc5d101 660fc4c201 "
     "660f3a20c203 660f3a22c202 660f3a14ca03 660f3a16ca02 660f3a17ca02 0fc5d101 0fc4c201 660f3817c1 0f77 "
     "0f2b4f24 660f2b4f24 660fe74f24 660ffcc1 660ffdc1 660ffec1 660fd4c1 660fecc1 660fedc1 660fdcc1 660fddc1 "
     "660ff8c1 660ff9c1 660ffac1 660ffbc1 660fe8c1 660fe9c1 660fd8c1 660fd9c1 660fd5c1 660fe5c1 660fe4c1 "
     "660ff4c1 660ff5c1 660fe0c1 660fe3c1 660feec1 660fdec1 660feac1 660fdac1 660ff6c1 660fdbc1 660fdfc1 "
     "660febc1 660fefc1 660f74c1 660f75c1 660f76c1 660f64c1 660f65c1 660f66c1 660f63c1 660f6bc1 660f67c1 "
     "660f60c1 660f61c1 660f62c1 660f68c1 660f69c1 660f6ac1 660ff1c1 660ff2c1 660ff3c1 660fd1c1 660fd2c1 "
     "660fd3c1 660fe1c1 660fe2c1 660f381cc1 660f381dc1 660f381ec1 660f3801c1 660f3802c1 660f3803c1 660f3805c1 "
     "660f3806c1 660f3807c1 660f3804c1 660f380bc1 660f3800c1 660f3808c1 660f3809c1 660f380ac1 0ffcc1 0ffdc1 "
     "0ffec1 0fd4c1 0fecc1 0fedc1 0fdcc1 0fddc1 0ff8c1 0ff9c1 0ffac1 0ffbc1 0fe8c1 0fe9c1 0fd8c1 0fd9c1 "
     "0fd5c1 0fe5c1 0fe4c1 0ff4c1 0ff5c1 0fe0c1 0fe3c1 0feec1 0fdec1 0feac1 0fdac1 0ff6c1 0fdbc1 0fdfc1 "
     "0febc1 0fefc1 0f74c1 0f75c1 0f76c1 0f64c1 0f65c1 0f66c1 0f63c1 0f6bc1 0f67c1 0f60c1 0f61c1 0f62c1 "
     "0f68c1 0f69c1 0f6ac1 0ff1c1 0ff2c1 0ff3c1 0fd1c1 0fd2c1 0fd3c1 0fe1c1 0fe2c1 0f381cc1 0f381dc1 0f381ec1 "
     "0f3801c1 0f3802c1 0f3803c1 0f3805c1 0f3806c1 0f3807c1 0f3804c1 0f380bc1 0f3800c1 0f3808c1 0f3809c1 "
     "0f380ac1 660f6cc1 660f6dc1 660f382bc1 660f3829c1 660f3837c1 660f383cc1 660f383dc1 660f383fc1 660f383ec1 "
     "660f3838c1 660f3839c1 660f383bc1 660f383ac1 660f3828c1 660f3840c1 660f3841c1 660f3820c1 660f3821c1 "
     "660f3822c1 660f3823c1 660f3824c1 660f3825c1 660f3830c1 660f3831c1 660f3832c1 660f3833c1 660f3834c1 "
     "660f3835c1 660f70c105 f30f70c105 f20f70c105 660f3a0fc105 660f3a0ec105 660f3a42c105 0f70c105 0f3a0fc105 "
     "660f71f005 660f72f005 660f73f005 660f71d005 660f72d005 660f73d005 660f71e005 660f72e005 660f73f805 "
     "660f73d805 660f38dcc1 660f38ddc1 660f38dec1 660f38dfc1 660f38dbc1 660f3adfc101 "
     "660f3a63c101 660f3a62c101"},
    {.shape = Shape::bits_to_f32, .code = "0f5bc1 f30f2ac2 0f2ac1"},
    {.shape = Shape::bits_to_f64, .code = "f30fe6c1 f20f2ac2 660f2ac1"},
    {.shape = Shape::f32_to_bits, .code = "660f5bc1 f30f5bc1 0f2dc1 0f2cc1"},
    {.shape = Shape::f64_to_bits, .code = "f20fe6c1 660fe6c1 660f2dc1 660f2cc1"},
    {.shape = Shape::f32_to_f64, .code = "0f5ac1"},
    {.shape = Shape::f64_to_f32, .code = "660f5ac1"},
    {.shape = Shape::f32_to_f64_scalar, .code = "f30f5ac1"},
    {.shape = Shape::f64_to_f32_scalar, .code = "f20f5ac1"},
    {.shape = Shape::f32_to_bits_scalar, .code = "f30f2dd1 f30f2cd1"},
    {.shape = Shape::f64_to_bits_scalar, .code = "f20f2dd1 f20f2cd1"},
    {.shape = Shape::bits_to_f32, .code = "f3480f2ac2", .is_64_bit = true},
    {.shape = Shape::bits_to_f64, .code = "f2480f2ac2", .is_64_bit = true},
    {.shape = Shape::f32_to_bits_scalar, .code = "f3480f2dd1 f3480f2cd1", .is_64_bit = true},
    {.shape = Shape::f64_to_bits_scalar, .code = "f2480f2dd1 f2480f2cd1", .is_64_bit = true},
    {.shape = Shape::bits, .code = "66480f6ec2 66480f7eca 66480f3a22c201 66480f3a16ca01", .is_64_bit = true},
    {.shape = Shape::bits, .code = "0fae1424", .before = "68803f0000", .after = "0fae5f2483c404"},
    {.shape = Shape::f32, .code = "0fae5f24", .before = "0f5ec1"},
    {.shape = Shape::f32, .code = "0fae0424", .before = "0f5ec189e281ec2002000083e4f0", .after = "8b44241889d4"},
    {.shape = Shape::bits, .code = "0fae0c24", .before = "89e281ec2002000083e4f00fae0424", .after = "89d4"},
    {.shape = Shape::general, .code = "f30fbdc2 f30fbcc2 f20f38f1c2 660f38f6c2 f30f38f6c2"},
    {.shape = Shape::x87, .code =
     "d8c1 d8e1 d8e9 d8c9 d8f1 d8f9 dcc1 d8d1 dde1 dbf1 dbe9 d9fa d9e1 d9e0 d9fc d9c9 d9e4 d9e5 ddd1 d9d0 9b "
     "d9fd d9f8 d9f5 d9f0 d9fe d9ff dbe2 dac1 dac9 dad1 dad9 dbc1 dbc9 dbd1 dbd9 d97f28 d97728", .left = 2},
    {.shape = Shape::x87, .code =
     "dec1 dee9 dee1 dec9 def9 def1 d8d9 dde9 dff1 dfe9 ddd9 ddc1 d9f1 d9f9 d9f3 db7f28", .left = 1},
    {.shape = Shape::x87, .code = "ded9 dae9 d9f7 d9f6 dbe3 dd7728"},
    {.shape = Shape::x87, .code = "d9c1 d9f4 d9f2 d9fb d9e8 d9ee d9eb d9ea d9e9 d9ec d9ed db6e10", .left = 3},
    {.shape = Shape::x87_m32, .code = "d84610 d86610 d86e10 d84e10 d87610 d87e10 d85610 d95728", .left = 2},
    {.shape = Shape::x87_m32, .code = "d85e10 d95f28", .left = 1},
    {.shape = Shape::x87_m32, .code = "d94610", .left = 3},
    {.shape = Shape::x87_m32, .code = "d95f28", .left = 2, .before = "d94610"},
    {.shape = Shape::x87_m64, .code = "dc4610 dc6610 dc6e10 dc4e10 dc7610 dc7e10 dc5610 dd5728", .left = 2},
    {.shape = Shape::x87_m64, .code = "dc5e10 dd5f28", .left = 1},
    {.shape = Shape::x87_m64, .code = "dd4610", .left = 3},
    {.shape = Shape::x87_m64, .code = "dd5f28", .left = 2, .before = "dd4610"},
    {.shape = Shape::x87_int, .code =
     "de4610 de6610 de6e10 de4e10 de7610 de7e10 de5610 da4610 da6610 da6e10 da4e10 da7610 da7e10 da5610", .left = 2},
    {.shape = Shape::x87_int, .code = "de5e10 da5e10", .left = 1},
    {.shape = Shape::x87_store, .code = "df5728 db5728", .left = 2},
    {.shape = Shape::x87_int, .code = "df4610 db4610 df6e10 df6610", .left = 3},
    {.shape = Shape::x87_store, .code = "df5f28 df4f28 db5f28 db4f28 df7f28 dd4f28 df7728", .left = 1},
    {.shape = Shape::x87, .code = "dfe0 dd7f28", .left = 2, .before = "d8f1"},
    {.shape = Shape::x87, .code = "d96f28", .left = 2, .before = "66c747287f0f", .after = "d97f2c"},
    {.shape = Shape::x87, .code = "d92424", .left = 2, .before = "81ec80000000d93424", .after = "81c480000000"},
    {.shape = Shape::x87, .code = "dd2424", .left = 2, .before = "81ec80000000dd3424", .after = "81c480000000"},
    {.shape = Shape::query, .code = "0f31 0f01f9 0f014724 0f014f24 0f00c8 0f01e0"},
    {.shape = Shape::query, .code = "0fa2", .before = "b801000000"},
    {.shape = Shape::refused, .code =
     "f4 fa fb cc f1 cd80 cd2e ec ee ed e410 e610 6c 6d 6e 6f 0f05 0f34 0f35 0f07 0f08 0f09 0f32 0f30 0f33 "
     "0f06 0f0116 0f011e 0f00d0 0f00d8 0f01f0 0f013e 0f01d1 0faa 0f20c0 0f21c0 0f22c0 0f01c8 0f01c9 0f01c1 "
     "0f01d0 0fc7f0 0fc7f8 f30fb8c2 0f38f006 660f3a44c101 666d 666f c5fa58c1 c5f858c1 c5fb59c1 c5f828c1 c5f877 c5f9fec1 c4e271a9c1 c4e27913c1 c4e268f2c0 "
     "c4e278f7c2 c4e279f7c2 c4e26bf6c2 c4e26af5c0 c4e37bf0c203 c4e278f3ca c5f892c8 62f17c4858c1"},
    {.shape = Shape::refused, .code = "0f05 0f01f8", .is_64_bit = true},
};
// clang-format on

}  // namespace

std::vector<Trial> all_trials() {
  std::vector<Trial> trials;
  for (const Form& form : forms) {
    std::istringstream codes{std::string(form.code)};
    for (std::string code; codes >> code;) {
      Trial trial;
      trial.shape = form.shape;
      trial.before = parse_hex(form.before);
      trial.code = parse_hex(code);
      trial.after = parse_hex(form.after);
      trial.is_64_bit = form.is_64_bit;
      trial.left = form.left;
      const auto instruction = disassemble_one(trial.code, 0x401000, form.is_64_bit);
      if (!instruction || instruction->size != trial.code.size()) throw Error("not one instruction: " + code);
      trial.text = instruction->text;
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

}  // namespace bitwitness::tests
