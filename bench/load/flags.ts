/** Flags that all load programs have; wrong ones end the program with code 2. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util';
import { dnsLabelErrors, dnsSubdomainErrors } from '@megaplane/machinery/names';

export const COMMON: {
  readonly kubeconfig: { readonly type: 'string' };
  readonly skip: { readonly type: 'string'; readonly default: string };
  readonly count: { readonly type: 'string'; readonly default: string };
  readonly clients: { readonly type: 'string'; readonly default: string };
  readonly 'in-flight': { readonly type: 'string'; readonly default: string };
  readonly rate: { readonly type: 'string'; readonly default: string };
  readonly output: { readonly type: 'string' };
  readonly help: { readonly type: 'boolean' };
} = {
  kubeconfig: { type: 'string' },
  /** First number; those below are left to other processes. */
  skip: { type: 'string', default: '0' },
  count: { type: 'string', default: '1000' },
  clients: { type: 'string', default: '10' },
  'in-flight': { type: 'string', default: '100' },
  /** Requests a second; 0: as fast as answers come. */
  rate: { type: 'string', default: '0' },
  output: { type: 'string' },
  help: { type: 'boolean' },
};

/** Of those that send numbered requests. */
export const LOAD: typeof COMMON & {
  readonly patience: { readonly type: 'string'; readonly default: string };
} = {
  ...COMMON,
  /** Seconds without anything done before the program gives up; 0: never. */
  patience: { type: 'string', default: '60' },
};

/** Ends the program with one line for people. */
export function usage(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(2);
}

/** What is wrong with the world is one line for people; what is wrong here keeps its stack. */
export function tellFailures(): void {
  process.on('uncaughtException', (error: unknown) => {
    const isPlain = error instanceof Error && error.name === 'Error';
    process.stderr.write(`${isPlain ? error.message : String((error as Error).stack)}\n`);
    process.exit(1);
  });
}

/** Like `parseArgs`, without a stack for the user. */
export function flagsOf<const Options extends ParseArgsOptionsConfig>(
  options: Options,
  about: string,
): ReturnType<typeof parseArgs<{ options: Options }>>['values'] {
  tellFailures();
  try {
    const { values } = parseArgs<{ options: Options }>({ options });
    if ('help' in values && values['help'] === true) {
      const names = Object.entries(options).map(([name, option]) => {
        const given = 'default' in option ? ` (default: ${String(option.default)})` : '';
        return `  --${name}${given}`;
      });
      process.stdout.write(`${about}\n\n${names.join('\n')}\n`);
      process.exit(0);
    }
    if ('output' in values) judgeOutput(values['output']);
    return values;
  } catch (error) {
    usage((error as Error).message);
  }
}

/** A file that cannot be written must not be found out when all is done. */
function judgeOutput(file: unknown): void {
  if (typeof file !== 'string') return;
  const isDirectory = statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
  if (file === '' || isDirectory) usage(`--output: ${file || 'an empty name'} is no file`);
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    usage(`--output: cannot write ${file}: ${(error as Error).message}`);
  }
}

/** A whole number of a flag. */
export function whole(name: string, text: string, min = 0): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value) || value < min) {
    usage(`--${name}: a whole number from ${min} is needed, not ${text}`);
  }
  return value;
}

export function needed(name: string, text: string | undefined): string {
  return text ?? usage(`--${name} is needed`);
}

/** A namespace as API servers take it: a wrong one would be refused with each request. */
export function namespaceOf(text: string): string {
  const [fault] = dnsLabelErrors(text);
  return fault === undefined ? text : usage(`--namespace: ${text}: ${fault}`);
}

/** What names begin with that end in numbers up to `last`. */
export function prefixOf(flag: string, text: string, last: number): string {
  const [fault] = dnsSubdomainErrors(`${text}${last}`);
  return fault === undefined ? text : usage(`--${flag}: ${text}${last}: ${fault}`);
}

/** Numbers of `LOAD`, judged before the server is asked for anything. */
export interface LoadNumbers {
  readonly clients: number;
  readonly inFlight: number;
  readonly first: number;
  readonly count: number;
  readonly patienceSeconds: number;
  readonly rate: number;
}

export function loadNumbers(
  values: Readonly<
    Record<'clients' | 'in-flight' | 'skip' | 'count' | 'patience' | 'rate', string>
  >,
): LoadNumbers {
  return {
    clients: whole('clients', values.clients, 1),
    inFlight: whole('in-flight', values['in-flight'], 1),
    first: whole('skip', values.skip),
    count: whole('count', values.count, 1),
    patienceSeconds: whole('patience', values.patience),
    rate: whole('rate', values.rate),
  };
}
