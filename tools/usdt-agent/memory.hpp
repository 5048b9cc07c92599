// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace usdt_agent {

/// Makes the allocator keep little beside what is used. Called before there are threads.
void keep_memory_small();
/// Gives back what finding and planning took: free memory, and the pages of code and constants, which the kernel maps
/// again, out of its cache, as far as tracing uses them.
void release_memory();

}  // namespace usdt_agent
