/* Decoders that do what no decoder should, for plugin_test. Those that go wrong on one value do so on 03 00 00 00 00 00. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void decode(const uint8_t* packed, uint32_t* words); /* decoder.c */

const int data = 7;
const char wrong_size_description[] = "packed=8";
const char wrong_key_description[] = "colour=blue";
void wrong_size(const uint8_t* packed, uint32_t* words) { decode(packed, words); }
void wrong_key(const uint8_t* packed, uint32_t* words) { decode(packed, words); }

static int is_bad(const uint8_t* packed) {
  static const uint8_t bad[6] = {3, 0, 0, 0, 0, 0};
  return memcmp(packed, bad, 6) == 0;
}

#define ON_BAD(name, what)                                  \
  void name(const uint8_t* packed, uint32_t* words) {       \
    if (is_bad(packed)) {                                   \
      what;                                                 \
    }                                                       \
    decode(packed, words);                                  \
  }

static volatile int forever = 1;
static int* volatile nowhere = NULL;

ON_BAD(crashes, *nowhere = 1)
ON_BAD(hangs, while (forever) {})
ON_BAD(aborts, fputs("first line\nlast words\n\n", stderr); abort())
ON_BAD(exits, exit(0))
ON_BAD(leaves, _exit(5))
ON_BAD(ends_itself, raise(SIGTERM))
ON_BAD(closes, for (int i = 0; i < 64; ++i) close(i))
ON_BAD(is_wrong, decode(packed, words); words[2] ^= 1; return)
ON_BAD(forgets, uint32_t all[4]; decode(packed, all); memcpy(words, all, 3 * sizeof *words); return)
ON_BAD(eats, for (int i = 0; i < 64; ++i) if (malloc(1 << 24) == NULL) abort()) /* a gigabyte */

void writes_less(const uint8_t* packed, uint32_t* words) {
  uint32_t all[4];
  decode(packed, all);
  memcpy(words, all, 3 * sizeof *words);
}
void writes_more(const uint8_t* packed, uint32_t* words) {
  decode(packed, words);
  words[4] = 0;
}
void prints(const uint8_t* packed, uint32_t* words) {
  puts("chatter");
  fflush(stdout);
  decode(packed, words);
}

/* Batch forms. */
#define BATCH(name, one)                                                             \
  void name(const uint8_t* packed, uint32_t* words, size_t count) {                  \
    for (size_t i = 0; i < count; ++i) one(packed + 6 * i, words + 4 * i);           \
  }
BATCH(good_batch, decode)
BATCH(crashes_batch, crashes)
BATCH(also_forgets_batch, forgets)
BATCH(hangs_batch, hangs)
void crowded_batch(const uint8_t* packed, uint32_t* words, size_t count) {
  if (count > 1) abort();
  decode(packed, words);
}
void runs_over_batch(const uint8_t* packed, uint32_t* words, size_t count) {
  good_batch(packed, words, count);
  words[4 * count] = 1;
}
void good(const uint8_t* packed, uint32_t* words) {
  (void)packed;
  (void)words;
  abort(); /* its batch form is to be called */
}
