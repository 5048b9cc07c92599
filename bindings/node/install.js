// SPDX-License-Identifier: BSD-2-Clause
// What `npm install` runs: builds the addons by node-gyp, unless they are here already, as where CMake installed the package.
'use strict';

const {spawnSync} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const addons = ['usdt_tracing.node', 'usdt_provider.node'];
if (addons.every((name) => fs.existsSync(path.join(__dirname, name)))) process.exit(0);

// Node.js comes with its headers; node-gyp would download them.
const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
const headers = [prefix, '/usr'].find((dir) => fs.existsSync(path.join(dir, 'include/node/node_api.h')));
const gyp = process.env.npm_config_node_gyp;
const command = gyp ? [process.execPath, gyp] : ['node-gyp'];
const words = [...command.slice(1), 'rebuild', ...(headers ? [`--nodedir=${headers}`] : [])];
const {status, error} = spawnSync(command[0], words, {cwd: __dirname, stdio: 'inherit'});
if (error) console.error(`usdt: ${error.message}`);
process.exit(status ?? 1);
