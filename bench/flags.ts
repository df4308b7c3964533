/** Command lines of benchmarks. */
import { readFileSync } from 'node:fs';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { tellFailures } from './load/flags.ts';
import { askForPicture } from './pictures.ts';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

const WRONG_USAGE = 2;

/**
 * The flags of the benchmark that runs. `--help` prints the comment at the head of its file, and a
 * flag that it does not have ends it with a line that says so. Each takes `--plot FILE.svg`, too,
 * and `--output json`, which puts the results on stdout and everything else on stderr.
 */
export function flagsOf<const T extends Options>(options: T): Values<T> {
  const [, file = '', ...args] = process.argv;
  if (args.includes('--help')) {
    const names = [...new Set([...Object.keys(options), 'plot'])].join(', ');
    process.stdout.write(`${headOf(file)}\nFlags: ${names}\n`);
    process.exit(0);
  }
  tellFailures();
  try {
    // one benchmark draws pictures of its own
    const isOwn = Object.hasOwn(options, 'plot');
    const all = { plot: { type: 'string' }, ...options } as const;
    const values = parseArgs({ options: all, args }).values as Values<T> & { plot?: string };
    if (!isOwn) askForPicture(values.plot);
    if ((values as { output?: string }).output === 'json') onlyJson();
    return values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}; --help tells the flags\n`);
    process.exit(WRONG_USAGE);
  }
}

let tellResult: (text: string) => void = (text) => void process.stdout.write(text);

/** From here on stdout is for the results alone. */
function onlyJson(): void {
  const tell = process.stdout.write.bind(process.stdout);
  tellResult = (text) => void tell(text);
  process.stdout.write = process.stderr.write.bind(process.stderr);
}

/** Writes the results to stdout, whatever else is written there. */
export function writeJson(text: string): void {
  tellResult(text);
}

/** The first comment of a source file, as text. */
function headOf(file: string): string {
  const comment = /\/\*\*(.*?)\*\//s.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  return comment.replace(/^ ?\* ?/gm, '').trim();
}

/** The named flags as whole numbers; one that is none, or below its least, ends the program. */
export function wholeNumbers<Name extends string>(
  values: Readonly<Record<NoInfer<Name>, string>>,
  least: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const found = {} as Record<Name, number>;
  for (const name of Object.keys(least) as Name[]) {
    const value = /^\d+$/.test(values[name]) ? Number(values[name]) : NaN;
    if (!(value >= least[name])) {
      const why = `a whole number from ${least[name]} on is needed, not "${values[name]}"`;
      process.stderr.write(`--${name}: ${why}; --help tells the flags\n`);
      process.exit(WRONG_USAGE);
    }
    found[name] = value;
  }
  return found;
}

/** What a flag names, by commas, of `all`; another name ends the program. */
export function namesOf<Name extends string>(
  flag: string,
  text: string,
  all: readonly Name[],
): readonly Name[] {
  return text.split(',').map((given) => {
    const known = all.find((name) => name === given);
    if (known !== undefined) return known;
    process.stderr.write(`--${flag}: ${given} is none of ${all.join(', ')}\n`);
    process.exit(WRONG_USAGE);
  });
}
