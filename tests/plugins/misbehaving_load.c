/* A library that does wrong while it is loaded, as the environment says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int forever = 1;

__attribute__((constructor)) static void start(void) {
  const char* how = getenv("BITWITNESS_TEST_LOAD");
  if (how == NULL) return;
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "exit") == 0) exit(0);
  while (strcmp(how, "hang") == 0 && forever) {
  }
}

void decode(const uint8_t* packed, uint32_t* words) {
  (void)packed;
  memset(words, 0, 16);
}
