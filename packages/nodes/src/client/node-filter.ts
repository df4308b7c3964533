/**
 * Which nodes of the informer are ours, where labels on the server cannot say it: by annotations,
 * as kwok does. A node that gains or loses them comes and goes like one that is made and deleted.
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
import type { InformerHandler } from '@megaplane/client/informer-options';

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

export class NodeFilter {
  readonly handler: InformerHandler;
  readonly #held = new Uint8Column();
  readonly #scan = new ObjectScan();
  readonly #selector: LabelSelector;

  constructor(selector: LabelSelector, inner: InformerHandler) {
    this.#selector = selector;
    if (selector.requirements.length === 0) {
      this.handler = inner;
      return;
    }
    this.handler = {
      onUpsert: (id, isNew, bytes, start, end) => {
        const wasHeld = !isNew && this.#held.get(id) === 1;
        const isHeld = this.#matches(bytes, start, end);
        this.#held.set(id, isHeld ? 1 : 0);
        if (isHeld) inner.onUpsert(id, !wasHeld, bytes, start, end);
        else if (wasHeld) inner.onDelete(id, bytes, start, end);
      },
      onDelete: (id, bytes, start, end) => {
        if (this.#held.get(id) === 1) inner.onDelete(id, bytes, start, end);
        this.#held.set(id, 0);
      },
      ...(inner.onSynced === undefined ? {} : { onSynced: () => inner.onSynced?.() }),
      ...(inner.onTrouble === undefined ? {} : { onTrouble: (text) => inner.onTrouble?.(text) }),
    };
  }

  /** Whether the row of the informer is one of ours. */
  holds(id: number): boolean {
    return this.#selector.requirements.length === 0 || this.#held.get(id) === 1;
  }

  #matches(bytes: Uint8Array, start: number, end: number): boolean {
    const scan = this.#scan;
    if (!scan.scan(bytes, start, end) || scan.annotationsStart < 0) {
      return matchesLabels(this.#selector, undefined);
    }
    const { annotationsStart, annotationsEnd } = scan;
    const text = Buffer.from(bytes.subarray(annotationsStart, annotationsEnd)).toString('utf8');
    return matchesLabels(this.#selector, parseJson(text) as JsonObject);
  }
}
