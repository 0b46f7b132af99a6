// What must hold for every input; libFuzzer keeps the one that breaks it.
#pragma once

#include <cstdio>
#include <cstdlib>

#define REQUIRE(holds)                                                        \
  do {                                                                        \
    if (!(holds)) {                                                           \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #holds); \
      std::abort();                                                           \
    }                                                                         \
  } while (false)
