/// target: attributes of functions that are compiled for AVX2 with FMA, regardless of the flags of the program.
#pragma once

#define MNEME_PORTABLE __attribute__((target("avx2,fma")))
