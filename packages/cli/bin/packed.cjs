// Runs a program from a pack (src/pack/pack.ts says what stands in one): `node packed.cjs DIR
// COMMAND ...`. Each module is compiled under the name of its source, so that stack traces are
// those of the source.
'use strict';
const { openSync, readFileSync, readSync, renameSync, writeFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join } = require('node:path');
const { pathToFileURL } = require('node:url');
const { Script, constants } = require('node:vm');

const HEAD = '(function ($exports, $load, $meta, $include) { "use strict";';
/** Before the compiled code: the length of the table that says whose it is. */
const LENGTH_BYTES = 4;

/** The pack of a directory, with compiled code where the program `name` has left some. */
function openPack(dir, name = '') {
  const { version, entry, rows } = JSON.parse(readFileSync(join(dir, 'index.json'), 'utf8'));
  const texts = openSync(join(dir, 'text'));
  const codeFile = join(dir, `code-${name}`);
  const code = name === '' ? null : openCode(codeFile);
  const loaded = [];
  const scripts = [];
  /** Modules whose code was not there, or is of another runtime or other flags of it. */
  let compiled = 0;

  function load(number) {
    const known = loaded[number];
    if (known !== undefined) return known;
    const [file, start, length, isWide] = rows[number];
    if (start < 0) {
      const isNode = file.startsWith('node:');
      const outside = isNode ? process.getBuiltinModule(file) : createRequire(entry)(file);
      return (loaded[number] = withDefault(outside));
    }
    const given = (loaded[number] = {});
    const body = bytesOf(texts, start, length).toString(isWide ? 'utf16le' : 'latin1');
    const script = new Script(`${HEAD}${body}\n})`, {
      filename: file,
      columnOffset: -HEAD.length,
      cachedData: code?.(number),
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    scripts.push([number, script]);
    if (script.cachedDataRejected !== false) compiled++;
    const url = pathToFileURL(file).href;
    const worker = (of) => pathToFileURL(join(dir, `worker-${of}.cjs`));
    const meta = { url, filename: file, dirname: dirname(file), worker };
    script.runInThisContext()(given, load, meta, include);
    return given;
  }

  async function include(number) {
    return load(number);
  }

  /** Beside its place first: others may read it meanwhile. */
  function writeCode() {
    const data = scripts.map(([, script]) => script.createCachedData());
    let at = 0;
    const table = scripts.map(([number], of) => {
      const row = [number, at, data[of].length];
      at += data[of].length;
      return row;
    });
    const head = Buffer.from(JSON.stringify(table));
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(head.length);
    writeFileSync(`${codeFile}.${process.pid}`, Buffer.concat([length, head, ...data]));
    renameSync(`${codeFile}.${process.pid}`, codeFile);
  }

  const told = () => `compiled ${compiled} of ${scripts.length} modules\n`;
  return { version, load, writeCode, told };
}

/** Compiled code by the number of its module; null where there is none yet. */
function openCode(file) {
  let codes;
  try {
    codes = openSync(file);
  } catch {
    return null;
  }
  const length = bytesOf(codes, 0, LENGTH_BYTES).readUInt32LE();
  const start = LENGTH_BYTES + length;
  const table = JSON.parse(bytesOf(codes, LENGTH_BYTES, length).toString());
  const places = new Map(table.map(([number, at, size]) => [number, [start + at, size]]));
  return (number) => {
    const place = places.get(number);
    return place === undefined ? undefined : bytesOf(codes, ...place);
  };
}

function bytesOf(file, start, length) {
  const bytes = Buffer.allocUnsafeSlow(length);
  let at = 0;
  while (at < length) {
    const read = readSync(file, bytes, at, length - at, start + at);
    if (read === 0) throw new Error('the pack is cut off; remove its directory');
    at += read;
  }
  return bytes;
}

/** What `import x from` finds in a module that gives out one value. */
function withDefault(outside) {
  if ('default' in outside) return outside;
  return new Proxy(outside, {
    get: (from, name) => (name === 'default' ? from : from[name]),
  });
}

if (require.main === module) {
  const [dir, ...args] = process.argv.slice(2);
  // The first run of a program keeps what was compiled for those that follow.
  const isWriting = process.env.MEGAPLANE_WRITE_CODE === '1';
  delete process.env.MEGAPLANE_WRITE_CODE;
  const pack = openPack(dir, args[0]);
  pack
    .load(0)
    .runPacked(args, pack.version)
    .then((exitCode) => {
      if (isWriting) pack.writeCode();
      if (process.env.MEGAPLANE_DEBUG !== undefined) process.stderr.write(pack.told());
      process.exit(exitCode);
    });
}

module.exports = { openPack };
