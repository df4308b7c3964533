/**
 * Makes what is shipped: `node tools/pack.ts WHAT... [--out DIR] [--arch x64|arm64]`.
 * What is made stands in `./dist` unless told otherwise; its paths are printed, one a line.
 */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ARCHITECTURES, packExecutable, type Architecture } from './pack/executable.ts';
import { packImage } from './pack/image.ts';
import { packNpm } from './pack/npm-package.ts';
import { packChart, packCompletions, packUnits } from './pack/plain-files.ts';

const USAGE =
  'usage: node tools/pack.ts WHAT... [--out DIR] [--arch x64|arm64]\n' +
  '  npm         megaplane-VERSION.tgz, for npm install\n' +
  '  executable  one file for Linux that needs no Node\n' +
  '  oci         an image as an OCI layout and as an archive of it\n' +
  '  helm        the chart\n' +
  '  systemd     units, to be unpacked at /\n' +
  '  completion  scripts for bash, zsh and fish\n';
const EXIT_USAGE = 2;

/** What is made of each word; a path each. */
const PACKERS: ReadonlyMap<string, (out: string, arch: Architecture) => Promise<string>> = new Map([
  ['npm', (out) => packNpm(out)],
  ['executable', packExecutable],
  ['oci', packImage],
  ['helm', packChart],
  ['systemd', packUnits],
  ['completion', packCompletions],
]);

function fail(text: string, exitCode: number): void {
  process.stderr.write(text);
  process.exitCode = exitCode;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: 'string', default: 'dist' },
      arch: { type: 'string', default: process.arch },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const arch = ARCHITECTURES.find((one) => one === values.arch);
  const unknown = positionals.find((word) => !PACKERS.has(word));
  if (unknown !== undefined || positionals.length === 0) {
    fail(
      `pack: ${unknown === undefined ? 'nothing' : `"${unknown}"`} to make\n${USAGE}`,
      EXIT_USAGE,
    );
    return;
  }
  if (arch === undefined) {
    fail(`pack: --arch: "${values.arch}" is none of ${ARCHITECTURES.join(', ')}\n`, EXIT_USAGE);
    return;
  }
  const out = resolve(values.out);
  mkdirSync(out, { recursive: true });
  for (const word of positionals) {
    process.stdout.write(`${await PACKERS.get(word)?.(out, arch)}\n`);
  }
}

try {
  await main();
} catch (error) {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const isUsage = code.startsWith('ERR_PARSE_ARGS');
  const text = error instanceof Error ? error.message : String(error);
  fail(`pack: ${text}\n${isUsage ? USAGE : ''}`, isUsage ? EXIT_USAGE : 1);
}
