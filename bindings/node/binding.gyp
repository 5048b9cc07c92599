# SPDX-License-Identifier: BSD-2-Clause
# The addons as `npm install` builds them, over the libraries that pkg-config finds. (CMakeLists.txt builds and installs them, too.)
{
  'target_defaults': {
    'defines': ['_GNU_SOURCE'],
    'cflags': ['-std=gnu11', '-fvisibility=hidden', '-Wall', '-Wextra'],
  },
  'targets': [
    {
      'target_name': 'usdt_tracing',
      'sources': ['src/asking.c', 'src/errors.c', 'src/events.c', 'src/listing.c', 'src/options.c', 'src/recordings.c', 'src/tables.c',
                  'src/tracing.c'],
      'cflags': ['<!@(pkg-config --cflags usdt-c)'],
      'libraries': ['<!@(pkg-config --libs usdt-c)', '-Wl,-rpath,<!(pkg-config --variable=libdir usdt-c)'],
    },
    {
      'target_name': 'usdt_provider',
      'sources': ['src/provider.c'],
      'cflags': ['<!@(pkg-config --cflags libusdt-provider)'],
      'libraries': ['<!@(pkg-config --libs libusdt-provider)', '-Wl,-rpath,<!(pkg-config --variable=libdir libusdt-provider)', '-lm'],
    },
  ],
}
