/** What devices of one claim must have in common, or must not. */
import { ownMember } from '@megaplane/base/members';
import type { Device, DeviceAttribute, DeviceConstraint } from '../devices/device-objects.ts';

/** Devices that were picked so far for the requests of one constraint. */
export interface ConstraintState {
  /** False if the device must not be added; then nothing has changed. */
  add(device: Device, driver: string): boolean;
  /** Undoes the last `add` that was taken. */
  undo(): void;
  /** Whether the constraint is about a request; `path` is `request` or `request/alternative`. */
  concerns(request: string, path: string): boolean;
}

type Value = string | number | boolean;

/** A fully qualified name also finds the driver's own attribute under its short name. */
function attributeOf(
  device: Device,
  driver: string,
  name: string,
): readonly [kind: string, value: Value] | null {
  const { attributes = {} } = device;
  const slash = name.indexOf('/');
  const isOwn = slash >= 0 && name.slice(0, slash) === driver;
  const found =
    ownMember(attributes, name) ??
    (isOwn ? ownMember(attributes, name.slice(slash + 1)) : undefined);
  return found === undefined ? null : valueOf(found);
}

function valueOf({ string, int, bool, version }: DeviceAttribute): [string, Value] | null {
  if (string !== undefined) return ['string', string];
  if (int !== undefined) return ['int', int];
  if (bool !== undefined) return ['bool', bool];
  return version === undefined ? null : ['version', version];
}

class AttributeConstraint implements ConstraintState {
  readonly #attribute: string;
  readonly #isDistinct: boolean;
  readonly #requests: ReadonlySet<string>;
  readonly #values: string[] = [];

  constructor(attribute: string, isDistinct: boolean, requests: readonly string[]) {
    this.#attribute = attribute;
    this.#isDistinct = isDistinct;
    this.#requests = new Set(requests);
  }

  add(device: Device, driver: string): boolean {
    const value = attributeOf(device, driver, this.#attribute);
    if (value === null) return false;
    const text = value.join(' ');
    const fits = this.#isDistinct
      ? !this.#values.includes(text)
      : this.#values.length === 0 || this.#values[0] === text;
    if (fits) this.#values.push(text);
    return fits;
  }

  undo(): void {
    this.#values.pop();
  }

  concerns(request: string, path: string): boolean {
    const requests = this.#requests;
    return requests.size === 0 || requests.has(request) || requests.has(path);
  }
}

/** Null for a constraint of a kind that is not known. */
export function constraintOf(constraint: DeviceConstraint): ConstraintState | null {
  const { matchAttribute, distinctAttribute, requests = [] } = constraint;
  if (matchAttribute !== undefined) return new AttributeConstraint(matchAttribute, false, requests);
  if (distinctAttribute === undefined) return null;
  return new AttributeConstraint(distinctAttribute, true, requests);
}
