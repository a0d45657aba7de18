#include "tools/cli/command_line.hpp"
#include <cstdio>
#include <cstdlib>
#include <iostream>

int main(int count, char** words) {
  const int code = mneme::run_command_line(count, words);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which look for leaks at the end
  // LibTorch would take a tenth of a second to forget its operators one by one.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
#endif
  return code;
}
