/** CEL over devices: which devices a class or a request wants. */
import { MadeObject } from '@megaplane/machinery/cel/admission-environment';
import { DEVICE_ENVIRONMENT, SELECTOR_COST_MAX } from '@megaplane/machinery/cel/device-environment';
import {
  celEnvironment,
  compileCel,
  failureText,
  type Compiled,
} from '@megaplane/machinery/cel/program';
import { STRING } from '@megaplane/machinery/cel/typing';
import { CelError, CelMap, EntryMap, type CelValue } from '@megaplane/machinery/cel/values';
import type { Device, DeviceAttribute } from '../devices/device-objects.ts';

const TEXT = celEnvironment({ variables: { text: STRING } });

const NOTHING = new EntryMap();

/** Domains that a device says nothing about are empty, not missing. */
class DomainMap extends CelMap {
  readonly #domains = new EntryMap();
  readonly #byDomain = new Map<string, EntryMap>();

  get size(): number {
    return this.#domains.size;
  }

  get(key: CelValue): CelValue | undefined {
    return this.#domains.get(key) ?? NOTHING;
  }

  override has(key: CelValue): boolean {
    return this.#domains.has(key);
  }

  keys(): readonly CelValue[] {
    return this.#domains.keys();
  }

  /** `name` without a domain belongs to the driver's. */
  put(name: string, driver: string, value: CelValue): void {
    const slash = name.indexOf('/');
    const domain = slash < 0 ? driver : name.slice(0, slash);
    let members = this.#byDomain.get(domain);
    if (members === undefined) {
      members = new EntryMap();
      this.#byDomain.set(domain, members);
      this.#domains.set(domain, members);
    }
    members.set(name.slice(slash + 1), value);
  }
}

/** What an expression makes of a text: a quantity, a version. */
function made(expression: string, text: string): CelValue {
  const compiled = compileCel(TEXT, expression);
  if (!compiled.ok) throw new Error(`${expression} does not compile: ${compiled.message}`);
  return compiled.program.evaluate({ text }).value;
}

function attributeValue({ string, int, bool, version }: DeviceAttribute): CelValue {
  if (int !== undefined) return BigInt(int);
  if (bool !== undefined) return bool;
  if (string !== undefined) return string;
  if (version === undefined) return new CelError('unsupported attribute value');
  const value = made('semver(text)', version);
  return value instanceof CelError
    ? new CelError(`parse semantic version: ${value.message}`)
    : value;
}

/** A device as expressions see it, or what is wrong with it. */
function celDevice(driver: string, device: Device): CelValue {
  const attributes = new DomainMap();
  for (const [name, attribute] of Object.entries(device.attributes ?? {})) {
    const value = attributeValue(attribute);
    if (value instanceof CelError) return new CelError(`attribute ${name}: ${value.message}`);
    attributes.put(name, driver, value);
  }
  const capacity = new DomainMap();
  for (const [name, { value }] of Object.entries(device.capacity ?? {})) {
    capacity.put(name, driver, made('quantity(text)', String(value)));
  }
  return new MadeObject(
    'kubernetes.DRADevice',
    new Map<string, CelValue>([
      ['driver', driver],
      ['attributes', attributes],
      ['capacity', capacity],
      ['allowMultipleAllocations', device.allowMultipleAllocations ?? false],
    ]),
  );
}

function compiledFor(expression: string): Compiled {
  const compiled = compileCel(DEVICE_ENVIRONMENT, expression);
  if (!compiled.ok) {
    return { ...compiled, message: failureText(compiled) };
  }
  const { type } = compiled.program;
  if (type.kind === 'bool' || type.kind === 'dyn') return compiled;
  const message = `must evaluate to bool or the unknown type, not ${type.name}`;
  return { ok: false, kind: 'type', message };
}

/** Answers about a device, by expression and driver; a device that changes is another one. */
const answers = new WeakMap<Device, Map<string, boolean | string>>();
/** Expressions asked about one device, before all answers about it are forgotten. */
const ANSWERS_MAX = 32;

/** Whether an expression wants a device; a text says what is wrong with the expression. */
export function matchesDevice(
  expression: string,
  driver: string,
  device: Device,
): boolean | string {
  let known = answers.get(device);
  if (known === undefined) answers.set(device, (known = new Map()));
  const key = `${driver} ${expression}`;
  let answer = known.get(key);
  if (answer === undefined) {
    answer = evaluated(expression, driver, device);
    if (known.size >= ANSWERS_MAX) known.clear();
    known.set(key, answer);
  }
  return answer;
}

function evaluated(expression: string, driver: string, device: Device): boolean | string {
  const compiled = compiledFor(expression);
  if (!compiled.ok) return `CEL compile error: ${compiled.message}`;
  const subject = celDevice(driver, device);
  if (subject instanceof CelError) return `CEL runtime error: ${subject.message}`;
  const { value } = compiled.program.evaluate({ device: subject }, SELECTOR_COST_MAX);
  if (value instanceof CelError) return `CEL runtime error: ${value.message}`;
  if (typeof value === 'boolean') return value;
  return 'CEL runtime error: the result could not be converted to bool';
}
