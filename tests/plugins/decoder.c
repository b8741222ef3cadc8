/* An example of a decoder that bitwitness loads: the six-byte rotation of Shaun White Skateboarding (seed 000, Track blocks,
   kind 4), written from its description alone. Build: cc -O2 -ffp-contract=off -shared -fPIC decoder.c -o decoder.so -lm
   Use: bitwitness verify --routine packed_quat48 --decoder ./decoder.so:decode */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What reports call the words and the parts of a value; optional. */
const char decode_description[] =
    "packed=6 words=x,y,z,w kind=f32 fields=a:15,index_low:1,b:15,index_high:1,c:15,unused:1";

static unsigned u16_at(const uint8_t* bytes) { return bytes[0] | (unsigned)bytes[1] << 8; }

/* The f32 nearest sqrt(2) / 32767 times the fifteen bits, less the f32 nearest sqrt(1/2); each step rounds to f32. */
static float kept(unsigned word) {
  const double scale = 0x1.6a0cbap-15; /* 0x3F06A0CBA0000000 */
  const float product = (float)((word & 0x7fff) * scale);
  const float half_root = 0x1.6a09e6p-1f;
  return (float)((double)product - (double)half_root);
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* One value: six bytes in, x, y, z and w out. */
void decode(const uint8_t* packed, uint32_t* words) {
  const unsigned first = u16_at(packed), second = u16_at(packed + 2), third = u16_at(packed + 4);
  const float a = kept(first), b = kept(second), c = kept(third);
  const double rest = 1.0 - (double)a * a - (double)b * b - (double)c * c;
  const uint32_t omitted = bits_of((float)sqrt(rest > 0 ? rest : 0));
  const unsigned index = first >> 15 | (second >> 15) << 1;
  const uint32_t three[3] = {bits_of(a), bits_of(b), bits_of(c)};
  unsigned next = 0;
  for (unsigned lane = 0; lane < 4; ++lane) words[lane] = lane == index ? omitted : three[next++];
}

/* The same for many values; named `whole_batch`, it is not found beside `decode`. */
void whole_batch(const uint8_t* packed, uint32_t* words, size_t count) {
  for (size_t i = 0; i < count; ++i) decode(packed + 6 * i, words + 4 * i);
}
