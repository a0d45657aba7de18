# mneme_device_catalogue(): compiles scenarios/devices/*.toml into the scenario layer, so that an installed program has
# the profiles. An edited profile is compiled again.
function(mneme_device_catalogue)
  file(GLOB profiles CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/scenarios/devices/*.toml)
  set(entries)
  foreach(file IN LISTS profiles)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    cmake_path(GET file STEM name)
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"profile(${text})profile\"},\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/device_catalogue.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[#include "runtime/scenario/device_profiles.hpp"
namespace mneme {

const std::vector<named_profile>& profiles_of_the_build();
const std::vector<named_profile>& profiles_of_the_build() {
  static const std::vector<named_profile> catalogue{
@entries@  };
  return catalogue;
}

} // namespace mneme
]])
  target_sources(mneme_scenario PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
