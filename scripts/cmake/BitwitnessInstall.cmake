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
  # The headers that a project may use, and what they include; the others are the library's own.
  foreach(header
    agreement chunk_digests comparison disassembly emulator error facts findings image known_differences machine
    merging operands plugins/decoder_shape plugins/external_decoder probe/inference probe/location probe/recognition
    probe/trace probe/trace_report recording refused_code replaying report report_html sha256 signature subject tally
    target values vectors/vector_file verification witness_run)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "harness/${header}.hpp" DESTINATION "${headers_folder}/harness/${folder}")
  endforeach()
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
