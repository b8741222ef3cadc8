# What `cmake --install` puts where, and the package that find_package(bitwitness) reads. Headers lie in a folder of the
# version, so that several versions can stand beside each other.
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/bitwitness")
set(headers_folder "${CMAKE_INSTALL_INCLUDEDIR}/${BITWITNESS_HEADERS}")

install(DIRECTORY decoders DESTINATION "${headers_folder}" FILES_MATCHING PATTERN "*.hpp")
install(FILES "${PROJECT_BINARY_DIR}/generated/decoders/version.hpp" DESTINATION "${headers_folder}/decoders")
install(TARGETS bitwitness_decoders EXPORT bitwitness_decoders_targets)
install(EXPORT bitwitness_decoders_targets NAMESPACE bitwitness:: DESTINATION "${package_folder}"
  FILE bitwitnessDecodersTargets.cmake)

if(BITWITNESS_HARNESS)
  install(DIRECTORY harness DESTINATION "${headers_folder}" FILES_MATCHING PATTERN "*.hpp"
    PATTERN "cli" EXCLUDE PATTERN "runtime" EXCLUDE PATTERN "toml_reader.hpp" EXCLUDE
    PATTERN "pe_*.hpp" EXCLUDE PATTERN "image_impl.hpp" EXCLUDE PATTERN "report_objects.hpp" EXCLUDE PATTERN "json_place.hpp" EXCLUDE)
  install(TARGETS bitwitness_harness bitwitness_targets EXPORT bitwitness_harness_targets)
  install(EXPORT bitwitness_harness_targets NAMESPACE bitwitness:: DESTINATION "${package_folder}"
    FILE bitwitnessHarnessTargets.cmake)
  install(FILES scripts/cmake/BitwitnessFindLibrary.cmake DESTINATION "${package_folder}")
  install(TARGETS bitwitness)
  install(FILES "${PROJECT_BINARY_DIR}/stand_ins/stand_in_x87.exe" "${PROJECT_BINARY_DIR}/stand_ins/stand_in_sse2.exe"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bitwitness/stand_ins")
  install(FILES "${PROJECT_BINARY_DIR}/documents/bitwitness.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${PROJECT_BINARY_DIR}/documents/bitwitness.bash" RENAME bitwitness
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${PROJECT_BINARY_DIR}/documents/bitwitness.zsh" RENAME _bitwitness
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${PROJECT_BINARY_DIR}/documents/bitwitness.fish"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()

configure_package_config_file(scripts/cmake/bitwitnessConfig.cmake.in
  "${PROJECT_BINARY_DIR}/bitwitnessConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bitwitnessConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bitwitnessConfig.cmake" "${PROJECT_BINARY_DIR}/bitwitnessConfigVersion.cmake"
  DESTINATION "${package_folder}")
