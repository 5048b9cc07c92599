# SPDX-License-Identifier: BSD-2-Clause
# usdt_add_bpf(TARGET SOURCE [LIBBPF_COMPAT]): compiles SOURCE (x.bpf.c) with clang -target bpf and makes the INTERFACE
# library TARGET whose include directory holds x.bpf.hpp with `std::span<const std::byte> x_object()`: the object as bytes.
# LIBBPF_COMPAT: <bpf/usdt.bpf.h> is ours, for programs written against libbpf's.
# No vmlinux.h is needed; no compiler is needed at run time.
find_program(USDT_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 REQUIRED)
find_program(USDT_LLVM_STRIP NAMES llvm-strip llvm-strip-14 llvm-strip-15 llvm-strip-16 llvm-strip-17 llvm-strip-18
                                   llvm-strip-19)
set(USDT_BPF_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR})
if(NOT DEFINED USDT_BPF_INCLUDE_DIR)
  set(USDT_BPF_INCLUDE_DIR ${CMAKE_CURRENT_LIST_DIR}/../bpf/include)
endif()

function(usdt_add_bpf target source)
  cmake_parse_arguments(ARG "LIBBPF_COMPAT" "" "" ${ARGN})
  get_filename_component(stem ${source} NAME)
  string(REGEX REPLACE "\\.bpf\\.c$" "" stem ${stem})
  get_filename_component(source ${source} ABSOLUTE)
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(object ${dir}/${stem}.bpf.o)
  set(header ${dir}/${stem}.bpf.hpp)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(bpf_arch arm64)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^i[3-6]86$")
    set(bpf_arch i386)
  else()
    set(bpf_arch x86)
  endif()
  set(triple_dir "")
  if(CMAKE_LIBRARY_ARCHITECTURE)
    set(triple_dir -idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  endif()
  set(include_dirs -I${USDT_BPF_INCLUDE_DIR})
  if(ARG_LIBBPF_COMPAT)
    list(PREPEND include_dirs -I${USDT_BPF_INCLUDE_DIR}/usdt/bpf/compat)
  endif()
  set(strip true)
  if(USDT_LLVM_STRIP)
    set(strip ${USDT_LLVM_STRIP})
  endif()
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${USDT_CLANG} -target bpf -mcpu=v3 -D__TARGET_ARCH_${bpf_arch} -g -O2 -Wall -Werror ${triple_dir}
            ${include_dirs} -MD -MF ${object}.d -c ${source} -o ${object}
    COMMAND ${strip} -g ${object}
    DEPENDS ${source} DEPFILE ${object}.d VERBATIM COMMENT "BPF ${stem}.bpf.o")
  add_custom_command(
    OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -DOBJECT=${object} -DHEADER=${header} -DNAME=${stem}
            -P ${USDT_BPF_MODULE_DIR}/EmbedObject.cmake
    DEPENDS ${object} ${USDT_BPF_MODULE_DIR}/EmbedObject.cmake VERBATIM)
  add_custom_target(${target}_build DEPENDS ${header})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_build)
  target_include_directories(${target} INTERFACE ${dir})
endfunction()
