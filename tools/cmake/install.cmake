# cmake --install BUILD --prefix P: installs the program in P/bin, the libraries of LibTorch that it needs in
# P/lib/mneme, and scenarios and pages in P/share. The program finds its libraries by a relative path, so P can be
# moved. The component `libraries` adds the required system libraries for machines without them (tools/package tarball).
set(library_folder lib/mneme)

# With RPATH, libraries also search the program's folder for other libraries. With the newer RUNPATH, only the program
# does.
target_link_options(mneme PRIVATE -Wl,--disable-new-dtags)
set_target_properties(mneme PROPERTIES INSTALL_RPATH "$ORIGIN/../${library_folder}")
install(TARGETS mneme RUNTIME_DEPENDENCY_SET mneme_needs RUNTIME DESTINATION bin)

# Libraries of the C and C++ runtime always come from the system, since they must fit its kernel and loader.
set(runtime "/(ld-linux[-a-z0-9_]*|libc|libm|libdl|librt|libpthread|libutil|libresolv|libgcc_s|libstdc[+][+])[.]so")
set(system "^(/usr)?/lib(64)?/")
set(searched ${torch_site}/nvidia/cu13/lib ${torch_site}/nvidia/cudnn/lib ${TORCH_HOME}/lib)
install(RUNTIME_DEPENDENCY_SET mneme_needs DESTINATION ${library_folder}
        POST_EXCLUDE_REGEXES ${runtime} ${system} DIRECTORIES ${searched})
install(RUNTIME_DEPENDENCY_SET mneme_needs DESTINATION ${library_folder} COMPONENT libraries EXCLUDE_FROM_ALL
        POST_EXCLUDE_REGEXES ${runtime} DIRECTORIES ${searched})

install(DIRECTORY ${PROJECT_SOURCE_DIR}/scenarios DESTINATION share/mneme)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION share/mneme)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
              ${PROJECT_SOURCE_DIR}/CITATION.cff DESTINATION share/mneme)
install(FILES ${PROJECT_SOURCE_DIR}/tools/packaging/mneme-node.service DESTINATION share/mneme/packaging)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/packaging/slurm.sh DESTINATION share/mneme/packaging)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/packaging/kubernetes DESTINATION share/mneme/packaging)
# The man page, from `mneme --help`.
find_program(HELP2MAN help2man)
if(HELP2MAN)
  install(CODE "
set(manual \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1\")
file(MAKE_DIRECTORY \"\${manual}\")
execute_process(COMMAND ${HELP2MAN} --no-info --name \"simulator for federated continual learning\"
                        --output \"\${manual}/mneme.1\" \"$<TARGET_FILE:mneme>\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
# Licenses of the bundled libraries.
file(GLOB licences ${torch_site}/*.dist-info/licenses)
foreach(folder IN LISTS licences)
  get_filename_component(wheel ${folder} DIRECTORY)
  string(REGEX REPLACE ".*/|[.]dist-info$" "" wheel ${wheel})
  install(DIRECTORY ${folder}/ DESTINATION share/mneme/licences/${wheel})
endforeach()
