/**
 * The first code of the single executable, and of each of its threads: it finds the program's files
 * among the executable's assets, and gives them to each other as `require` does for files.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path/posix';
import { getAsset } from 'node:sea';
import { setFlagsFromString } from 'node:v8';
import { compileFunction, constants } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

interface Loaded {
  exports: unknown;
}

declare global {
  /** Which file a thread begins with; the program itself begins with `main.cjs`. */
  var MEGAPLANE_ENTRY: string | undefined;
}

const FLAGS = 'MEGAPLANE_ENGINE_FLAGS';
const own = createRequire(process.execPath);
const loaded = new Map<string, Loaded>();

function load(name: string): unknown {
  const known = loaded.get(name);
  if (known !== undefined) return known.exports;
  const filename = `megaplane:/${name}`;
  const parameters = ['exports', 'require', 'module', '__filename', '__dirname'];
  const run = compileFunction(getAsset(name, 'utf8'), parameters, {
    filename,
    // plug-ins of users are files
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const module: Loaded = { exports: {} };
  loaded.set(name, module);
  const demand = (asked: string): unknown =>
    asked.startsWith('.') ? load(join(dirname(name), asked)) : own(asked);
  run(module.exports, demand, module, filename, dirname(filename));
  return module.exports;
}

if (isMainThread) {
  const flags = process.env[FLAGS]?.split(' ') ?? [];
  for (const flag of flags) if (flag.startsWith('--')) setFlagsFromString(flag);
}
load(globalThis.MEGAPLANE_ENTRY ?? 'main.cjs');
