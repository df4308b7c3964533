/** The types that the checker knows. */
import { ownMember } from '@megaplane/base/members';

export interface FieldType {
  readonly type: CelType;
  /** The member of the JSON object, where the field's name had to be escaped. */
  readonly member: string;
}

export interface CelType {
  readonly kind:
    | 'dyn'
    | 'null'
    | 'bool'
    | 'int'
    | 'uint'
    | 'double'
    | 'string'
    | 'bytes'
    | 'timestamp'
    | 'duration'
    | 'type'
    | 'list'
    | 'map'
    | 'object'
    | 'opaque'
    | 'param';
  /** As messages print it, without parameters. */
  readonly name: string;
  readonly params: readonly CelType[];
  /** Of objects: the fields by their escaped names; null: any field, of any type. */
  readonly fields?: ReadonlyMap<string, FieldType> | null;
  /** Most elements (bytes of a string) that a value read from a request can have. */
  readonly sizeMax?: number;
  /** Bytes of the shortest JSON of this type. */
  readonly bytesMin?: number;
  readonly listType?: '' | 'set' | 'map';
  readonly mapKeys?: readonly string[];
  /** False: null in data is an error. */
  readonly isNullable?: boolean;
  /** Of a `dyn`: data has to be one of the two. */
  readonly isIntOrString?: boolean;
}

/** Names that need another form to be declared. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package ' +
    'namespace return var void while'
  ).split(' '),
);

/** How a field is declared whose name is a keyword, by which it can be selected, too. */
export function keywordName(name: string): string {
  return RESERVED.has(name) ? `__${name}__` : name;
}

function plain(kind: CelType['kind'], name: string = kind): CelType {
  return { kind, name, params: [] };
}

export const DYN: CelType = plain('dyn');
/** As `dyn`, but nothing goes through its members: who means to has to say `dyn(...)`. */
export const ANY: CelType = plain('dyn', 'any');
export const NULL: CelType = plain('null');
export const BOOL: CelType = plain('bool');
export const INT: CelType = plain('int');
export const UINT: CelType = plain('uint');
export const DOUBLE: CelType = plain('double');
export const STRING: CelType = plain('string');
export const BYTES: CelType = plain('bytes');
export const TIMESTAMP: CelType = plain('timestamp');
export const DURATION: CelType = plain('duration');

export function listOf(items: CelType): CelType {
  return { kind: 'list', name: 'list', params: [items] };
}

export function mapOf(keys: CelType, values: CelType): CelType {
  return { kind: 'map', name: 'map', params: [keys, values] };
}

export function typeOf(type: CelType): CelType {
  return { kind: 'type', name: 'type', params: [type] };
}

export function opaque(name: string, ...params: readonly CelType[]): CelType {
  return { kind: 'opaque', name, params };
}

export function optionalOf(type: CelType): CelType {
  return opaque('optional_type', type);
}

export function isOptional(type: CelType): boolean {
  return type.kind === 'opaque' && type.name === 'optional_type';
}

const PLAIN: Readonly<Record<string, CelType>> = {
  dyn: DYN,
  null: NULL,
  null_type: NULL,
  bool: BOOL,
  int: INT,
  uint: UINT,
  double: DOUBLE,
  string: STRING,
  bytes: BYTES,
  timestamp: TIMESTAMP,
  duration: DURATION,
};

/** `list(int)`, `map(string, dyn)`: as messages print it. */
export function typeText(type: CelType): string {
  if (type.params.length === 0) return type.name;
  return `${type.name}(${type.params.map(typeText).join(', ')})`;
}

/** Reads a type as signatures write it: single capitals are parameters, other names are opaque. */
export function parseType(text: string): CelType {
  const open = text.indexOf('(');
  if (open < 0) {
    const known = ownMember(PLAIN, text);
    if (known !== undefined) return known;
    if (text === 'type') return typeOf(DYN);
    return /^[A-Z]$/.test(text) ? plain('param', text) : opaque(text);
  }
  const params = splitTypes(text.slice(open + 1, -1)).map(parseType);
  const [first = DYN, second = DYN] = params;
  const name = text.slice(0, open);
  if (name === 'list') return listOf(first);
  if (name === 'map') return mapOf(first, second);
  if (name === 'type') return typeOf(first);
  if (name === 'optional') return optionalOf(first);
  return opaque(name, ...params);
}

