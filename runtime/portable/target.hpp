/// target: attributes of functions that are compiled for AVX2 with FMA, regardless of the flags of the program.
#pragma once
#if !defined(__x86_64__)
#error "runtime/portable is for x86-64; configure other architectures with -DMNEME_PORTABLE=OFF"
#endif

#define MNEME_PORTABLE __attribute__((target("avx2,fma")))
