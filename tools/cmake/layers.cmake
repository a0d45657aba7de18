# The layers of mneme, lowest first: layer(FOLDER DEPENDENCY...). A layer knows itself and the layers that its line names,
# and nothing else: programs link what their lines lead to, and tools/tidy.py reads this file and compares every include
# with it. Libraries of others are named below, where they are used.
layer(runtime/base)
layer(runtime/kernels base)
optional_layer(MNEME_PORTABLE runtime/portable base kernels)
layer(runtime/transport base)
layer(runtime/formats base)
layer(runtime/options base)
layer(runtime/settings base options)
layer(runtime/models base kernels options)
layer(runtime/data base formats kernels options settings)
layer(runtime/storage base formats models)
layer(runtime/modules base kernels formats models)
layer(runtime/method base kernels models settings data)
layer(runtime/population base options models settings data method)
layer(runtime/training base kernels models settings data storage method)
layer(runtime/results base data)
layer(runtime/scenario base options settings models data method)

layer(runtime/federation base storage method population results)

layer(strategies base kernels models data storage method training)

layer(actors/protocol data population training federation)
layer(actors/scheduler federation protocol)
layer(actors/compute base method training federation protocol)
layer(actors/nodes base kernels method results federation transport protocol)
layer(actors/parties base storage method results federation compute)
layer(actors/run base kernels settings models data modules storage method population training results federation scenario transport protocol scheduler parties compute nodes)

layer(tools/charts)
layer(tools/study base formats results scenario charts)
layer(tools/live base results study)
layer(tools/cli base formats kernels options settings models data method training scenario run study live)

target_link_libraries(mneme_transport PRIVATE OpenSSL::SSL)
target_link_libraries(mneme_formats PRIVATE ZLIB::ZLIB nlohmann_json::nlohmann_json)
target_link_libraries(mneme_modules PRIVATE ZLIB::ZLIB nlohmann_json::nlohmann_json)
target_link_libraries(mneme_data PRIVATE JPEG::JPEG PNG::PNG ZLIB::ZLIB LibLZMA::LibLZMA)
target_link_libraries(mneme_storage PRIVATE SQLite::SQLite3 nlohmann_json::nlohmann_json)
target_link_libraries(mneme_results PRIVATE nlohmann_json::nlohmann_json ZLIB::ZLIB)
target_compile_definitions(mneme_results PUBLIC MNEME_VERSION="${PROJECT_VERSION}")
target_include_directories(mneme_scenario SYSTEM PUBLIC ${TOMLPLUSPLUS_INCLUDE})
target_link_libraries(mneme_scenario PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(mneme_protocol PUBLIC CAF::core)
target_link_libraries(mneme_strategies PRIVATE nlohmann_json::nlohmann_json ICU::uc)
target_link_libraries(mneme_run PRIVATE nlohmann_json::nlohmann_json)
target_link_libraries(mneme_study PRIVATE SQLite::SQLite3 nlohmann_json::nlohmann_json)
target_include_directories(mneme_live SYSTEM PRIVATE ${HTTPLIB_INCLUDE})
target_link_libraries(mneme_live PRIVATE ${HTTPLIB_LIBRARY})
target_link_libraries(mneme_cli PUBLIC mneme_command_line PRIVATE nlohmann_json::nlohmann_json)

# What only reads, checks, carries and writes is compiled for a short build; what computes or decides while a run goes on
# has the preset's -O3. Methods call kernels and LibTorch, and their own loops are vectorised.
foreach(name IN ITEMS options settings transport modules scenario results nodes run strategies charts study live cli)
  target_compile_options(mneme_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endforeach()
target_compile_options(mneme_strategies PRIVATE $<$<CONFIG:Release>:-ftree-vectorize>)
