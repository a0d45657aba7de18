#include "tools/cli/command_line.hpp"
#include <malloc.h>

int main(int count, char** words) {
#ifdef __GLIBC__
  // Models and activations of large nets go back to the system when freed, and smaller memory stays at hand. (By
  // itself the library moves both bounds up to the largest block ever freed: a quarter more memory for ResNet-18.)
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
  return mneme::run_command_line(count, words);
}
