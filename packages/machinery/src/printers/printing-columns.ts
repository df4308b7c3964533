/** Columns of tables, and what printers of many kinds have in common. */
import { ownMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { listAt, objectAt, stringAt } from '../json/json.ts';

/** As the API sends it. Priority 0 is always shown, 1 only when wide output is asked for. */
export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

export interface Row {
  readonly cells: readonly JsonValue[];
  /** `Completed` for pods that have ended, so that clients can tell them apart. */
  readonly conditions?: readonly JsonObject[];
}

/**
 * Prints objects of one kind. `row` reads a decoded object and must not fail on any object, however
 * little of it is there.
 *
 * Kinds that are listed by the million have a `digest`: from stored JSON it makes a smaller object
 * with the same row, at a fraction of the cost of parsing it all.
 */
export interface Printer {
  readonly columns: readonly Column[];
  /** With `LATER` for now, ages are marks (see `printing-age.ts`). */
  row(object: JsonObject, nowMs: number): Row;
  digest?(bytes: Buffer, start: number, end: number): JsonObject | undefined;
  /** Rows of a list go by this, the least first, and where it is the same as they are stored. */
  readonly rank?: (object: JsonObject) => number;
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  Name: 'The name of the object, unique within its kind and namespace.',
  Age: 'Time since the object was created.',
  Containers: 'Names of the containers in the template.',
  Images: 'Images of the containers in the template.',
  Selector: 'The labels by which the object finds what belongs to it.',
  Ready: 'How much of what is wanted is ready.',
  Status: 'The state that the object is in, in one word.',
  Desired: 'How many there should be.',
  Current: 'How many there are.',
  Available: 'How many have been ready for long enough.',
  'Up-to-date': 'How many are of the newest revision.',
  Restarts: 'How often the containers were restarted, and when last.',
  IP: 'The address of the pod.',
  Node: 'The node that it is on.',
  'Nominated Node': 'The node on which preemption is making room for the pod.',
  'Readiness Gates': 'How many of the extra conditions for readiness hold.',
};

/**
 * Columns from short notes: `Name, Desired integer, +Images` (a name, with its type, wide only).
 * The name column has the format `name`, which tells clients what to print for `-o name`.
 */
export function columnsOf(notes: string): readonly Column[] {
  return notes.split(', ').map((note) => {
    const isWide = note.startsWith('+');
    const match = /^\+?(.*?)(?: (integer|boolean|date))?$/.exec(note);
    const name = match?.[1] ?? note;
    return {
      name,
      type: match?.[2] ?? 'string',
      format: name === 'Name' ? 'name' : '',
      description:
        ownMember(DESCRIPTIONS, name) ?? `${name} of the object, from its specification or status.`,
      priority: isWide ? 1 : 0,
    };
  });
}

export function nameOf(object: JsonObject): string {
  return stringAt(object, 'metadata', 'name');
}

/** `a=1,b=2` sorted by key, or `<none>`. */
export function labelsText(labels: JsonObject | undefined): string {
  const keys = Object.keys(labels ?? {}).sort();
  return keys.map((key) => `${key}=${stringAt(labels, key)}`).join(',') || '<none>';
}

/** Names and images of a pod template's containers, two cells. */
export function containerCells(template: JsonValue | undefined): [string, string] {
  const containers = listAt(template, 'spec', 'containers');
  return [
    containers.map((one) => stringAt(one, 'name')).join(','),
    containers.map((one) => stringAt(one, 'image')).join(','),
  ];
}

/** At most `max` items, and how many more there are. Nothing at all is `empty`. */
export function shortList(items: readonly string[], max: number, empty: string): string {
  const shown = items.slice(0, max).join(',');
  if (items.length > max) return `${shown} + ${items.length - max} more...`;
  return shown === '' ? empty : shown;
}

/** The condition of a type, if the object has it. */
export function conditionOf(object: JsonObject, type: string): JsonObject | undefined {
  for (const condition of listAt(object, 'status', 'conditions')) {
    if (stringAt(condition, 'type') === type) return objectAt(condition);
  }
  return undefined;
}

export function isConditionTrue(object: JsonObject, type: string): boolean {
  return stringAt(conditionOf(object, type), 'status') === 'True';
}

export function isBeingDeleted(object: JsonObject): boolean {
  return stringAt(object, 'metadata', 'deletionTimestamp') !== '';
}
