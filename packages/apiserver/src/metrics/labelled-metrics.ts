/** Counters and histograms of one name, told apart by labels that objects of users are part of. */
import { labelValue } from '@megaplane/base/visible-text';
import { Histogram } from './histogram.ts';
import { printFamily } from './metric-families.ts';

/** Combinations of labels that are counted apart; further ones are not counted. */
const SERIES_MAX = 2000;

/** `name="value"` for each, in the order given; texts are escaped as the format wants it. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${labelValue(value)}"`)
    .join(',');
}

export class LabelledHistogram {
  readonly #name: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Histogram>();

  constructor(name: string, bounds: readonly number[]) {
    this.#name = name;
    this.#bounds = bounds;
  }

  observe(labels: string, value: number): void {
    let own = this.#series.get(labels);
    if (own === undefined) {
      if (this.#series.size >= SERIES_MAX) return;
      this.#series.set(labels, (own = new Histogram(this.#bounds)));
    }
    own.observe(value);
  }

  print(lines: string[]): void {
    printFamily(lines, this.#name);
    for (const [labels, own] of this.#series) own.print(lines, this.#name, labels);
  }

  /** As a counter of another name: how many values there were. */
  printCounts(lines: string[], name: string): void {
    printFamily(lines, name);
    for (const [labels, { count }] of this.#series) lines.push(`${name}{${labels}} ${count}`);
  }
}

export class LabelledCounter {
  readonly #name: string;
  readonly #counts = new Map<string, number>();

  constructor(name: string) {
    this.#name = name;
  }

  add(labels: string, count = 1): void {
    const known = this.#counts.get(labels);
    if (known === undefined && this.#counts.size >= SERIES_MAX) return;
    this.#counts.set(labels, (known ?? 0) + count);
  }

  print(lines: string[]): void {
    printFamily(lines, this.#name);
    for (const [labels, count] of this.#counts) lines.push(`${this.#name}{${labels}} ${count}`);
  }
}
