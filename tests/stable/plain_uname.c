/* SPDX-License-Identifier: BSD-2-Clause */
/* For LD_PRELOAD: the kernel's release without what a builder appends to it, which recordings would keep for ever. */
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

int uname(struct utsname* name) {
  const long result = syscall(SYS_uname, name);
  if (result == 0) name->release[strspn(name->release, "0123456789.")] = '\0';
  return (int)result;
}