/** Parts between the commas that are in no parenthesis. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    const sign = text[at];
    if (sign === '(') depth++;
    else if (sign === ')') depth--;
    if ((sign === ',' && depth === 0) || at === text.length) {
      const part = text.slice(start, at).trim();
      if (part !== '') parts.push(part);
      start = at + 1;
    }
  }
  return parts;
}

/** What type parameters stand for so far. */
export interface Substitution {
  get(name: string): CelType | undefined;
  set(name: string, type: CelType): void;
}

/** What is tried on top of what is known, which it changes only when it is kept. */
export class TriedSubstitution implements Substitution {
  readonly #known: Substitution;
  readonly #learned = new Map<string, CelType>();

  constructor(known: Substitution) {
    this.#known = known;
  }

  get(name: string): CelType | undefined {
    return this.#learned.get(name) ?? this.#known.get(name);
  }

  set(name: string, type: CelType): void {
    this.#learned.set(name, type);
  }

  /** Makes what was learned known. */
  keep(): void {
    for (const [name, type] of this.#learned) this.#known.set(name, type);
  }
}

export function resolve(type: CelType, known: Substitution): CelType {
  if (type.kind === 'param') {
    const found = known.get(type.name);
    return found === undefined ? type : resolve(found, known);
  }
  if (type.params.length === 0) return type;
  const params = type.params.map((one) => resolve(one, known));
  return params.every((one, index) => one === type.params[index]) ? type : { ...type, params };
}

/** Type parameters that nothing was learned about are anything. */
export function settle(type: CelType, known: Substitution): CelType {
  const resolved = resolve(type, known);
  if (resolved.kind === 'param') return DYN;
  if (resolved.params.length === 0) return resolved;
  const params = resolved.params.map((one) => settle(one, known));
  const isSame = params.every((one, index) => one === resolved.params[index]);
  return isSame ? resolved : { ...resolved, params };
}

const NULLABLE: ReadonlySet<CelType['kind']> = new Set([
  'object',
  'opaque',
  'timestamp',
  'duration',
  'null',
]);

function occurs(name: string, type: CelType, known: Substitution): boolean {
  const own = resolve(type, known);
  if (own.kind === 'param') return own.name === name;
  return own.params.some((one) => occurs(name, one, known));
}

/** Whether a value of type `actual` can stand where `formal` is asked for; learns parameters. */
export function isAssignable(formal: CelType, actual: CelType, known: Substitution): boolean {
  const left = resolve(formal, known);
  const right = resolve(actual, known);
  if (left === right) return true;
  if (formal.kind === 'param' && left.kind !== 'param') return widen(formal, left, right, known);
  if (left.kind === 'param') {
    if (right.kind === 'param' && left.name === right.name) return true;
    if (occurs(left.name, right, known)) return false;
    known.set(left.name, right);
    return true;
  }
  if (right.kind === 'param') {
    if (occurs(right.name, left, known)) return false;
    known.set(right.name, left);
    return true;
  }
  if (left.kind === 'dyn' || right.kind === 'dyn') return true;
  if (left.kind === 'null') return NULLABLE.has(right.kind);
  if (right.kind === 'null') return NULLABLE.has(left.kind);
  if (left.kind !== right.kind) return false;
  if (left.kind === 'type') return true;
  if ((left.kind === 'object' || left.kind === 'opaque') && left.name !== right.name) return false;
  if (left.params.length !== right.params.length) return false;
  return left.params.every((one, index) => isAssignable(one, right.params[index] ?? DYN, known));
}

/** What a parameter is known to be may turn out to be anything. */
function widen({ name }: CelType, left: CelType, right: CelType, known: Substitution): boolean {
  if (!isAssignable(left, right, known)) return false;
  const wider = mostGeneral(left, right, known);
  if (wider !== left && !occurs(name, wider, known)) known.set(name, wider);
  return true;
}

/** The type of a value that is one or the other; dyn where they have nothing in common. */
export function join(left: CelType, right: CelType, known: Substitution): CelType | null {
  if (isAssignable(left, right, known)) {
    return resolve(left, known).kind === 'null' ? right : mostGeneral(left, right, known);
  }
  return null;
}

function mostGeneral(left: CelType, right: CelType, known: Substitution): CelType {
  const own = resolve(left, known);
  const other = resolve(right, known);
  if (own.kind === 'dyn' || other.kind === 'dyn') return DYN;
  if (own.params.length === 0 || own.params.length !== other.params.length) return own;
  const params = own.params.map((one, index) =>
    mostGeneral(one, other.params[index] ?? DYN, known),
  );
  return { ...own, params };
}
