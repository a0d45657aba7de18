/// target: for functions that are compiled for AVX2 with FMA, whatever the rest of the program is compiled for.
#pragma once

#define MNEME_PORTABLE __attribute__((target("avx2,fma")))
