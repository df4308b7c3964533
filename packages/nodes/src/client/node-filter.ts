/**
 * Which nodes of the informer are ours, where labels on the server cannot say it: by annotations,
 * as kwok does, and none that the kubelet of a machine keeps, whatever selectors say, unless it was
 * asked for by name. A node that becomes ours or another's comes and goes like one that is made and
 * deleted: its pods and its lease are left as they are.
 */
import { Uint8Column } from '@megaplane/base/column';
import { objectAt } from '@megaplane/machinery/json';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { ObjectScan } from '@megaplane/machinery/object-scan';
import {
  EVERYTHING,
  matchesLabels,
  parseLabelSelector,
  type LabelSelector,
} from '@megaplane/machinery/selectors';
import { findPath, pathOf, skipValue } from '@megaplane/machinery/scan';
import type { InformerHandler } from '@megaplane/client/informer-options';

const BOOT_ID = pathOf('nodeInfo', 'bootID');
/** The two quotes of an empty text. */
const EMPTY_BYTES = 2;

/** A selector of a flag; throws an Error that names the flag. */
export function selectorOf(flag: string, text: string): LabelSelector {
  if (text === '') return EVERYTHING;
  const parsed = parseLabelSelector(text);
  if ('error' in parsed) throw new Error(`--${flag}: ${parsed.error}`);
  return parsed.value;
}

/** Objects that stages and kubelets leave alone; both selectors empty: none. */
export class Disregard {
  readonly #annotations: LabelSelector | null;
  readonly #labels: LabelSelector | null;

  constructor(annotations: string, labels: string) {
    const of = (flag: string, text: string): LabelSelector | null =>
      text === '' ? null : selectorOf(flag, text);
    this.#annotations = of('disregard-status-with-annotation-selector', annotations);
    this.#labels = of('disregard-status-with-label-selector', labels);
  }

  get isEmpty(): boolean {
    return this.#annotations === null && this.#labels === null;
  }

  covers(object: JsonObject): boolean {
    const metadata = (name: string): JsonObject | undefined => objectAt(object, 'metadata', name);
    return (
      (this.#annotations !== null && matchesLabels(this.#annotations, metadata('annotations'))) ||
      (this.#labels !== null && matchesLabels(this.#labels, metadata('labels')))
    );
  }
}

/**
 * True if a kubelet of a machine keeps the Node whose status is `bytes[start..end)`: it tells the
 * boot of its kernel, which simulated ones (kwok's and ours) have none of.
 */
function isOfMachine(bytes: Uint8Array, start: number, end: number): boolean {
  const at = start < 0 ? -1 : findPath(bytes, start, end, BOOT_ID);
  return at >= 0 && skipValue(bytes, at, end) - at > EMPTY_BYTES;
}

export interface NodeFilterOptions {
  /** Of annotations; `EVERYTHING` where they do not matter. */
  readonly selector: LabelSelector;
  /** Nodes of machines, too: they were asked for by name. */
  readonly takesMachines?: boolean;
  /** A node that would be ours is kept by the kubelet of a machine. */
  onMachine?(id: number): void;
}

/** What a row is. */
const OTHER = 0;
const HELD = 1;
const MACHINE = 2;

export class NodeFilter {
  readonly handler: InformerHandler;
  readonly #state = new Uint8Column();
  readonly #scan = new ObjectScan();
  readonly #options: NodeFilterOptions;

  constructor(options: NodeFilterOptions, inner: InformerHandler) {
    this.#options = options;
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => {
        const before = isNew ? OTHER : this.#state.get(id);
        const now = this.#stateOf(bytes, start, end);
        this.#state.set(id, now);
        if (now === HELD) inner.onUpsert(id, before !== HELD, bytes, start, end);
        else if (before === HELD) inner.onDelete(id, bytes, start, end);
        if (now === MACHINE && before !== MACHINE) options.onMachine?.(id);
      },
      onDelete: (id, bytes, start, end) => {
        if (this.#state.get(id) === HELD) inner.onDelete(id, bytes, start, end);
        this.#state.set(id, OTHER);
      },
      ...(inner.onSynced === undefined ? {} : { onSynced: () => inner.onSynced?.() }),
      ...(inner.onTrouble === undefined ? {} : { onTrouble: (text) => inner.onTrouble?.(text) }),
    };
  }

  /** Whether the row of the informer is one of ours. */
  holds(id: number): boolean {
    return this.#state.get(id) === HELD;
  }

  #stateOf(bytes: Uint8Array, start: number, end: number): number {
    const scan = this.#scan;
    const { selector, takesMachines } = this.#options;
    const isScanned = scan.scan(bytes, start, end);
    if (selector.requirements.length > 0 && !this.#matches(isScanned, bytes)) return OTHER;
    if (takesMachines === true || !isScanned) return HELD;
    return isOfMachine(bytes, scan.statusStart, scan.statusEnd) ? MACHINE : HELD;
  }

  #matches(isScanned: boolean, bytes: Uint8Array): boolean {
    const { annotationsStart, annotationsEnd } = this.#scan;
    const { selector } = this.#options;
    if (!isScanned || annotationsStart < 0) return matchesLabels(selector, undefined);
    const text = Buffer.from(bytes.subarray(annotationsStart, annotationsEnd)).toString('utf8');
    return matchesLabels(selector, parseJson(text) as JsonObject);
  }
}
