# SPDX-License-Identifier: Apache-2.0
# check_headers: compiles headers alone, with no more include paths than the module they belong to have. A header that its
# own source file begins with is compiled alone there: two thirds of them, which would be compiled again for nothing.

# strait_check_header(module header suffix): one more source for that module's check; `header` as an include line has it.
function(strait_check_header module header suffix)
  # "a/b_c.hpp" and "a_b/c.hpp" are two headers.
  string(REPLACE "/" "-" id "${header}")
  set(source ${CMAKE_BINARY_DIR}/headers/${id}${suffix})
  # Twice: it must also bear being included again.
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  if(NOT TARGET check_headers_${module})
    add_library(check_headers_${module} OBJECT EXCLUDE_FROM_ALL ${source})
    target_link_libraries(check_headers_${module} PRIVATE strait_${module} strait_flags)
    add_dependencies(check_headers check_headers_${module})
  else()
    target_sources(check_headers_${module} PRIVATE ${source})
  endif()
  if(header MATCHES "test")
    target_link_libraries(check_headers_${module} PRIVATE GTest::gtest)
  endif()
endfunction()

# strait_check_headers(): the target check_headers, for all modules known so far.
function(strait_check_headers)
  add_custom_target(check_headers)
  get_property(modules GLOBAL PROPERTY STRAIT_MODULES)
  list(SORT modules ORDER DESCENDING)  # "rail/mlx5" is asked before "rail"
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/*.hpp
    ${PROJECT_SOURCE_DIR}/src/*.h)
  if(NOT STRAIT_HAS_VERBS)
    list(FILTER headers EXCLUDE REGEX "^rail/verbs/")
  endif()
  foreach(header ${headers})
    string(REGEX REPLACE "\\.hpp$" ".cpp" source ${PROJECT_SOURCE_DIR}/src/${header})
    if(EXISTS ${source})
      file(STRINGS ${source} first REGEX "^#include" LIMIT_COUNT 1)
      if(first STREQUAL "#include \"${header}\"")
        continue()
      endif()
    endif()
    set(owner "")
    foreach(module ${modules})
      string(FIND "${header}" "${module}/" at)
      if(at EQUAL 0)
        string(REPLACE "/" "_" owner ${module})
        break()
      endif()
    endforeach()
    if(owner)
      strait_check_header(${owner} ${header} .cpp)
    elseif(header MATCHES "^soft/preload/")
      strait_check_header(host ${header} .cpp)  # no module: a library of its own, without the house's flags
    elseif(header MATCHES "^tool/")
      strait_check_header(commands ${header} .cpp)  # the tool is no module, and nobody may include it
    else()
      add_custom_command(TARGET check_headers
        COMMAND ${CMAKE_COMMAND} -E echo "src/${header} belongs to no module: its folder needs a strait_module()"
        COMMAND ${CMAKE_COMMAND} -E false)
    endif()
  endforeach()

  get_property(sets GLOBAL PROPERTY STRAIT_HEADER_SETS)
  file(GLOB_RECURSE unchecked CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*)
  if(NOT STRAIT_HAS_VERBS)
    list(FILTER unchecked EXCLUDE REGEX "^strait/rdmaxcel")
  endif()
  foreach(name ${sets})
    get_property(paths GLOBAL PROPERTY STRAIT_HEADERS_${name})
    foreach(path ${paths})
      set(headers ${path})
      if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/include/${path})
        file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
          ${PROJECT_SOURCE_DIR}/include/${path}/*.hpp)
      endif()
      list(REMOVE_ITEM unchecked ${headers})
      list(FILTER headers EXCLUDE REGEX "rdmaxcel/cuda.hpp$")  # for CUDA compilers
      foreach(header ${headers})
        strait_check_header(${name} ${header} .cpp)
        if(header MATCHES "\\.h$" AND NOT name MATCHES "^(rdmaxcel|cxi)$")  # those two are C++
          strait_check_header(${name} ${header} .c)  # the C interfaces must also be C
        endif()
      endforeach()
    endforeach()
  endforeach()
  if(unchecked)
    message(FATAL_ERROR "public headers that no strait_headers() names, and so nobody compiles alone: ${unchecked}")
  endif()
endfunction()
