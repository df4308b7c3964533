// shell: programs and times of files
/**
 * What the scripts of `envtest` run: a pack of the sources. `tools/pack/packed-launched.ts` stands
 * in its place where the program is bundled, which is a pack already.
 */
import { execFileSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** What stands in the directory beside the scripts. */
export const PACK_FILES: readonly string[] = ['index.json', 'text'];

/** Writes them to `dir`; `root` is the directory of the packages. Throws what the writer said. */
export function writePackFiles(dir: string, version: string, root: string): void {
  const writer = join(root, 'cli/src/pack/write-pack.ts');
  const flags = ['--disable-warning=ExperimentalWarning', writer, dir, version];
  execFileSync(process.execPath, flags, { stdio: 'pipe' });
}

/** When a source was last changed: whoever works on them gets a pack of what they are now. */
export function newestSource(root: string): number {
  const files = globSync('*/src/**/*.ts', { cwd: root });
  return Math.max(0, ...files.map((file) => statSync(join(root, file)).mtimeMs));
}

/** The words of a script that becomes `command`, with what was written to `place`. */
export function launchedWords(
  place: string,
  flags: readonly string[],
  command: string,
  root: string,
): readonly string[] {
  return [process.execPath, ...flags, join(root, 'cli/bin/packed.cjs'), place, command];
}
