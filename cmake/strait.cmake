# SPDX-License-Identifier: Apache-2.0
# One target per folder. A folder is visible to another only through a link: its headers are reached by a link in
# build/inc/<module>/ that is an include path of that module alone, so a wrong-way include does not compile.

set(STRAIT_INC ${CMAKE_BINARY_DIR}/inc)

add_library(strait_flags INTERFACE)
target_compile_options(strait_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wthread-safety>)  # base/mutex.hpp
if(STRAIT_SANITIZE)
  target_compile_options(strait_flags INTERFACE -fsanitize=${STRAIT_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(strait_flags INTERFACE -fsanitize=${STRAIT_SANITIZE})
  if(STRAIT_SANITIZE MATCHES "undefined")
    # vptr: tries an address by writing it to a new pipe, and takes "no more descriptors" for "no object there". Tests
    # that use up the descriptors would all fail.
    target_compile_options(strait_flags INTERFACE -fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code confuses the flow analysis (std::optional is "uninitialized"); the other lanes keep the warning.
    target_compile_options(strait_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(STRAIT_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(strait_flags INTERFACE -Wno-tsan)  # fences are used where TSan also sees the atomics
  endif()
endif()

if(STRAIT_FUZZ)
  # libFuzzer is steered by the branches of the code under test, so that is compiled with its counters too.
  target_compile_options(strait_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# strait_unity(target): with STRAIT_UNITY its files are compiled several at a time, in half the time. Names in anonymous
# namespaces are therefore unique within a folder.
function(strait_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STRAIT_UNITY} UNITY_BUILD_BATCH_SIZE 24)
endfunction()

function(strait_link_header module path source)
  get_filename_component(folder ${STRAIT_INC}/${module}/${path} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${source} ${STRAIT_INC}/${module}/${path} SYMBOLIC)
endfunction()

# strait_headers(name path... [LINKS module...]): public headers as an interface target strait_<name>.
function(strait_headers name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_library(strait_${name} INTERFACE)
  set_property(GLOBAL APPEND PROPERTY STRAIT_HEADER_SETS ${name})
  set_property(GLOBAL PROPERTY STRAIT_HEADERS_${name} ${ARG_UNPARSED_ARGUMENTS})
  foreach(path ${ARG_UNPARSED_ARGUMENTS})
    strait_link_header(${name} ${path} ${PROJECT_SOURCE_DIR}/include/${path})
  endforeach()
  target_include_directories(strait_${name} INTERFACE ${STRAIT_INC}/${name})
  foreach(link ${ARG_LINKS})
    target_link_libraries(strait_${name} INTERFACE strait_${link})
  endforeach()
endfunction()

# strait_module(path SOURCES ... LINKS ... [TESTS ...] [TEST_LINKS ...]): the folder src/<path> as static library
# strait_<path with _>, and its unit tests as one program.
function(strait_module path)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;TESTS;TEST_LINKS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  strait_link_header(${name} ${path} ${PROJECT_SOURCE_DIR}/src/${path})
  add_library(strait_${name} STATIC ${ARG_SOURCES})
  target_include_directories(strait_${name} PUBLIC ${STRAIT_INC}/${name})
  target_link_libraries(strait_${name} PUBLIC ${ARG_LINKS} PRIVATE strait_flags)
  strait_unity(strait_${name})
  set_property(GLOBAL APPEND PROPERTY STRAIT_MODULES ${path})
  if(STRAIT_TESTS AND ARG_TESTS)
    strait_test(strait_${name}_test SOURCES ${ARG_TESTS} LINKS strait_${name} ${ARG_TEST_LINKS} LABEL unit)
  endif()
endfunction()

# strait_shared(target name map): the library lib<name>.so, of which only what the version script lists is visible.
function(strait_shared target name map)
  target_link_options(${target} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${map})
  if(NOT STRAIT_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${map}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
endfunction()

# strait_stays_loaded(target): a library that dlclose does not unload. Software devices have threads and handlers that run
# its code, and tables (soft/kernel) that belong to the process, not to who loaded it first.
function(strait_stays_loaded target)
  target_link_options(${target} PRIVATE LINKER:-z,nodelete)
endfunction()

# strait_stand_in(target FILE name MAP map [FOLDER below] [MODULES path...] [SOURCES ...] [LINKS ...] [ALIASES name...]): a vendor's library
# in software, under the vendor's own file name, which is also its soname. It is built from the objects of the MODULES
# (folders with a strait_module()) and from SOURCES, shows what the version script lists, and finds libstrait-soft.so one
# folder up. Nothing links it: programs find it through LD_LIBRARY_PATH, as `strait run --accelerators` sets it.
# Unit tests load it by path: strait_stand_in_test(test target...) tells a test STRAIT_STAND_INS, the folder.
function(strait_stand_in target)
  cmake_parse_arguments(ARG "" "FILE;MAP;FOLDER" "MODULES;SOURCES;LINKS;ALIASES" ${ARGN})
  set(folder strait)
  set(up "$ORIGIN;$ORIGIN/..")
  if(ARG_FOLDER)  # another edition of a library, which a run puts before the first
    set(folder strait/${ARG_FOLDER})
    set(up "$ORIGIN/..;$ORIGIN/../..")
  endif()
  add_library(${target} SHARED ${ARG_SOURCES})
  foreach(path ${ARG_MODULES})
    string(REPLACE "/" "_" module ${path})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:strait_${module}>)
    target_link_libraries(${target} PRIVATE $<TARGET_PROPERTY:strait_${module},LINK_LIBRARIES>)
    target_include_directories(${target} PRIVATE ${STRAIT_INC}/${module})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LINKS} strait_flags strait_soft Threads::Threads)
  target_link_options(${target} PRIVATE LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_MAP})
  strait_stays_loaded(${target})
  if(NOT STRAIT_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${ARG_FILE} SUFFIX ""
    LINKER_LANGUAGE CXX
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_MAP}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/${folder}
    BUILD_RPATH "${up}"
    INSTALL_RPATH "${up}")
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/${folder})
  foreach(alias ${ARG_ALIASES})
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink ${ARG_FILE} ${CMAKE_BINARY_DIR}/lib/strait/${alias})
    install(FILES ${CMAKE_BINARY_DIR}/lib/strait/${alias} DESTINATION ${CMAKE_INSTALL_LIBDIR}/strait)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY STRAIT_STAND_INS ${target})
