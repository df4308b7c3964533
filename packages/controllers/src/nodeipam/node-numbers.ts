/**
 * The number of a node, from which a plan tells its blocks: the number of its annotation, or else
 * that at the end of its name, `worker-17` as `node-17`. Nodes without a number have no blocks, and
 * of two with the same one the first has them.
 */
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { stringAt } from '@megaplane/machinery/json';

/** Says the number of a node whose name does not. */
export const NODE_NUMBER_ANNOTATION = 'megaplane.dev/node-number';

const MARK = Buffer.from(NODE_NUMBER_ANNOTATION);
const WHOLE = /^(?:0|[1-9]\d{0,8})$/;
const AT_THE_END = /(?:^|[^0-9])(0|[1-9]\d{0,8})$/;

export class NodeNumbers {
  /** Of nodes with the annotation, as it is written. */
  readonly #told: Map<string, string> = new Map();

  /** A node is new or changed; `object` is its JSON. */
  note(name: string, object: Buffer): void {
    if (!object.includes(MARK)) return void this.#told.delete(name);
    const node = parseJson(object.toString('utf8')) as JsonObject;
    this.#told.set(name, stringAt(node, 'metadata', 'annotations', NODE_NUMBER_ANNOTATION));
  }

  forget(name: string): void {
    this.#told.delete(name);
  }

  /** -1: it has none. */
  of(name: string): number {
    const told = this.#told.get(name);
    const text = told === undefined ? AT_THE_END.exec(name)?.[1] : WHOLE.exec(told)?.[0];
    return text === undefined ? -1 : Number(text);
  }
}
