// shell: files of the CNI plugin, and `ip`
/**
 * Entries of the kernel's neighbour proxy, as the CNI plugin has written them down: a file for each
 * attachment with the uplink and the addresses. They are entered again when an interface came back
 * or moved, and taken out with the network.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './machine.ts';

/**
 * Lines that one `ip` is given; it works them off in one go. The kernel keeps all entries in 16
 * lists, so each of the last of 10,000 takes a hundred times as long as the first.
 */
const BATCH_LINES = 1000;

interface Entry {
  readonly file: string;
  readonly uplink: string;
  readonly addresses: readonly string[];
}

export function entriesIn(stateDir: string): readonly Entry[] {
  if (!existsSync(stateDir)) return [];
  const entries: Entry[] = [];
  for (const name of readdirSync(stateDir)) {
    const file = join(stateDir, name);
    const [uplink = '', ...addresses] = readFileSync(file, 'utf8').trim().split(' ');
    if (/^[\w.-]+$/.test(uplink) && addresses.every((one) => /^[\da-fA-F:.]+$/.test(one))) {
      entries.push({ file, uplink, addresses });
    }
  }
  return entries;
}

/** Enters all again at `uplink`; those of an uplink of before are taken out. */
export function enterAgain(stateDir: string, uplink: string): string {
  const entries = entriesIn(stateDir);
  const lines: string[] = [];
  for (const { uplink: before, addresses } of entries) {
    for (const one of addresses) {
      if (before !== uplink) lines.push(`neigh del proxy ${one} dev ${before}`);
      lines.push(`neigh replace proxy ${one} dev ${uplink}`);
    }
  }
  return batch(lines);
}

/** Takes all out. */
export function takeOut(stateDir: string): string {
  const entries = entriesIn(stateDir);
  const lines = entries.flatMap(({ uplink, addresses }) =>
    addresses.map((one) => `neigh del proxy ${one} dev ${uplink}`),
  );
  const why = batch(lines);
  for (const { file } of entries) rmSync(file, { force: true });
  return why;
}

/** What is gone already is no failure. */
function batch(lines: readonly string[]): string {
  for (let at = 0; at < lines.length; at += BATCH_LINES) {
    const text = `${lines.slice(at, at + BATCH_LINES).join('\n')}\n`;
    const why = run('ip', ['-6', '-force', '-batch', '-'], text);
    if (why !== '' && !/No such file|Cannot find device|Command failed/.test(why)) return why;
  }
  return '';
}
