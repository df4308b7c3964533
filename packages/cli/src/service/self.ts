// shell: the files that this program is
/**
 * How this program starts itself. Here as it runs from its sources; `tools/pack/packed-self.ts`
 * stands in its place where the program is bundled.
 */
import { parseNested } from '@megaplane/base/nested-json';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A command line with its environment. */
export interface OwnCommand {
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
}

const ENTRY = join(import.meta.dirname, '..', 'main.ts');

/** The version of this program. */
export function ownVersion(): string {
  const file = join(import.meta.dirname, '..', '..', 'package.json');
  const manifest: unknown = parseNested(readFileSync(file, 'utf8'));
  return (manifest as { readonly version: string }).version;
}

/** What runs this program with `args` below an engine with `flags`. */
export function ownCommand(
  flags: readonly string[],
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): OwnCommand {
  return { command: [process.execPath, ...flags, ENTRY, ...args], env };
}
