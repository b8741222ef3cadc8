// What a processor answers where Unicorn 2.0.1 answers otherwise. Answers beside which a processor may be are the exact
// results rounded; those of reciprocals that it never gives are, too.
#include "harness/self_test_vectors.hpp"

namespace bitwitness::self_test_vectors {
namespace {

using enum SelfTestShape;
using enum SelfTestAnswer;

// clang-format off
constexpr SelfTestVector transcendentals_in_double_rows[] = {
    {x87_one, "fsin", "d9fe", 0x037f, {0xb33333b7ffb73ff1, 0x3ffe}, {}, {0xa4eb73afc2c5dee3, 0x3ffe}, beside},
    {x87_one, "fcos", "d9ff", 0x037f, {0xe66666f777ff7afd, 0x3ffe}, {}, {0x9f21d442f42f8d44, 0x3ffe}, beside},
    {x87_one, "fptan", "d9f2ddd8", 0x037f, {0x999999fffdfd9a0b, 0x3ffe}, {}, {0xaf239798222c55d9, 0x3ffe}, beside},
    {x87_two, "fpatan", "d9f3", 0x037f,
     {0xccccccecefcffc5e, 0x3ffe}, {0x999999f999bd983f, 0x3ffd}, {0xb7b0ca5df1cb9f20, 0x3ffd}, beside},
    {x87_one, "f2xm1", "d9f0", 0x037f, {0xbd70a3ff6f3ff84a, 0x3ffd}, {}, {0x95af455125ae6fe6, 0x3ffd}, beside},
    {x87_two, "fyl2x", "d9f1", 0x037f,
     {0xd33333fff3f7fc32, 0x4000}, {0xd999999b9fd9fc11, 0x3fff}, {0xbb6781086fb8cabd, 0x4000}, beside},
    {x87_two, "fyl2xp1", "d9f9", 0x037f,
     {0xe147ae95fbf74bd2, 0x3ffb}, {0xf3333377f3f7337d, 0x3fff}, {0x9276e6e3e91a95f9, 0x3ffd}, beside},
};
constexpr SelfTestVector fprem_in_double_rows[] = {
    {x87_two, "fprem", "d9f8", 0x037f,
     {0xb7143b2b2a048eeb, 0x4007}, {0xaf1ae359e480e4d7, 0x3ffd}, {0xdd14d5ddfefe62bc, 0x3ffc}},
    {x87_two, "fprem", "d9f8", 0x037f,
     {0xbde4469fa7ecc710, 0x400d}, {0xf1ea15b95b470553, 0x4001}, {0xa68c9eb5ee148a8c, 0x3fff}},
    {x87_two, "fprem1", "d9f5", 0x037f,
     {0xcddd2f6c1660ed25, 0x400e}, {0xfcd31263ee3fb45d, 0x3ffe}, {0xed4d0f491fdb51c8, 0x3ffb}},
    {x87_two, "fprem1", "d9f5", 0x037f,
     {0xadb9ef89b0d4e3a2, 0x400c}, {0xa050dc63349468d6, 0x3ffd}, {0xf9717dc88bf09640, 0x3ff8}},
};
constexpr SelfTestVector reciprocal_estimates_exact_rows[] = {
    {sse, "rsqrtss", "f30f52c1", 0x1f80, {}, {0x3e197f92}, {0x40254d50}, other},
    {sse, "rsqrtss", "f30f52c1", 0x1f80, {}, {0x3e5c2ce7}, {0x400a0568}, other},
    {sse, "rcpss", "f30f53c1", 0x1f80, {}, {0x41207f61}, {0x3dcc2a43}, other},
    {sse, "rcpss", "f30f53c1", 0x1f80, {}, {0x3ebbbba9}, {0x402e8bb4}, other},
};
constexpr SelfTestVector dpps_order_rows[] = {
    {sse, "dpps", "660f3a40c1f1", 0x1f80,
     {0x3f8000004cbebc20, 0x3f800000ccbebc20}, {0x3f8000003f800000, 0x3f8000003f800000}, {}},
    {sse, "dpps", "660f3a40c1f1", 0x1f80,
     {0x40a000004be4e1c0, 0x40e00000cbe4e1c0}, {0x3f8000003f800000, 0x3f8000003f800000}, {0x41400000}},
};
constexpr SelfTestVector fisttp_m32_overflow_rows[] = {
    {x87_out, "fisttp m32", "db0f", 0x037f, {0xb2d05e0000000000, 0x401e}, {}, {0x80000000}},
    {x87_out, "fisttp m32", "db0f", 0x037f, {0x8000000000000000, 0x7fff}, {}, {0x80000000}},
    {x87_out, "fisttp m32", "db0f", 0x037f, {0xc000000000000000, 0x7fff}, {}, {0x80000000}},
};
constexpr SelfTestVector fisttp_m64_overflow_rows[] = {
    {x87_out, "fisttp m64", "dd0f", 0x037f, {0x8ac7230489e80000, 0x403e}, {}, {0x8000000000000000}},
    {x87_out, "fisttp m64", "dd0f", 0x037f, {0x8000000000000000, 0x7fff}, {}, {0x8000000000000000}},
    {x87_out, "fisttp m64", "dd0f", 0x037f, {0xc000000000000000, 0x7fff}, {}, {0x8000000000000000}},
};
constexpr SelfTestVector fbstp_overflow_rows[] = {
    {x87_out, "fbstp", "df37", 0x037f, {0xde0b6b3a76400000, 0x403a}, {}, {0xc000000000000000, 0xffff}},
    {x87_out, "fbstp", "df37", 0x037f, {0xa688906bd8b00000, 0xc03c}, {}, {0xc000000000000000, 0xffff}},
    {x87_out, "fbstp", "df37", 0x037f, {0x8000000000000000, 0x7fff}, {}, {0xc000000000000000, 0xffff}},
};
constexpr SelfTestVector fscale_special_rows[] = {
    {x87_two, "fscale", "d9fd", 0x037f, {}, {0x8000000000000000, 0x7fff}, {0xc000000000000000, 0xffff}},
    {x87_two, "fscale", "d9fd", 0x037f,
     {0x8000000000000000, 0x7fff}, {0x8000000000000000, 0xffff}, {0xc000000000000000, 0xffff}},
};
constexpr SelfTestVector fscale_rounds_rows[] = {
    {x87_two, "fscale", "d9fd", 0x007f,
     {0xb651c0703220c8e7, 0x4002}, {0xc000000000000000, 0x4000}, {0xb651c0703220c8e7, 0x4005}},
    {x87_two, "fscale", "d9fd", 0x027f,
     {0x8bad5ee5ac6b2f3a, 0x4000}, {0xc000000000000000, 0x4000}, {0x8bad5ee5ac6b2f3a, 0x4003}},
};
constexpr SelfTestVector constants_to_nearest_rows[] = {
    {x87_load, "fldpi", "d9eb", 0x077f, {}, {}, {0xc90fdaa22168c234, 0x4000}},
    {x87_load, "fldpi", "d9eb", 0x0f7f, {}, {}, {0xc90fdaa22168c234, 0x4000}},
    {x87_load, "fldl2e", "d9ea", 0x0f7f, {}, {}, {0xb8aa3b295c17f0bb, 0x3fff}},
    {x87_load, "fldl2t", "d9e9", 0x0b7f, {}, {}, {0xd49a784bcd1b8aff, 0x4000}},
    {x87_load, "fldlg2", "d9ec", 0x0f7f, {}, {}, {0x9a209a84fbcff798, 0x3ffd}},
    {x87_load, "fldln2", "d9ed", 0x077f, {}, {}, {0xb17217f7d1cf79ab, 0x3ffe}},
    {x87_load, "fldln2", "d9ed", 0x0f7f, {}, {}, {0xb17217f7d1cf79ab, 0x3ffe}},
};
constexpr SelfTestVector sse_second_nan_kept_rows[] = {
    {sse, "addss", "f30f58c1", 0x1f80, {0x7fc00123}, {0xffc00456}, {0x7fc00123}},
    {sse, "mulss", "f30f59c1", 0x1f80, {0x7fc00123}, {0xffc00456}, {0x7fc00123}},
    {sse, "divss", "f30f5ec1", 0x1f80, {0x7fc00123}, {0xffc00456}, {0x7fc00123}},
    {sse, "subss", "f30f5cc1", 0x1f80, {0x7fc00123}, {0xffc00456}, {0x7fc00123}},
    {sse, "addsd", "f20f58c1", 0x1f80, {0x7ff8000000000001}, {0x7ff8000000000123}, {0x7ff8000000000001}},
};
constexpr SelfTestVector snan_load_store_kept_rows[] = {
    {x87_plain, "fld m32, fstp m32", "d94610d91f", 0x037f, {0x7f800001}, {}, {0x7fc00001}},
    {x87_plain, "fld m32, fstp m32", "d94610d91f", 0x037f, {0xffa12345}, {}, {0xffe12345}},
    {x87_plain, "fld m64, fstp m64", "dd4610dd1f", 0x037f, {0x7ff0000000000001}, {}, {0x7ff8000000000001}},
    {x87_load, "fld m32", "d94610", 0x037f, {0x7f800001}, {}, {0xc000010000000000, 0x7fff}},
    {x87_out, "fstp m32", "d91f", 0x037f, {0xa000000000000000, 0x7fff}, {}, {0x7fe00000}},
};
constexpr SelfTestVector ftz_ignored_rows[] = {
    {sse, "mulss", "f30f59c1", 0x9f80, {0x800001}, {0x3f000000}, {}},
    {sse, "subss", "f30f5cc1", 0x9f80, {0x800001}, {0x800000}, {}},
    {sse, "mulsd", "f20f59c1", 0x9f80, {0x10000000000001}, {0x3fe0000000000000}, {}},
    {sse, "cvtsd2ss", "f20f5ac1", 0x9f80, {}, {0x37a16c262777579c}, {}},
    {sse, "divps", "0f5ec1", 0x9f80,
     {0x80000300800003, 0x80000300800003}, {0x4040000040400000, 0x4040000040400000}, {}},
};
constexpr SelfTestVector daz_min_max_ignored_rows[] = {
    {sse, "minss", "f30f5dc1", 0x1fc0, {5}, {3}, {}},
    {sse, "maxss", "f30f5fc1", 0x1fc0, {5}, {3}, {}},
    {sse, "minps", "0f5dc1", 0x1fc0,
     {0x200000001, 0x400000003}, {0x180000001, 0x8000000500000002}, {0x80000000, 0x8000000000000000}},
    {sse, "maxsd", "f20f5fc1", 0x1fc0, {5}, {3}, {}},
};
constexpr SelfTestVector popcnt_refused_rows[] = {
    {sse_edx, "popcnt", "8b5610f30fb8d2", 0x1f80, {0x89abcdef}, {}, {0x14}},
};
constexpr SelfTestVector movbe_refused_rows[] = {
    {sse_edx, "movbe", "0f38f05610", 0x1f80, {0x89abcdef}, {}, {0xefcdab89}},
};
constexpr SelfTestVector pclmulqdq_refused_rows[] = {
    {sse, "pclmulqdq", "660f3a44c100", 0x1f80, {0x123456789abcdef, 0xfedcba9876543210},
     {0x8899aabbccddeeff, 0x7766554433221100}, {0x20b813a968b45ba5, 0x98338948947b85}},
};
constexpr SelfTestVector sticky_flags_missing_rows[] = {
    {sse_plain, "divss, stmxcsr", "f30f5ec10fae1f", 0x1f80, {0x3f800000}, {}, {0x1f84}},
    {sse_plain, "mulss, stmxcsr", "f30f59c10fae1f", 0x1f80, {0x40e7381a}, {0x4132ff5c}, {0x1fa0}},
    {x87_out, "fsqrt, fnstsw", "31c0d9fadfe083e03f8907", 0x037f, {0x8000000000000000, 0xbfff}, {}, {1}},
    {x87_out, "fistp, fnstsw", "31c0db1fdfe083e03f8907", 0x037f, {0xc000000000000000, 0x3fff}, {}, {0x20}},
};
constexpr SelfTestVector x87_stack_faults_ignored_rows[] = {
    {x87_plain, "fadd", "d9eed9eed9eed9eed9eed9eed9eed9eeddd8ddd8ddd8ddd8ddd8ddd8ddd8ddd8db6e10d8c1db3f", 0x037f,
     {0x8000000000000000, 0x3fff}, {}, {0xc000000000000000, 0xffff}},
    {x87_load, "fchs", "d9eed9eed9eed9eed9eed9eed9eed9eeddd8ddd8ddd8ddd8ddd8ddd8ddd8ddd8d9e0", 0x037f,
     {}, {}, {0xc000000000000000, 0xffff}},
    {x87_one, "fld eight times more", "d9e8d9e8d9e8d9e8d9e8d9e8d9e8d9e8", 0x037f,
     {0x8000000000000000, 0x4000}, {}, {0xc000000000000000, 0xffff}},
};
constexpr SelfTestVector misalignment_ignored_rows[] = {
    {sse, "movaps", "0f284618", 0x1f80,
     {0x123456789abcdef, 0xfedcba9876543210}, {0x8899aabbccddeeff, 0x7766554433221100}, {}, fault},
    {sse, "addps", "0f584618", 0x1f80,
     {0x123456789abcdef, 0xfedcba9876543210}, {0x8899aabbccddeeff, 0x7766554433221100}, {}, fault},
};
constexpr SelfTestVector exceptions_not_raised_rows[] = {
    {x87_one, "fsqrt", "d9fa", 0x037e, {0x8000000000000000, 0xbfff}, {}, {}, fault},
    {sse, "sqrtss", "f30f51c1", 0x1f00, {}, {0xbf800000}, {}, fault},
    {sse, "divss", "f30f5ec1", 0x1d80, {0x3f800000}, {}, {}, fault},
};
constexpr SelfTestVector vex_runs_as_sse_rows[] = {
    {sse, "vaddps", "c5f058c1", 0x1f80, {0x41742d923ed06162, 0xbe3d72233e9dc770},
     {0xc125429041457fd5, 0x3f79ec79415d0850}, {0xc1a5429041c57fd5, 0x3ff9ec7941dd0850}},
    {sse, "vmulss", "c5f259c1", 0x1f80, {0xbebc1ae93e02b44a, 0xbec04477bee5fd19},
     {0xbe462c223e0a5f5f, 0x3ef60b853eb94b6d}, {0xbe462c223c9595ec, 0x3ef60b853eb94b6d}},
};
constexpr SelfTestVector fxtract_special_rows[] = {
    {x87_one, "fxtract", "d9f4", 0x037f, {0x8000000000000000, 0x7fff}, {}, {0x8000000000000000, 0x7fff}},
    {x87_one, "fxtract, exponent", "d9f4d9c9", 0x037f,
     {0x8000000000000000, 0x7fff}, {}, {0x8000000000000000, 0x7fff}},
    {x87_one, "fxtract", "d9f4", 0x037f, {0x8000000000000000, 0xffff}, {}, {0x8000000000000000, 0xffff}},
    {x87_one, "fxtract, exponent", "d9f4d9c9", 0x037f,
     {0x8000000000000000, 0xffff}, {}, {0x8000000000000000, 0x7fff}},
    {x87_one, "fxtract", "d9f4", 0x037f, {0xa000000000000001, 0x7fff}, {}, {0xe000000000000001, 0x7fff}},
};

constexpr SelfTestGroup groups[] = {
    {"transcendentals-in-double",
     "computes sines, tangents, logarithms and powers in double precision", true, transcendentals_in_double_rows},
    {"fprem-in-double", "computes the remainders fprem and fprem1 in double precision", true, fprem_in_double_rows},
    {"reciprocal-estimates-exact",
     "rounds the exact result of rsqrtss and rcpss, where each processor has a table of its own", true, reciprocal_estimates_exact_rows},
    {"dpps-order", "adds the products of dpps one after the other, not in pairs", true, dpps_order_rows},
    {"fisttp-m32-overflow",
     "stores the largest integer where a number is too large for fisttp m32", true, fisttp_m32_overflow_rows},
    {"fisttp-m64-overflow",
     "stores the largest integer where a number is too large for fisttp m64", true, fisttp_m64_overflow_rows},
    {"fbstp-overflow", "stores digits where a number has more than eighteen of them", true, fbstp_overflow_rows},
    {"fscale-special", "does not scale zero and infinity by infinities to a NaN", true, fscale_special_rows},
    {"fscale-rounds", "rounds what fscale gives to the precision of the control word", true, fscale_rounds_rows},
    {"constants-to-nearest",
     "rounds fldpi and its like to nearest, whichever way the control word says", true, constants_to_nearest_rows},
    {"sse-second-nan-kept",
     "keeps the second of two NaNs where a processor keeps the first", true, sse_second_nan_kept_rows},
    {"snan-load-store-kept",
     "copies signalling NaNs through x87 loads and stores as they are", true, snan_load_store_kept_rows},
    {"ftz-ignored", "keeps denormal results under FTZ", true, ftz_ignored_rows},
    {"daz-min-max-ignored",
     "does not take denormals for zeros in minima and maxima under DAZ", true, daz_min_max_ignored_rows},
    {"popcnt-refused", "does not know popcnt", true, popcnt_refused_rows},
    {"movbe-refused", "does not know movbe", true, movbe_refused_rows},
    {"pclmulqdq-refused", "does not know pclmulqdq", true, pclmulqdq_refused_rows},
    {"sticky-flags-missing",
     "does not record exceptions in MXCSR, nor all of them in the x87 status word", true, sticky_flags_missing_rows},
    {"x87-stack-faults-ignored",
     "uses empty x87 registers, and loads into full ones, as if they were not", true, x87_stack_faults_ignored_rows},
    {"misalignment-ignored",
     "accesses 16 bytes at any address where a processor raises an exception", true, misalignment_ignored_rows},
    {"exceptions-not-raised",
     "goes on where an unmasked floating-point exception interrupts a processor", true, exceptions_not_raised_rows},
    {"vex-runs-as-sse",
     "runs VEX-encoded instructions as if they were SSE ones of two operands", true, vex_runs_as_sse_rows},
    {"fxtract-special",
     "takes infinities, NaNs and denormals apart as if they were other numbers", true, fxtract_special_rows},
};
// clang-format on

}  // namespace

std::span<const SelfTestGroup> quirk_groups() {
  return groups;
}

}  // namespace bitwitness::self_test_vectors
