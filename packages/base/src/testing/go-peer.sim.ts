// shell
/** For tests: programs in Go that are peers of ours, built once for each state of their sources. */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** What a build from nothing may take. */
export const GO_BUILD_MS = 150_000;
const run = promisify(execFile);

export class GoPeer {
  readonly #source: string;
  /** Where the program is once it was built, beside other temporary files. */
  readonly binary: string;

  /** `source`: the directory of a module with a program. */
  constructor(source: string) {
    this.#source = source;
    const hash = createHash('sha256');
    for (const name of readdirSync(source).sort()) hash.update(readFileSync(join(source, name)));
    const state = hash.digest('hex').slice(0, 16);
    this.binary = join(tmpdir(), `megaplane-${basename(source)}-${state}`);
  }

  get isBuilt(): boolean {
    return existsSync(this.binary);
  }

  /** Why it cannot be built here; false where it can. */
  get skip(): string | false {
    if (this.isBuilt) return false;
    try {
      execFileSync('go', ['version'], { stdio: 'ignore' });
    } catch {
      return 'needs Go (https://go.dev/dl, or the package golang-go) to build a program';
    }
    return false;
  }

  /** Empty when it is there, or why it cannot be built: most likely modules are out of reach. */
  async build(): Promise<string> {
    if (this.isBuilt) return '';
    const fresh = `${this.binary}.${process.pid}`;
    try {
      await run('go', ['build', '-o', fresh, '.'], { cwd: this.#source, timeout: GO_BUILD_MS });
    } catch (error) {
      const { stderr = '' } = error as { stderr?: string };
      return stderr.trim().split('\n').at(-1) ?? 'go build failed';
    }
    renameSync(fresh, this.binary);
    return '';
  }
}
