// Tests the linker's exception table (.eh_frame_hdr). Exit code 0: the exception handler of caught() is found; 1: not.
// empty() has no instruction, so caught() begins at the same address. g++ -O2 makes such empty functions from cold
// parts that it proves unreachable. The table can have only one entry per address. GNU ld and gold keep the entry of
// caught(). lld (LLVM issue 218124) and mold (issue 1648) keep the entry of empty(), so an exception in caught() ends
// the program. This error has occurred in the coroutine of a method.
#include <cstdlib>
#include <exception>

[[gnu::cold, gnu::noinline]] void empty() { __builtin_unreachable(); }

[[gnu::cold, gnu::noinline]] int caught() {
  try {
    throw 1;
  } catch (int) {
    return 0;
  }
}

int main() {
  std::set_terminate([] { std::_Exit(1); }); // exits without a core dump
  return caught();
}
