/**
 * Transcripts of sessions with kubectl: a command for the shell, then what it printed.
 *
 *     $ kubectl get pod p -o name
 *     pod/p
 *     $ cat <<. | kubectl apply -f -
 *     > {"kind": "Wrong"}
 *     > .
 *     ! error: ...
 *     [1]
 *
 * `==` begins a remark, `>` goes on with the command, `!` is a line of its errors, `[1]` its exit
 * code where that is not 0. A command behind `~` is given again until it prints what is written,
 * for some seconds. What differs from run to run (names, times, addresses) is replaced by a word in
 * capitals.
 */
import { spawn } from 'node:child_process';
import { text as textOf } from 'node:stream/consumers';

export interface Step {
  readonly command: string;
  readonly isAwaited: boolean;
  /** Lines as they are written. */
  readonly wanted: string;
}

/** The steps of a transcript, without the remarks between them. */
export function readTranscript(transcript: string): Step[] {
  const steps: { command: string; isAwaited: boolean; wanted: string }[] = [];
  for (const line of transcript.split('\n')) {
    const last = steps.at(-1);
    if (/^[$~] /.test(line)) {
      steps.push({ command: line.slice(2), isAwaited: line.startsWith('~'), wanted: '' });
    } else if (last !== undefined && last.wanted === '' && line.startsWith('> ')) {
      last.command += `\n${line.slice(2)}`;
    } else if (last !== undefined && line !== '' && !line.startsWith('== ')) {
      last.wanted += `${line}\n`;
    }
  }
  return steps;
}

/** Replaces, in this order. */
const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, 'TIME'],
  [/(resourceVersion"?: )"\d+"/g, '$1"REVISION"'],
  [/https:\/\/127\.0\.0\.1:\d+/g, 'SERVER'],
  [/:3[0-2]\d{3}\/(TCP|UDP)/g, ':PORT/$1'],
  [/\b(10|192)(\.\d+){3}\b/g, 'ADDRESS'],
  [/\bnode-\d+\b/g, 'NODE'],
  [/^! [EIW]\d{4} .*\n/gm, ''],
  // of a pod of a ReplicaSet, of a pod of anything else, and of a ReplicaSet
  [/\b([a-z][a-z-]*)-[0-9bcdf-hj-np-tv-xz]{6,10}-[0-9bcdf-hj-np-tv-xz]{5}\b/g, '$1-HASH-ANY'],
  [/\b([a-z][a-z-]*)-[2456789bcdf-hj-np-tv-xz]{5}\b/g, '$1-ANY'],
  [/\b([a-z][a-z-]*)-[0-9bcdf-hj-np-tv-xz]{8,10}\b/g, '$1-HASH'],
  [/(pod-template-hash|controller-revision-hash)([=:] ?)[\w-]+/g, '$1$2HASH'],
  [/\bzone-[a-z]\b/g, 'ZONE'],
  [/(^| |\()(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?m?s(?=$| |\)|,)/gm, '$1AGE'],
  // minutes alone are the age in a table, and may be a quantity elsewhere
  [/(?<= {3})(\d+d|\d+h)?\d+[dhm](?= {3}|$)/gm, 'AGE'],
  [/(?<=\S) {2,}(?=\S)|\t+/g, '  '],
  [/ +$/gm, ''],
];

export function normalized(printed: string): string {
  return CHANGING.reduce((text, [pattern, word]) => text.replaceAll(pattern, word), printed);
}

/** Gives a command to the shell; what it printed, as a transcript has it. */
export async function play(
  command: string,
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const shell = spawn('sh', ['-c', command], { cwd, env, timeout: 60_000 });
  shell.stdin.end();
  const ended = new Promise<number | null>((resolve) => shell.once('close', resolve));
  const [out, errors] = await Promise.all([textOf(shell.stdout), textOf(shell.stderr)]);
  const code = await ended;
  const marked = errors.replaceAll(/^(?=.)/gm, '! ');
  return normalized(blankless(out) + blankless(marked)) + (code === 0 ? '' : `[${code}]\n`);
}

/** Empty lines end nothing in a transcript: they are left out. */
function blankless(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => `${line}\n`).join('');
}
