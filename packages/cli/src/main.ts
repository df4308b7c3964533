// shell: the entry of the `megaplane` command
import { parseNested } from '@megaplane/base/nested-json';
import { readFileSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { outliveReaders, toldExit } from './command-line.ts';
import { beginWithHugePages } from './service/huge-pages.ts';
import { endWithParent } from './service/parent.ts';

beginWithHugePages(process.argv.slice(2));
endWithParent(process.env);
outliveReaders();
// Compiled code is kept between starts: it halves the time to the first answer.
enableCompileCache();

const { runCommandLine } = await import('./program.ts');

const manifest: unknown = parseNested(
  readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'),
);
const version = (manifest as { readonly version: string }).version;

process.exitCode = await toldExit(() => runCommandLine(process.argv.slice(2), version));
// What a failed start left open (a listener, a timer) must not keep the process alive.
process.exit();
