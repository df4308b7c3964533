// shell: writes a file
/** The file that tells the page which programs run, and where they tell their metrics. */
import { replacePrivately } from '@megaplane/base/private-file';
import type { ProcessFile, Source } from '../observe/sources.ts';
import type { Child } from './children.ts';
import { paths } from './plan.ts';

/** The programs of a cluster as the page looks at them; `up` itself is one of them. */
function processesOf(children: ReadonlyMap<string, Child>): ProcessFile {
  const sources: Source[] = [{ name: 'up', pid: process.pid, metrics: '' }];
  for (const [name, child] of children) {
    const metrics = /https?:\/\/[^\s,]+\/metrics/.exec(child.listens)?.[0] ?? '';
    sources.push({ name, pid: child.pid ?? 0, metrics });
  }
  return { processes: sources };
}

/** Writes it anew, each time when a program has come (back). */
export function writeProcesses(dataDir: string, children: ReadonlyMap<string, Child>): void {
  replacePrivately(paths(dataDir).processes, `${JSON.stringify(processesOf(children))}\n`);
}
