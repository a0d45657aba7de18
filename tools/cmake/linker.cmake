# Selects lld, the fastest linker, if programs that it links catch exceptions; otherwise the compiler's default linker.

# mneme_try_linker(NAME OPTION...): sets NAME_ANSWER to "catches" if a program linked with these options finds its
# exception handlers, to "terminates" if not (see linker/empty_function.cpp), and to "" if linking failed. The result is
# cached per build folder.
function(mneme_try_linker name)
  try_run(${name}_STATUS ${name}_LINKS ${PROJECT_BINARY_DIR}/${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/linker/empty_function.cpp
          COMPILE_DEFINITIONS -O2 LINK_OPTIONS ${ARGN})
  set(answer "")
  if(${name}_LINKS)
    set(answer "terminates")
    if(${name}_STATUS EQUAL 0)
      set(answer "catches")
    endif()
  endif()
  set(${name}_ANSWER "${answer}" PARENT_SCOPE)
endfunction()

find_program(LLD ld.lld)
if(LLD)
  mneme_try_linker(MNEME_LLD -fuse-ld=lld)
endif()
if(MNEME_LLD_ANSWER STREQUAL "catches")
  add_link_options(-fuse-ld=lld)
else()
  mneme_try_linker(MNEME_LINKER)
  if(MNEME_LINKER_ANSWER STREQUAL "terminates")
    message(FATAL_ERROR "A program that ${CMAKE_CXX_COMPILER} links does not find the handlers of its exceptions, so a failed "
                        "job would end a run without a summary (tools/cmake/linker/empty_function.cpp). lld and mold of before "
                        "September 2026 do that, GNU ld does not: -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=bfd, in a new build folder")
  endif()
endif()
