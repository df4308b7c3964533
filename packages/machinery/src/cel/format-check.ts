/** Formats that are literals are checked against their arguments before anything runs. */
import { ownMember } from '@megaplane/base/members';
import type { CallExpr, Expr, Issue } from './syntax/syntax.ts';
import { typeText, type CelType } from './values/typing.ts';
import type { Checked } from './syntax/environment.ts';

const CLAUSE = /%(%|(\.\d*)?(.?))/gsu;

interface Clause {
  readonly kinds: ReadonlySet<string>;
  readonly message: string;
}

function clause(kinds: string, message: string): Clause {
  return { kinds: new Set(['dyn', ...kinds.split(' ')]), message };
}

const TEXTS = clause(
  'list map int uint double bool string timestamp bytes duration type null',
  'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, ' +
    'durations, and timestamps',
);
const HEX = clause(
  'int uint string bytes',
  'only integers, byte buffers, and strings can be formatted as hex',
);
const CLAUSES: Readonly<Record<string, Clause>> = {
  s: TEXTS,
  d: clause('int uint', 'decimal clause can only be used on integers'),
  f: clause('double string', 'fixed-point clause can only be used on doubles'),
  e: clause('double string', 'scientific clause can only be used on doubles'),
  b: clause('int uint bool', 'only integers and bools can be formatted as binary'),
  o: clause('int uint', 'octal clause can only be used on integers'),
  x: HEX,
  X: HEX,
};

/** What is wrong with `'...'.format([...])`; null: nothing, or it cannot be told. */
export function formatIssue(expr: CallExpr, checked: Checked): Issue | null {
  const { target, args, at } = expr;
  const [list] = args;
  if (expr.name !== 'format' || target?.kind !== 'constant' || list?.kind !== 'list') return null;
  if (typeof target.value !== 'string') return null;
  let used = 0;
  for (const [whole, , precision, verb = ''] of target.value.matchAll(CLAUSE)) {
    if (whole === '%%') continue;
    if (whole === '%') return { at, message: 'unexpected end of string' };
    const item = list.items[used];
    if (item === undefined) return { at, message: `index ${used} out of range` };
    used++;
    const fault = clauseFault(precision, verb);
    if (fault !== '') return { at, message: `could not parse formatting clause: ${fault}` };
    const known = ownMember(CLAUSES, verb);
    const wrong = known === undefined ? null : mismatch(item, known, checked);
    if (wrong !== null) return wrong;
  }
  if (list.items.length <= used) return null;
  const counts = `expected ${used}, got ${list.items.length}`;
  return { at, message: `too many arguments supplied to string.format (${counts})` };
}

function clauseFault(precision: string | undefined, verb: string): string {
  if (precision !== undefined && verb === '') {
    return 'error while parsing precision: could not find end of precision specifier';
  }
  if (precision === '.') {
    const why = 'strconv.Atoi: parsing "": invalid syntax';
    return `error while parsing precision: error while converting precision to integer: ${why}`;
  }
  return Object.hasOwn(CLAUSES, verb) ? '' : `unrecognized formatting clause "${verb}"`;
}

/** The argument, or for texts the member of it, that the clause is not for. */
function mismatch(item: Expr, known: Clause, checked: Checked): Issue | null {
  const type: CelType | undefined = checked.types.get(item);
  if (type !== undefined && !known.kinds.has(type.kind)) {
    const name = type.params.length > 0 ? type.name : typeText(type);
    const message = `error during formatting: ${known.message}, was given ${name}`;
    return { at: item.at, message };
  }
  if (known !== TEXTS) return null;
  const inner =
    item.kind === 'list'
      ? item.items
      : item.kind === 'map'
        ? item.entries.flatMap(({ key, value }) => [key, value])
        : [];
  for (const one of inner) {
    const found = mismatch(one, known, checked);
    if (found !== null) return found;
  }
  return null;
}
