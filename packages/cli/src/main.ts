// shell: the entry of the `megaplane` command
import { parseNested } from '@megaplane/base/nested-json';
import { guarded } from '@megaplane/base/deferred';
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { beginWithHugePages } from './service/huge-pages.ts';
import { endWithParent } from './service/parent.ts';

beginWithHugePages(process.argv.slice(2));
endWithParent(process.env);
// Who read our words has gone (`megaplane ... | head`): the work goes on, and nothing is said.
for (const stream of [process.stdout, process.stderr])
  stream.on(
    'error',
    guarded(() => undefined),
  );
// Compiled code is kept between starts: it halves the time to the first answer.
enableCompileCache();

const { runCommandLine, EXIT_FAILED } = await import('./program.ts');

const manifest: unknown = parseNested(
  readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'),
);
const version = (manifest as { readonly version: string }).version;

try {
  process.exitCode = await runCommandLine(process.argv.slice(2), version);
} catch (error) {
  const isVerbose = process.env['MEGAPLANE_DEBUG'] !== undefined;
  const text = error instanceof Error ? (isVerbose ? error.stack : error.message) : String(error);
  process.stderr.write(`megaplane: ${text}\n`);
  process.exitCode = EXIT_FAILED;
}
// What a failed start left open (a listener, a timer) must not keep the process alive.
process.exit();
