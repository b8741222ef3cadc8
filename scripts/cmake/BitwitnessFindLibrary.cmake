# bitwitness_find_library(NAME HEADER): the imported target third_party::NAME, for libraries without a package file.
# Sets third_party_NAME_FOUND. The headers count as the system's, so that their warnings are not ours.
function(bitwitness_find_library name header)
  set(third_party_${name}_FOUND TRUE PARENT_SCOPE)
  if(TARGET third_party::${name})
    return()
  endif()
  find_path(BITWITNESS_${name}_INCLUDE_DIR "${header}")
  find_library(BITWITNESS_${name}_LIBRARY "${name}")
  mark_as_advanced(BITWITNESS_${name}_INCLUDE_DIR BITWITNESS_${name}_LIBRARY)
  if(NOT BITWITNESS_${name}_INCLUDE_DIR OR NOT BITWITNESS_${name}_LIBRARY)
    set(third_party_${name}_FOUND FALSE PARENT_SCOPE)
    return()
  endif()
  add_library(third_party::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(third_party::${name} PROPERTIES
    IMPORTED_LOCATION "${BITWITNESS_${name}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${BITWITNESS_${name}_INCLUDE_DIR}")
endfunction()
