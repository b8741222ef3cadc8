# What every target of this project shares, and the few helpers that declare one.
include(GNUInstallDirs)

set(BITWITNESS_HEADERS "bitwitness-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")  # folder of the installed ones
configure_file("${PROJECT_SOURCE_DIR}/decoders/version.hpp.in" "${PROJECT_BINARY_DIR}/generated/decoders/version.hpp" @ONLY)

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Linked PRIVATE by our own targets only: nobody who uses the libraries inherits it. Floats are compared as bits, so the
# compiler may neither fuse nor reorder what the source says.
add_library(bitwitness_private INTERFACE)
target_compile_options(bitwitness_private INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -ffp-contract=off -fno-fast-math -fno-strict-aliasing)
if(BITWITNESS_WERROR)
  target_compile_options(bitwitness_private INTERFACE -Werror)
endif()
if(BITWITNESS_SANITIZE)
  target_compile_options(bitwitness_private INTERFACE
    -fsanitize=${BITWITNESS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(bitwitness_private INTERFACE -fsanitize=${BITWITNESS_SANITIZE})
endif()

# bitwitness_add_library(NAME SOURCES…): a library bitwitness_NAME with the alias bitwitness::NAME.
function(bitwitness_add_library name)
  add_library(bitwitness_${name} ${ARGN})
  add_library(bitwitness::${name} ALIAS bitwitness_${name})
  target_compile_features(bitwitness_${name} PUBLIC cxx_std_20)
  target_include_directories(bitwitness_${name} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/${BITWITNESS_HEADERS}>")
  set_target_properties(bitwitness_${name} PROPERTIES EXPORT_NAME "${name}")
  target_link_libraries(bitwitness_${name} PRIVATE "$<BUILD_INTERFACE:bitwitness_private>")
endfunction()

# bitwitness_require(VARIABLE PACKAGE): stops the configuration with the Debian package to install.
function(bitwitness_require variable package)
  if(NOT ${variable})
    message(FATAL_ERROR "bitwitness needs ${package}: install it (Debian: apt-get install ${package}) and configure again")
  endif()
endfunction()

# bitwitness_require_library(NAME HEADER PACKAGE): the imported target third_party::NAME, or the package to install.
include(BitwitnessFindLibrary)
function(bitwitness_require_library name header package)
  bitwitness_find_library("${name}" "${header}")
  bitwitness_require(third_party_${name}_FOUND "${package}")
endfunction()

# bitwitness_add_test(NAME LABEL SOURCES… [LIBRARIES TARGETS…]): a Catch2 program, and a CTest test of that name. LABEL is
# quick (seconds) or exhaustive (minutes). A test that says so with skip() and has not failed counts as skipped, never as
# passed; one that matches no case fails.
function(bitwitness_add_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LIBRARIES")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} bitwitness_test_main bitwitness_private)
  add_test(NAME ${name} COMMAND ${name} ${BITWITNESS_CATCH_OPTIONS})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()
