#include "decoders/packed_quat48_batch.hpp"

#include "decoders/packed_quat48.hpp"

#include <stdexcept>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define BITWITNESS_BATCH_AVX2 1
#include <immintrin.h>
#else
#define BITWITNESS_BATCH_AVX2 0
#endif

namespace bitwitness::decoders::packed_quat48 {
namespace {

void decode_scalar(std::span<const std::byte> packed, std::span<std::uint32_t> words, std::size_t first_key) {
  const std::size_t keys = packed.size() / packed_size;
  for (std::size_t key = first_key; key < keys; ++key) {
    decode(packed.subspan(packed_size * key, packed_size), words.subspan(4 * key, 4));
  }
}

#if BITWITNESS_BATCH_AVX2

constexpr std::size_t keys_at_once = 8;

// FMA is not among the target's instructions, so that no compiler can contract products and sums.
#define BITWITNESS_AVX2 __attribute__((target("avx2")))

// The product of a 15-bit code and the scale's 24 bits is exact in double: rounding it to f32 there, as `component`
// does, is what one f32 product does.
BITWITNESS_AVX2 inline __m256 components(__m256i codes) {
  const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(codes), _mm256_set1_ps(static_cast<float>(scale)));
  return _mm256_sub_ps(product, _mm256_set1_ps(bias));
}

BITWITNESS_AVX2 inline __m256d radicands(__m128 a, __m128 b, __m128 c) {
  const __m256d wide_a = _mm256_cvtps_pd(a);
  const __m256d wide_b = _mm256_cvtps_pd(b);
  const __m256d wide_c = _mm256_cvtps_pd(c);
  const __m256d without_a = _mm256_sub_pd(_mm256_set1_pd(1.0), _mm256_mul_pd(wide_a, wide_a));
  const __m256d without_b = _mm256_sub_pd(without_a, _mm256_mul_pd(wide_b, wide_b));
  return _mm256_sub_pd(without_b, _mm256_mul_pd(wide_c, wide_c));
}

BITWITNESS_AVX2 inline __m128 clamped_roots(__m256d radicands) {
  return _mm256_cvtpd_ps(_mm256_sqrt_pd(_mm256_max_pd(radicands, _mm256_setzero_pd())));
}

BITWITNESS_AVX2 inline __m256i load_twice(const std::byte* packed) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(packed)));
}

BITWITNESS_AVX2 inline void store(std::uint32_t* words, __m256 values) {
  _mm256_storeu_ps(reinterpret_cast<float*>(words), values);
}

// Eight keys on their way: the words that hold the lanes, the kept components, what is left for the omitted one.
struct Eight {
  __m256i pairs;
  __m256 a;
  __m256 b;
  __m256 c;
  __m256d left_low;
  __m256d left_high;
};

// Reads 48 bytes and no more. Even keys go to low halves and odd ones to high halves, where `write_eight` leaves them
// side by side. Of every key, the first two words become one dword, the third one is widened with zeros.
BITWITNESS_AVX2 inline Eight read_eight(const std::byte* packed) {
  constexpr char n = -1;
  const __m256i first = _mm256_setr_epi8(0, 1, 2, 3, n, n, n, n, 4, 5, n, n, n, n, n, n,  //
                                         6, 7, 8, 9, n, n, n, n, 10, 11, n, n, n, n, n, n);
  const __m256i second = _mm256_setr_epi8(n, n, n, n, 0, 1, 2, 3, n, n, n, n, 4, 5, n, n,  //
                                          n, n, n, n, 6, 7, 8, 9, n, n, n, n, 10, 11, n, n);
  const __m256i second_from_4 = _mm256_setr_epi8(n, n, n, n, 4, 5, 6, 7, n, n, n, n, 8, 9, n, n,  //
                                                 n, n, n, n, 10, 11, 12, 13, n, n, n, n, 14, 15, n, n);
  const __m256i even = _mm256_or_si256(_mm256_shuffle_epi8(load_twice(packed), first),
                                       _mm256_shuffle_epi8(load_twice(packed + 12), second));
  const __m256i odd = _mm256_or_si256(_mm256_shuffle_epi8(load_twice(packed + 24), first),
                                      _mm256_shuffle_epi8(load_twice(packed + 32), second_from_4));
  const __m256i mask = _mm256_set1_epi32(0x7FFF);
  Eight eight;
  eight.pairs = _mm256_unpacklo_epi64(even, odd);
  eight.a = components(_mm256_and_si256(eight.pairs, mask));
  eight.b = components(_mm256_and_si256(_mm256_srli_epi32(eight.pairs, 16), mask));
  eight.c = components(_mm256_and_si256(_mm256_unpackhi_epi64(even, odd), mask));
  eight.left_low =
      radicands(_mm256_castps256_ps128(eight.a), _mm256_castps256_ps128(eight.b), _mm256_castps256_ps128(eight.c));
  eight.left_high = radicands(_mm256_extractf128_ps(eight.a, 1), _mm256_extractf128_ps(eight.b, 1),
                              _mm256_extractf128_ps(eight.c, 1));
  return eight;
}

