// shell: the entry of the `megaplane` command
import { enableCompileCache } from 'node:module';
import { outliveReaders, toldExit } from './command-line.ts';
import { beginWithHugePages } from './service/huge-pages.ts';
import { endWithParent } from './service/parent.ts';
import { ownVersion } from './service/self.ts';

beginWithHugePages(process.argv.slice(2));
endWithParent(process.env);
outliveReaders();
// Compiled code is kept between starts: it halves the time to the first answer.
enableCompileCache();

async function main(): Promise<number> {
  const { runCommandLine } = await import('./program.ts');
  return runCommandLine(process.argv.slice(2), ownVersion());
}

// What a failed start left open (a listener, a timer) must not keep the process alive.
void toldExit(main).then((exitCode) => process.exit(exitCode));