endfunction()

function(strait_stand_in_test test)
  add_dependencies(${test} ${ARGN})
  target_compile_definitions(${test} PRIVATE STRAIT_STAND_INS="${CMAKE_BINARY_DIR}/lib/strait")
endfunction()

# strait_test(name SOURCES ... LINKS ... [TIMEOUT s] [PROCESSORS n] [LABEL l]): a GoogleTest program; every test is a ctest test. The
# label is what `ctest -L` selects by: "unit" beside the code, otherwise the name of the folder.
function(strait_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABEL;PROCESSORS;FILTER" "SOURCES;LINKS" ${ARGN})
  if(NOT ARG_FILTER)
    set(ARG_FILTER "*")
  endif()
  if(NOT ARG_LABEL)
    get_filename_component(ARG_LABEL ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} strait_flags GTest::gtest GTest::gtest_main)
  strait_unity(${name})
  if(NOT ARG_LABEL STREQUAL "device")  # there headers are the code under test
    target_compile_options(${name} PRIVATE ${STRAIT_TEST_FLAGS})
  endif()
  include(GoogleTest)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "${ARG_FILTER}" PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_LABEL}
    PROCESSORS ${ARG_PROCESSORS})
endfunction()

# strait_fuzz(name SOURCES ... LINKS ...): a libFuzzer program, run by `./dev fuzz` and the lane `fuzz`. Its committed
# corpus is the folder corpus/<name> beside the CMakeLists.txt, which must not be empty: a target that starts from
# nothing spends its seconds in CI on finding the first valid byte.
function(strait_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  file(GLOB corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}/*)
  if(NOT corpus)
    message(FATAL_ERROR "fuzz target ${name}: ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name} is empty")
  endif()
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)  # all of them, without the rest of the house
  endif()
  add_executable(fuzz_${name} ${ARG_SOURCES})
  add_dependencies(fuzzers fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LINKS} strait_flags)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz OUTPUT_NAME ${name})
endfunction()
