# SPDX-License-Identifier: BSD-2-Clause
# usdt_add_bpf(TARGET SOURCE... [INCLUDES dir...] [DEFINES NAME[=value]...] [OPTIONS option...] [WERROR] [LIBBPF_COMPAT])
#
# Compiles each SOURCE (x.bpf.c) with `clang -target bpf -O2 -g -Wall` and makes the INTERFACE library TARGET, whose include
# directory holds x.bpf.hpp with `std::span<const std::byte> x_object()`: the object as bytes. SOURCES may be written before
# the sources. Relative paths are the caller's.
# INCLUDES, DEFINES, OPTIONS: for clang, in this order, INCLUDES before the headers of this project.
# WERROR: warnings are errors (as they are everywhere with USDT_WERROR).
# LIBBPF_COMPAT: <bpf/usdt.bpf.h> is ours, for programs written against libbpf's.
# No vmlinux.h is needed, and no compiler at run time. clang is looked for by the first call.
if(NOT DEFINED USDT_BPF_INCLUDE_DIR)
  set(USDT_BPF_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/../bpf/include)
endif()
# A function is known everywhere, a variable only below: the parent of a subproject calls usdt_add_bpf(), too.
set_property(GLOBAL PROPERTY USDT_BPF_INCLUDE_DIR ${USDT_BPF_INCLUDE_DIR})

function(usdt_bpf_object target source object)
  get_property(headers GLOBAL PROPERTY USDT_BPF_INCLUDE_DIR)
  set(flags "")
  foreach(include IN LISTS ARG_INCLUDES)
    cmake_path(ABSOLUTE_PATH include BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND flags -I${include})
  endforeach()
  if(ARG_LIBBPF_COMPAT)
    list(APPEND flags -I${headers}/usdt/bpf/compat)
  endif()
  list(APPEND flags -I${headers} -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)  # BTF names the source of each line
  if(CMAKE_LIBRARY_ARCHITECTURE)
    list(APPEND flags -idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND flags -D__TARGET_ARCH_arm64)
  elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "riscv64")
    list(APPEND flags -D__TARGET_ARCH_riscv)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^i[3-6]86$")
    list(APPEND flags -D__TARGET_ARCH_i386)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|x64|amd64|AMD64)$")
    list(APPEND flags -D__TARGET_ARCH_x86)
  else()
    message(FATAL_ERROR "no BPF programs for ${CMAKE_SYSTEM_PROCESSOR}: see bpf/include/usdt/bpf/pt_regs.h")
  endif()
  if(ARG_WERROR OR USDT_WERROR)
    list(APPEND flags -Werror)
  endif()
  list(TRANSFORM ARG_DEFINES PREPEND -D)
  set(strip true)
  if(USDT_LLVM_STRIP)
    set(strip ${USDT_LLVM_STRIP})
  endif()
  set(launcher "")
  if(CMAKE_C_COMPILER_LAUNCHER)  # such as ccache, for which the directory is no part of it: its debug information is stripped
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
  cmake_path(GET object FILENAME name)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${launcher} ${USDT_CLANG} -target bpf -mcpu=v3 -g -O2 -Wall ${flags} ${ARG_DEFINES} ${ARG_OPTIONS}
            -MD -MF ${object}.d -c ${source} -o ${object}
    # Of labels and of relocations between debug sections libbpf only reads that they are there, which takes it half its time.
    COMMAND ${strip} -g --wildcard --strip-symbol=LBB* --remove-section=.rel.BTF.ext ${object}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "BPF ${name}")
endfunction()

function(usdt_add_bpf target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "LIBBPF_COMPAT;WERROR" "" "SOURCES;INCLUDES;DEFINES;OPTIONS")
  set(sources ${ARG_UNPARSED_ARGUMENTS} ${ARG_SOURCES})
  if(NOT sources)
    message(FATAL_ERROR "usdt_add_bpf(${target}): no source")
  endif()
  find_program(USDT_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
  find_program(USDT_LLVM_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-15 llvm-strip-16 llvm-strip-17 llvm-strip-18
                                     llvm-strip-19)
  if(NOT USDT_CLANG)
    message(FATAL_ERROR "usdt_add_bpf(${target}): BPF programs are compiled with clang, which was not found; install it, or "
                        "set USDT_CLANG to its path")
  endif()
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(embed ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/EmbedObject.cmake)
  file(MAKE_DIRECTORY ${dir})
  set(headers "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    cmake_path(GET source FILENAME stem)
    string(REGEX REPLACE "\\.bpf\\.c$" "" stem ${stem})
    set(object ${dir}/${stem}.bpf.o)
    set(header ${dir}/${stem}.bpf.hpp)
    usdt_bpf_object(${target} ${source} ${object})
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DOBJECT=${object} -DHEADER=${header} -DNAME=${stem} -P ${embed}
      DEPENDS ${object} ${embed} VERBATIM)
    list(APPEND headers ${header})
  endforeach()
  add_custom_target(${target}_build DEPENDS ${headers})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_build)
  target_include_directories(${target} INTERFACE ${dir})
endfunction()
