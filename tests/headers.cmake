# Makes the test `headers`: a source file for each header that includes nothing but it, twice.
function(weft_check_headers layer library)
  set(sources "")
  foreach(header ${ARGN})
    set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
    set(text "#include \"${header}\"\n#include \"${header}\"\n")
    file(CONFIGURE OUTPUT ${source} CONTENT "${text}" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    add_library(headers_of_${layer} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(headers_of_${layer} PRIVATE ${library})
    target_compile_options(headers_of_${layer} PRIVATE -O0 -g0)
    add_dependencies(headers headers_of_${layer})
  endif()
endfunction()

add_custom_target(headers)
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/include
  ${CMAKE_SOURCE_DIR}/include/weft/*.hpp)
weft_check_headers(weft weft_options ${headers})
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/tests
  ${CMAKE_SOURCE_DIR}/tests/support/*.hpp)
weft_check_headers(support weft_test_support ${headers})
foreach(layer ${weft_layers})
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src
    ${CMAKE_SOURCE_DIR}/src/${layer}/*.hpp)
  weft_check_headers(${layer} weft_${layer} ${headers})
endforeach()

add_test(NAME headers COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target headers)
set_tests_properties(headers PROPERTIES TIMEOUT 600 RUN_SERIAL ON)
