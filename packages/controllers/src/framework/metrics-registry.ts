/**
 * What controllers tell of their work, under the names that kube-controller-manager gives it, so
 * that dashboards and alerts carry over. As with the Go client, a metric without labels is told
 * from the start, and one with labels once something is counted.
 */
import { assert } from '@megaplane/base/assert';
import { BucketHistogram } from '@megaplane/client/bucket-histogram';
import { Exposition, type Labels } from '@megaplane/client/exposition';

type LabelNames = readonly string[];
/** In the order of the names. */
export type LabelValues = readonly string[];

/** Between label values; in none of them. */
const BETWEEN = '\0';

abstract class Family {
  readonly help: string;
  abstract readonly type: 'counter' | 'gauge' | 'histogram';
  readonly #labels: LabelNames;

  constructor(help: string, labels: LabelNames) {
    this.help = help;
    this.#labels = labels;
  }

  get hasLabels(): boolean {
    return this.#labels.length > 0;
  }

  /** The key of these values, which are as many as there are labels. */
  keyOf(values: LabelValues): string {
    assert(values.length === this.#labels.length, 'each label has a value');
    return values.join(BETWEEN);
  }

  labelsOf(values: LabelValues): Labels {
    return Object.fromEntries(this.#labels.map((name, at) => [name, values[at] ?? '']));
  }

  /** Whether there is anything to tell. */
  abstract tell(name: string, out: Exposition): void;
}

/** What only grows; a gauge of the same kind may also be set. */
export class Counter extends Family {
  readonly type: 'counter' | 'gauge';
  readonly #counts: Map<string, number> = new Map();

  constructor(help: string, labels: LabelNames = [], type: 'counter' | 'gauge' = 'counter') {
    super(help, labels);
    this.type = type;
    if (labels.length === 0) this.#counts.set('', 0);
  }

  add(values: LabelValues = [], count = 1): void {
    assert(count >= 0 || this.type === 'gauge', 'a counter never falls');
    const key = this.keyOf(values);
    const sum = (this.#counts.get(key) ?? 0) + count;
    // Of what is there no more nothing is told; what was counted once stays.
    if (sum === 0 && this.type === 'gauge' && key !== '') this.#counts.delete(key);
    else this.#counts.set(key, sum);
  }

  set(values: LabelValues, count: number): void {
    assert(this.type === 'gauge', 'a counter is not set');
    this.#counts.set(this.keyOf(values), count);
  }

  forget(values: LabelValues): void {
    this.#counts.delete(this.keyOf(values));
  }

  tell(name: string, out: Exposition): void {
    if (this.#counts.size > 0) out.family(name, this.type, this.help);
    for (const [key, count] of sorted(this.#counts)) {
      out.value(this.labelsOf(key.split(BETWEEN)), count);
    }
  }
}

/** What is counted when somebody asks. */
class Reading extends Family {
  readonly type = 'gauge';
  readonly #read: () => Iterable<readonly [LabelValues, number]>;

  constructor(
    help: string,
    labels: LabelNames,
    read: () => Iterable<readonly [LabelValues, number]>,
  ) {
    super(help, labels);
    this.#read = read;
  }

  tell(name: string, out: Exposition): void {
    const read = [...this.#read()];
    if (read.length > 0) out.family(name, this.type, this.help);
    for (const [values, count] of read) out.value(this.labelsOf(values), count);
  }
}

export class Histogram extends Family {
  readonly type = 'histogram';
  readonly #edges: readonly number[];
  readonly #histograms: Map<string, BucketHistogram> = new Map();

  constructor(help: string, edges: readonly number[], labels: LabelNames = []) {
    super(help, labels);
    this.#edges = edges;
    if (labels.length === 0) this.#of('');
  }

  record(value: number, values: LabelValues = []): void {
    this.#of(this.keyOf(values)).record(value);
  }

  #of(key: string): BucketHistogram {
    const known = this.#histograms.get(key);
    if (known !== undefined) return known;
    const made = new BucketHistogram(this.#edges);
    this.#histograms.set(key, made);
    return made;
  }

  tell(name: string, out: Exposition): void {
    if (this.#histograms.size > 0) out.family(name, this.type, this.help);
    for (const [key, histogram] of sorted(this.#histograms)) {
      out.histogram(this.labelsOf(key.split(BETWEEN)), histogram);
    }
  }
}

/** All metrics of the controllers of a process. Two that name one metric share it. */
export class MetricsRegistry {
  readonly #families: Map<string, Family> = new Map();

  counter(name: string, help: string, labels: LabelNames = []): Counter {
    return this.#put(name, () => new Counter(help, labels));
  }

  gauge(name: string, help: string, labels: LabelNames = []): Counter {
    return this.#put(name, () => new Counter(help, labels, 'gauge'));
  }

  histogram(
    name: string,
    help: string,
    edges: readonly number[],
    labels: LabelNames = [],
  ): Histogram {
    return this.#put(name, () => new Histogram(help, edges, labels));
  }

  /** A gauge that is read when somebody asks. */
  reading(
    name: string,
    help: string,
    labels: LabelNames,
    read: () => Iterable<readonly [LabelValues, number]>,
  ): void {
    this.#put(name, () => new Reading(help, labels, read));
  }

  #put<One extends Family>(name: string, make: () => One): One {
    const known = this.#families.get(name);
    const made = make();
    if (known !== undefined) {
      assert(known.type === made.type, `${name} is one type of metric`);
      assert(known.hasLabels === made.hasLabels, `${name} has the same labels everywhere`);
      return known as One;
    }
    this.#families.set(name, made);
    return made;
  }

  /** In Prometheus' text format. */
  text(): string {
    const out = new Exposition();
    for (const [name, family] of sorted(this.#families)) family.tell(name, out);
    return out.toString();
  }
}

function sorted<Value>(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].toSorted(([left], [right]) => (left < right ? -1 : 1));
}
