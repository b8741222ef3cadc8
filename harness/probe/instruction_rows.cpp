// What the emulator makes of each instruction. tests/instruction_table_test.cpp runs every row on a processor too.
#include "harness/probe/instruction_audit.hpp"

#include <algorithm>
#include <vector>

namespace bitwitness {
namespace {

struct Group {
  Exactness exactness;
  std::string_view reason;
  std::string_view mnemonics;  // blanks between them
};

// clang-format off
constexpr Group groups[] = {
    // x87
    {Exactness::exact, "",
     "fxrstor fadd fsub fsubr fmul fdiv fdivr fcom fucom fcomi fucomi fsqrt fabs fchs frndint fxch ftst fxam "
     "fnop wait fnclex fcmovb fcmove fcmovbe fcmovu fcmovnb fcmovne fcmovnbe fcmovnu fnstcw faddp fsubp "
     "fsubrp fmulp fdivp fdivrp fcomp fucomp fcomip fucomip ffree fcompp fucompp fincstp fdecstp fninit fld1 "
     "fldz fiadd fisub fisubr fimul fidiv fidivr ficom ficomp fist fild fbld fistp fldcw fldenv frstor"},
    // SSE, numbers
    {Exactness::exact, "",
     "sqrtps andps andnps orps xorps unpcklps unpckhps movsldup movshdup cmpeqps cmpltps cmpleps cmpunordps "
     "cmpneqps cmpnltps cmpnleps cmpordps shufps blendps insertps blendvps roundps sfence lfence mfence "
     "prefetchnta prefetcht0 prefetcht1 prefetcht2 sqrtss comiss ucomiss movss cmpeqss cmpltss cmpless "
     "cmpunordss cmpneqss cmpnltss cmpnless cmpordss roundss sqrtpd andpd andnpd orpd xorpd unpcklpd unpckhpd "
     "movddup cmpeqpd cmpltpd cmplepd cmpunordpd cmpneqpd cmpnltpd cmpnlepd cmpordpd shufpd blendpd blendvpd "
     "roundpd sqrtsd comisd ucomisd movsd cmpeqsd cmpltsd cmplesd cmpunordsd cmpneqsd cmpnltsd cmpnlesd "
     "cmpordsd roundsd cvtdq2ps cvtsi2ss cvtpi2ps cvtdq2pd cvtsi2sd cvtpi2pd cvtps2dq cvttps2dq cvtps2pi "
     "cvttps2pi cvtpd2dq cvttpd2dq cvtpd2pi cvttpd2pi cvtps2pd cvtss2sd cvtss2si cvttss2si cvtsd2si cvttsd2si"},
    // MMX and SSE, integers and moves
    {Exactness::exact, "",
     "pblendvb movaps movups movapd movupd movdqa movdqu movhlps movlhps movq movlps movhps movlpd movhpd "
     "lddqu movnti movd movntq movmskps movmskpd pmovmskb movq2dq movdq2q pextrw pinsrw pinsrb pinsrd pextrb "
     "pextrd extractps ptest emms movntps movntpd movntdq paddb paddw paddd paddq paddsb paddsw paddusb "
     "paddusw psubb psubw psubd psubq psubsb psubsw psubusb psubusw pmullw pmulhw pmulhuw pmuludq pmaddwd "
     "pavgb pavgw pmaxsw pmaxub pminsw pminub psadbw pand pandn por pxor pcmpeqb pcmpeqw pcmpeqd pcmpgtb "
     "pcmpgtw pcmpgtd packsswb packssdw packuswb punpcklbw punpcklwd punpckldq punpckhbw punpckhwd punpckhdq "
     "psllw pslld psllq psrlw psrld psrlq psraw psrad pabsb pabsw pabsd phaddw phaddd phaddsw phsubw phsubd "
     "phsubsw pmaddubsw pmulhrsw pshufb psignb psignw psignd punpcklqdq punpckhqdq packusdw pcmpeqq pcmpgtq "
     "pmaxsb pmaxsd pmaxud pmaxuw pminsb pminsd pminud pminuw pmuldq pmulld phminposuw pmovsxbw pmovsxbd "
     "pmovsxbq pmovsxwd pmovsxwq pmovsxdq pmovzxbw pmovzxbd pmovzxbq pmovzxwd pmovzxwq pmovzxdq pshufd "
     "pshufhw pshuflw palignr pblendw mpsadbw pshufw pslldq psrldq aesenc aesenclast aesdec aesdeclast aesimc "
     "aeskeygenassist pcmpistri pcmpistrm pinsrq pextrq ldmxcsr"},
    // Features that not every processor has
    {Exactness::exact, "",
     "lzcnt tzcnt crc32 adcx adox"},
    {Exactness::finite, "keeps another of two NaNs, and keeps denormal results under MXCSR's FTZ",
     "addps subps mulps divps addss subss mulss divss addpd subpd mulpd divpd addsd subsd mulsd divsd haddps "
     "hsubps haddpd hsubpd addsubps addsubpd"},
    {Exactness::finite, "does not take denormals for zeros under MXCSR's DAZ",
     "minps maxps minss maxss minpd maxpd minsd maxsd"},
    {Exactness::finite, "keeps denormal results under MXCSR's FTZ",
     "cvtpd2ps cvtsd2ss"},
    {Exactness::finite, "copies signalling NaNs, also integers that look like them, where a processor makes them quiet",
     "fld fst fstp"},
    {Exactness::finite, "gives another result for zeros, infinities and NaNs",
     "fxtract"},
    {Exactness::approximate, "is computed in double precision or by another series than a processor's",
     "fsin fcos fsincos fptan fpatan f2xm1 fyl2x fyl2xp1"},
    {Exactness::approximate, "is the rounded exact result, where each processor has a table of its own",
     "rsqrtps rsqrtss rcpps rcpss"},
    {Exactness::approximate, "adds its products in another order, or rounds them otherwise",
     "dpps dppd"},
    {Exactness::approximate, "rounds the constant to nearest, whichever way the control word says",
     "fldpi fldl2e fldl2t fldlg2 fldln2"},
    {Exactness::wrong, "reduces by another amount at a time",
     "fprem fprem1"},
    {Exactness::wrong, "rounds and overflows otherwise",
     "fscale"},
    {Exactness::wrong, "gives the largest integer where the number is beyond the range",
     "fisttp"},
    {Exactness::wrong, "gives other digits where the number has more than eighteen",
     "fbstp"},
    {Exactness::wrong, "tells no exception flags, which the emulator does not keep",
     "fnstsw stmxcsr"},
    {Exactness::wrong, "tells neither exception flags nor where the last instruction was",
     "fnstenv fnsave fxsave"},
    {Exactness::wrong, "tells of the emulated processor",
     "cpuid sgdt sidt smsw str"},
    {Exactness::wrong, "reads a clock",
     "rdtsc rdtscp"},
    {Exactness::wrong, "reads beyond its registers for some lengths, which can end this program",
     "pcmpestri pcmpestrm"},
    {Exactness::refused, "is not known to the emulated processor",
     "popcnt movbe pclmulqdq rdrand rdseed xgetbv"},
    {Exactness::refused, "asks the system for something",
     "hlt in out insb insd insw outsb outsd outsw int int1 int3 syscall sysenter monitor mwait vmcall"},
};
// clang-format on

constexpr InstructionRow unknown_row = {
    {}, Exactness::unknown, "is not in the table of what the emulator was compared in"};

std::vector<InstructionRow> make_rows() {
  std::vector<InstructionRow> rows;
  for (const Group& group : groups) {
    for (std::string_view rest = group.mnemonics; !rest.empty();) {
      const std::string_view mnemonic = rest.substr(0, rest.find(' '));
      rows.push_back({mnemonic, group.exactness, group.reason});
      rest.remove_prefix(std::min(rest.size(), mnemonic.size() + 1));
    }
  }
  std::ranges::sort(rows, {}, &InstructionRow::mnemonic);
  return rows;
}

std::string_view without_prefix(std::string_view text) {
  for (const std::string_view prefix : {"rep ", "repe ", "repne ", "lock "}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  return text;
}

bool names_vector_register(std::string_view text) {
  const std::size_t found = text.find("mm");
  return found != std::string_view::npos && found > text.find(' ') && found + 2 < text.size() &&
         text[found + 2] >= '0' && text[found + 2] <= '9';
}

}  // namespace

std::span<const InstructionRow> instruction_rows() {
  static const std::vector<InstructionRow> rows = make_rows();
  return rows;
}

const InstructionRow* find_row(std::string_view text) {
  text = without_prefix(text);
  const std::string_view mnemonic = text.substr(0, text.find(' '));
  const bool is_vector = names_vector_register(text);
  // Two names that moves and comparisons of strings have as well.
  if ((mnemonic == "movsd" || mnemonic == "cmpsd") && !is_vector) return nullptr;
  const auto rows = instruction_rows();
  const auto found = std::ranges::lower_bound(rows, mnemonic, {}, &InstructionRow::mnemonic);
  if (found != rows.end() && found->mnemonic == mnemonic) return &*found;
  return is_vector || mnemonic.starts_with('f') ? &unknown_row : nullptr;
}

}  // namespace bitwitness
