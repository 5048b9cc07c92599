# SPDX-License-Identifier: BSD-2-Clause
# usdt_module(NAME SOURCES... [HEADERS public headers...] LINK earlier modules and libraries... [ALONE sources...] [COLD]): one
# stage of the pipeline. ALONE: see usdt_unity(). COLD: with AddressSanitizer it is not optimised, which is nearly half of
# what the compiler does then; for those that no test waits for there.
# What it may include is what it links, and nothing else compiles: each stage has an include root of its own in the build
# tree, rooms/NAME, with links to its directory (`#include "NAME/..."`) and to its HEADERS (`#include "usdt/..."`). Public
# headers that no stage names are plain values, and belong to `base`.
# usdt_test(NAME SOURCES... LINK... [ALONE sources...] [LABEL name] [TIMEOUT seconds] [TOGETHER suite] [LOCK name] [SERIAL]
# [APART]): one GoogleTest program; its cases become CTest tests (with sanitizers one, unless they are APART: for cases that
# need a process of their own), labelled "unit" unless said otherwise. TOGETHER: the cases of this suite are one CTest test,
# for they share what compilers make. LOCK: of all cases with this name one runs at a time, beside other tests. SERIAL: for
# tests that measure time. ALONE: see usdt_unity().

add_library(usdt_options INTERFACE)
target_compile_options(usdt_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                              $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
# GCC 12 sees overlapping copies in any `"text" + std::string` (GCC bug 105651).
target_compile_options(usdt_options INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>,$<COMPILE_LANGUAGE:CXX>>:-Wno-restrict>)
# Clang 19 misses the members that designated initialisers leave out, which is what those are for (LIBBPF_OPTS()).
target_compile_options(usdt_options INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,19>,$<COMPILE_LANGUAGE:CXX>>:-Wno-missing-designated-field-initializers>)
if(USDT_WERROR)
  target_compile_options(usdt_options INTERFACE -Werror)
endif()
if(USDT_SANITIZE)
  target_compile_options(usdt_options INTERFACE -fsanitize=${USDT_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  # GCC's manual recommends not to make errors of this warning beside -fsanitize, which makes false ones of it.
  target_compile_options(usdt_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(usdt_options INTERFACE -fsanitize=${USDT_SANITIZE})
  # Coverage leads fuzzers, and nothing else reads it: who is in none of them, with USDT_NOT_FUZZED, is compiled without.
  if(USDT_SANITIZE MATCHES "fuzzer-no-link")
    define_property(TARGET PROPERTY USDT_NOT_FUZZED INITIALIZE_FROM_VARIABLE USDT_NOT_FUZZED)
    target_compile_options(usdt_options INTERFACE
      $<$<BOOL:$<TARGET_PROPERTY:USDT_NOT_FUZZED>>:-fno-sanitize=fuzzer-no-link>)
  endif()
endif()

# usdt_headers(TARGET KIND [LINK libraries...] [MORE headers...]): with USDT_PCH, TARGET has the usual headers and MORE,
# which are those of LINK, precompiled once for all targets of its KIND. Its compiler options must be set before.
function(usdt_headers target kind)
  if(NOT USDT_PCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK;MORE" ${ARGN})
  set(common usdt_${kind}_headers)
  if(NOT TARGET ${common})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${common}.cpp CONTENT "int main() {}\n")
    if(kind MATCHES "module$")  # precompiled headers know whether they are of a program or of a library
      add_library(${common} OBJECT ${PROJECT_BINARY_DIR}/${common}.cpp)
    else()
      add_executable(${common} ${PROJECT_BINARY_DIR}/${common}.cpp)
    endif()
    target_link_libraries(${common} PRIVATE usdt_options ${ARG_LINK})
    get_target_property(options ${target} COMPILE_OPTIONS)
    if(options)
      target_compile_options(${common} PRIVATE ${options})
    endif()
    target_precompile_headers(${common} PRIVATE
      <algorithm> <array> <filesystem> <functional> <map> <memory> <optional> <set> <span> <string> <string_view>
      <unordered_map> <variant> <vector> <fmt/format.h> <tl/expected.hpp> ${ARG_MORE})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${common})
endfunction()

# usdt_unity(TARGET [ALONE sources...]): with USDT_UNITY, the sources of TARGET are compiled as one, which reads their headers
# once. ALONE are those with compiler options of their own, and those whose unnamed namespaces have names that are also in
# others', or hide or are hidden by theirs.
# (UNITY_BUILD of CMake does it in each build's own directory: ccache would not know what another build has compiled.)
function(usdt_unity target)
  if(NOT USDT_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(rest ${sources})
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(REMOVE_ITEM sources ${ARGN})
  if(NOT sources)
    return()
  endif()
  list(REMOVE_ITEM rest ${sources})
  set(all "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    string(APPEND all "#include \"${source}\"\n")
  endforeach()
  string(REPLACE "${PROJECT_SOURCE_DIR}/" "" which "${all}")  # the same name wherever the sources lie
  string(SHA256 which "${which}")  # another build may have others
  string(SUBSTRING ${which} 0 8 which)
  set(unity ${USDT_ROOMS}/unity/${target}_${which}.cpp)
  file(CONFIGURE OUTPUT ${unity} CONTENT "${all}" @ONLY)
  set_property(TARGET ${target} PROPERTY SOURCES ${rest} ${unity})
  # GCC takes what is included for a header: types of an unnamed namespace in it would be several.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

set_property(GLOBAL PROPERTY USDT_MODULES "")
set_property(GLOBAL PROPERTY USDT_STAGE_HEADERS usdt.hpp)  # is all of them, and no stage's
# Another build of the same sources may have made them: what it compiled is then known to ccache by the same names.
if(NOT USDT_ROOMS)
  set(USDT_ROOMS ${PROJECT_BINARY_DIR}/rooms)
  file(GLOB rooms ${USDT_ROOMS}/*)
  list(FILTER rooms EXCLUDE REGEX "/(unity|pages)$")  # sources: written again they would be compiled again
  if(rooms)
    file(REMOVE_RECURSE ${rooms})
  endif()
endif()

function(usdt_symlink to path)
  if(NOT EXISTS ${path})
    file(CREATE_LINK ${to} ${path} SYMBOLIC)
  endif()
endfunction()

function(usdt_symlink_headers stage)
  foreach(header IN LISTS ARGN)
    cmake_path(GET header PARENT_PATH directory)
    file(MAKE_DIRECTORY ${USDT_ROOMS}/${stage}/usdt/${directory})
    usdt_symlink(${PROJECT_SOURCE_DIR}/sdk/include/usdt/${header} ${USDT_ROOMS}/${stage}/usdt/${header})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY USDT_STAGE_HEADERS ${ARGN})
endfunction()

# The public headers that no stage has named. Called behind the last of them.
function(usdt_symlink_remaining_headers stage)
  file(GLOB_RECURSE remaining RELATIVE ${PROJECT_SOURCE_DIR}/sdk/include/usdt CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/sdk/include/usdt/*.hpp)
  get_property(named GLOBAL PROPERTY USDT_STAGE_HEADERS)
  list(REMOVE_ITEM remaining ${named})
  usdt_symlink_headers(${stage} ${remaining})
endfunction()

function(usdt_module name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;HEADERS;LINK;ALONE" ${ARGN})
  add_library(usdt_${name} STATIC ${ARG_SOURCES})
  file(MAKE_DIRECTORY ${USDT_ROOMS}/${name})
  usdt_symlink(${CMAKE_CURRENT_SOURCE_DIR} ${USDT_ROOMS}/${name}/${name})
  usdt_symlink_headers(${name} ${ARG_HEADERS})
  target_include_directories(usdt_${name} PUBLIC ${USDT_ROOMS}/${name})
  target_link_libraries(usdt_${name} PUBLIC ${ARG_LINK} PRIVATE usdt_options)
  usdt_unity(usdt_${name} ${ARG_ALONE})
  if(ARG_COLD AND USDT_SANITIZE MATCHES "address")
    target_compile_options(usdt_${name} PRIVATE -O0)
    usdt_headers(usdt_${name} cold_module)
  else()
    usdt_headers(usdt_${name} module)
  endif()
  set_property(GLOBAL APPEND PROPERTY USDT_MODULES usdt_${name})
endfunction()

# usdt_embed_bpf(MODULE BPF SOURCE): SOURCE of usdt_module(MODULE), one that is ALONE, includes the programs of
# usdt_add_bpf(BPF). The directory of their headers, which differs from build to build, is in no other's command: ccache knows
# those of another build at once.
function(usdt_embed_bpf module bpf source)
  add_dependencies(usdt_${module} ${bpf}_build)
  get_target_property(dir ${bpf} INTERFACE_INCLUDE_DIRECTORIES)
  set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES ${dir})
endfunction()

function(usdt_test name)
  cmake_parse_arguments(ARG "SERIAL;APART" "TIMEOUT;LABEL;TOGETHER;LOCK" "SOURCES;LINK;ALONE" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})  # "tests/..."
  target_link_libraries(${name} PRIVATE ${ARG_LINK} usdt_options usdt_test_places GTest::gtest_main GTest::gmock)
  # Of what is tested it matters how fast it is; optimising the tests is half of the compiler's work. What measures time, and
  # what has probes of its own, is compiled as everything else is; so are sources that are traced or make what is traced.
  set(others ${ARG_SOURCES})  # than tests
  list(FILTER others EXCLUDE REGEX "_test\\.cpp$")
  if(USDT_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  elseif(NOT ARG_LABEL STREQUAL speed AND NOT "${ARG_LINK}" MATCHES "usdt::provider")
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    set_property(SOURCE ${others} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
  endif()
  if(ARG_LABEL STREQUAL unit)  # what `./run test ROOM` builds
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME room)
    if(NOT TARGET unit_tests_${room})
      add_custom_target(unit_tests_${room})
    endif()
    add_dependencies(unit_tests_${room} ${name})
    add_dependencies(unit_tests ${name})
  endif()
  usdt_unity(${name} ${others} ${ARG_ALONE})
  usdt_headers(${name} test LINK GTest::gmock MORE <gmock/gmock.h> <gtest/gtest.h>)
  if(USDT_SANITIZE AND NOT ARG_APART)  # a start takes as long as many a test does: one CTest test is all of them
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS ${ARG_LABEL} RUN_SERIAL ${ARG_SERIAL})
  else()
    set(lock "")
    if(ARG_LOCK)
      set(lock RESOURCE_LOCK ${ARG_LOCK})
    endif()
    set(filter "")
    if(ARG_TOGETHER)
      add_test(NAME ${name}.${ARG_TOGETHER} COMMAND ${name} --gtest_filter=${ARG_TOGETHER}.*)
      set_tests_properties(${name}.${ARG_TOGETHER} PROPERTIES TIMEOUT 300 LABELS ${ARG_LABEL})
      set(filter TEST_FILTER -${ARG_TOGETHER}.*)
    endif()
    set(processors 1)
    if(ARG_LABEL STREQUAL unit AND NOT USDT_SANITIZE)  # `./run check` runs no others
      set(processors 2)  # of the four tests a processor that `./run test` runs: these compute, those that trace wait
    endif()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST ${filter}
      PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_LABEL} RUN_SERIAL ${ARG_SERIAL} PROCESSORS ${processors} ${lock})
  endif()
endfunction()
