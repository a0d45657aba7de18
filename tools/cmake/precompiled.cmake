# Precompiled headers: what nearly every source reads of LibTorch, CAF and the standard library is read once. Sources
# still include what they use: tools/checks/includes_check.py compiles some of them without.
set(mneme_headers_numbers
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <coroutine> <cstdint> <cstdio> <cstring> <deque>
  <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numbers> <numeric> <optional> <set> <span> <sstream>
  <stdexcept> <string> <string_view> <thread> <tuple> <unordered_map> <utility> <variant> <vector>
  <ATen/ATen.h> <fmt/format.h> <tl/expected.hpp>)
set(mneme_headers_actors ${mneme_headers_numbers}
  <caf/actor_system.hpp> <caf/actor_system_config.hpp> <caf/scoped_actor.hpp> <caf/typed_actor.hpp>
  <caf/typed_event_based_actor.hpp> <caf/typed_response_promise.hpp>)
set(mneme_headers_tests ${mneme_headers_numbers}
  <catch2/catch_approx.hpp> <catch2/catch_test_macros.hpp> <catch2/generators/catch_generators.hpp>
  <catch2/matchers/catch_matchers_floating_point.hpp> <catch2/matchers/catch_matchers_string.hpp>)
set(mneme_libraries_actors CAF::core)
set(mneme_libraries_tests Catch2::Catch2)
set(mneme_options_tests $<$<CONFIG:Release>:-O1>) # tests are compiled more often than they compute

# mneme_precompile(TARGET KIND): TARGET's sources start from the headers of KIND (numbers, actors, tests), which are
# compiled once for all targets.
function(mneme_precompile target kind)
  set(holder mneme_headers_of_${kind})
  if(NOT TARGET ${holder})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${holder}.cpp CONTENT "// Holds precompiled headers.\n")
    add_library(${holder} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${holder}.cpp)
    target_link_libraries(${holder} PRIVATE mneme_numbers ${mneme_libraries_${kind}})
    target_compile_options(${holder} PRIVATE ${mneme_options_${kind}})
    target_precompile_headers(${holder} PRIVATE ${mneme_headers_${kind}})
  endif()
  target_compile_options(${target} PRIVATE ${mneme_options_${kind}})
  target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()
