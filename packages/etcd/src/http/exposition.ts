/** Prometheus' text format: one family after the other, each with its series. */
import type { BoundedHistogram, LatencyHistogram } from '@megaplane/base/histogram';
import { inBraces, labelPairs } from '@megaplane/base/text-format';

export type Labels = Readonly<Record<string, string>>;

/** The labels of a series in braces; for series that stay, made once. */
export function labelText(labels: Labels, more: string = ''): string {
  return inBraces([labelPairs(labels), more].filter((part) => part !== '').join(','));
}

/** A scrape's answer under construction. */
export class Exposition {
  readonly #lines: string[] = [];
  #family = '';

  #open(name: string, type: string, help: string): void {
    if (this.#family === name) return;
    this.#family = name;
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  /** Series of one family must follow each other. */
  counter(name: string, help: string, value: number, labels: Labels | string = {}): void {
    this.#open(name, 'counter', help);
    const text = typeof labels === 'string' ? labels : labelText(labels);
    this.#lines.push(`${name}${text} ${value}`);
  }

  gauge(name: string, help: string, value: number, labels: Labels = {}): void {
    this.#open(name, 'gauge', help);
    this.#lines.push(`${name}${labelText(labels)} ${value}`);
  }

  histogram(name: string, help: string, values: BoundedHistogram, labels: Labels = {}): void {
    this.#open(name, 'histogram', help);
    const { bounds } = values;
    for (const [index, bound] of bounds.entries()) {
      const text = labelText(labels, `le="${bound}"`);
      this.#lines.push(`${name}_bucket${text} ${values.cumulative(index)}`);
    }
    this.#lines.push(
      `${name}_bucket${labelText(labels, 'le="+Inf"')} ${values.count}`,
      `${name}_sum${labelText(labels)} ${values.sum}`,
      `${name}_count${labelText(labels)} ${values.count}`,
    );
  }

  /** The quantiles that Go's collector tells of its pauses. */
  summary(name: string, help: string, values: LatencyHistogram): void {
    this.#open(name, 'summary', help);
    for (const quantile of [0, 0.25, 0.5, 0.75, 1]) {
      this.#lines.push(`${name}{quantile="${quantile}"} ${values.quantile(quantile)}`);
    }
    this.#lines.push(`${name}_sum ${values.sum}`, `${name}_count ${values.count}`);
  }

  text(): string {
    return `${this.#lines.join('\n')}\n`;
  }
}
