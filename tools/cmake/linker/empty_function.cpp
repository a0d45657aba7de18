// Ends with 0 if its linker knows where every function keeps its handlers, with 1 if an exception finds none.
//
// empty() has not one instruction, so that caught() begins at the same address, and so do the cold parts of functions
// from which g++ -O2 has removed all but what cannot be reached. The search table of a program (.eh_frame_hdr) may name
// one of the two only. GNU ld and gold keep caught(); lld keeps empty(), as long as LLVM's issue 218124 is open in it,
// and mold its issue 1648: then what caught() throws ends the program. A coroutine of a method fell to that fate.
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
  std::set_terminate([] { std::_Exit(1); }); // without a core
  return caught();
}