BITWITNESS_AVX2 inline __m256 omitted_of(const Eight& eight) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(clamped_roots(eight.left_low)), clamped_roots(eight.left_high), 1);
}

// Writes 32 words.
BITWITNESS_AVX2 inline void write_eight(std::uint32_t* words, const Eight& eight, __m256 root) {
  // blendv looks at sign bits alone: of the omitted lane's low bit or its high bit, the high bit, both.
  const __m256i lane_low = _mm256_slli_epi32(eight.pairs, 16);
  const __m256 past_x = _mm256_castsi256_ps(_mm256_or_si256(lane_low, eight.pairs));
  const __m256 past_y = _mm256_castsi256_ps(eight.pairs);
  const __m256 past_z = _mm256_castsi256_ps(_mm256_and_si256(lane_low, eight.pairs));
  const __m256 x = _mm256_blendv_ps(root, eight.a, past_x);
  const __m256 y = _mm256_blendv_ps(eight.a, _mm256_blendv_ps(root, eight.b, past_y), past_x);
  const __m256 z = _mm256_blendv_ps(eight.b, _mm256_blendv_ps(root, eight.c, past_z), past_y);
  const __m256 w = _mm256_blendv_ps(eight.c, root, past_z);

  const __m256 xy_low = _mm256_unpacklo_ps(x, y);
  const __m256 xy_high = _mm256_unpackhi_ps(x, y);
  const __m256 zw_low = _mm256_unpacklo_ps(z, w);
  const __m256 zw_high = _mm256_unpackhi_ps(z, w);
  store(words, _mm256_shuffle_ps(xy_low, zw_low, 0x44));
  store(words + 8, _mm256_shuffle_ps(xy_low, zw_low, 0xEE));
  store(words + 16, _mm256_shuffle_ps(xy_high, zw_high, 0x44));
  store(words + 24, _mm256_shuffle_ps(xy_high, zw_high, 0xEE));
}

// Returns how many keys it decoded: all but the last few. One block of eight waits for the next instruction of a long
// chain most of the time, so that three are under way: one being read, one at its roots, one being written.
BITWITNESS_AVX2 std::size_t decode_avx2(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::size_t eights = packed.size() / (packed_size * keys_at_once);
  if (eights < 2) return 0;
  const std::byte* from = packed.data() + packed_size * keys_at_once;
  std::uint32_t* to = words.data();
  Eight rooted = read_eight(packed.data());
  __m256 root = omitted_of(rooted);
  Eight read = read_eight(from);
  for (std::size_t i = 2; i < eights; ++i) {
    from += packed_size * keys_at_once;
    const Eight next = read_eight(from);
    const __m256 next_root = omitted_of(read);
    write_eight(to, rooted, root);
    to += 4 * keys_at_once;
    rooted = read;
    root = next_root;
    read = next;
  }
  write_eight(to, rooted, root);
  write_eight(to + 4 * keys_at_once, read, omitted_of(read));
  return eights * keys_at_once;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0;
}

#else

std::size_t decode_avx2(std::span<const std::byte>, std::span<std::uint32_t>) {
  return 0;
}

bool has_avx2() {
  return false;
}

#endif

}  // namespace

BatchPath fastest_batch_path() {
  static const BatchPath path = has_avx2() ? BatchPath::avx2 : BatchPath::scalar;
  return path;
}

void decode_batch(std::span<const std::byte> packed, std::span<std::uint32_t> words, BatchPath path) {
  if (packed.size() % packed_size != 0) throw std::invalid_argument("decode_batch: not whole keys of 6 bytes");
  if (words.size() != packed.size() / packed_size * 4) {
    throw std::invalid_argument("decode_batch: not 4 words for every key");
  }
  std::size_t done = 0;
  if (path == BatchPath::avx2) {
    if (fastest_batch_path() != BatchPath::avx2) throw std::invalid_argument("decode_batch: no AVX2 here");
    done = decode_avx2(packed, words);
  }
  decode_scalar(packed, words, done);
}

}  // namespace bitwitness::decoders::packed_quat48
