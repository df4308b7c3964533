/** Command lines of benchmarks. */
import { readFileSync } from 'node:fs';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { tellFailures } from './load/flags.ts';

type Options = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values'];

const WRONG_USAGE = 2;

/**
 * The flags of the benchmark that runs. `--help` prints the comment at the head of its file, and a
 * flag that it does not have ends it with a line that says so.
 */
export function flagsOf<const T extends Options>(options: T): Values<T> {
  const [, file = '', ...args] = process.argv;
  if (args.includes('--help')) {
    process.stdout.write(`${headOf(file)}\nFlags: ${Object.keys(options).join(', ')}\n`);
    process.exit(0);
  }
  tellFailures();
  try {
    return parseArgs<{ options: T; args: string[] }>({ options, args }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}; --help tells the flags\n`);
    process.exit(WRONG_USAGE);
  }
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
