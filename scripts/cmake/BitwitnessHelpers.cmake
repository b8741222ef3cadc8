# What every target of this project shares, and the few helpers that declare one.
include(CheckCXXCompilerFlag)

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
  target_include_directories(bitwitness_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  target_link_libraries(bitwitness_${name} PRIVATE "$<BUILD_INTERFACE:bitwitness_private>")
endfunction()

# bitwitness_require(VARIABLE PACKAGE [HINT]): stops the configuration with the Debian package to install.
function(bitwitness_require variable package)
  if(NOT ${variable})
    message(FATAL_ERROR "bitwitness needs ${package}: install it (Debian: apt-get install ${package}) and configure again")
  endif()
endfunction()
