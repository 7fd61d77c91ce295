# Precompiled headers: most of what a small file costs a compiler is the standard library's headers,
# so they are read once for all files with the same flags (a precompiled header is good for no
# others). Headers of the house are in none: that each stands alone is what the test `headers` shows.
set(weft_standard_headers <algorithm> <array> <bit> <chrono> <cstring> <deque> <functional> <map>
  <memory> <optional> <span> <string> <variant> <vector>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(weft_options INTERFACE -fpch-preprocess)  # or ccache could not see them
endif()

# weft_precompile(NAME HEADERS...) makes NAME, from which a target with its flags may reuse them.
function(weft_precompile name)
  set(empty ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "" @ONLY)
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE weft_options)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

weft_precompile(weft_headers ${weft_standard_headers})
weft_precompile(weft_pure_headers ${weft_standard_headers})
target_compile_options(weft_pure_headers PRIVATE -fno-exceptions)
