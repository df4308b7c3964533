/** Prometheus' text format. */
import { edgeText, inBraces, labelPairs } from '@megaplane/base/text-format';
import type { BucketHistogram } from './bucket-histogram.ts';

export type Labels = Readonly<Record<string, string | number>>;

export class Exposition {
  #lines: string[] = [];
  #name = '';

  family(name: string, type: string, help: string): void {
    this.#name = name;
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  value(labels: Labels, value: number, suffix = ''): void {
    this.#lines.push(`${this.#name}${suffix}${inBraces(labelPairs(labels))} ${value}`);
  }

  histogram(labels: Labels, histogram: BucketHistogram): void {
    for (const [bucket, edge] of histogram.edges.entries()) {
      this.value({ ...labels, le: edgeText(edge) }, histogram.upTo(bucket), '_bucket');
    }
    this.value({ ...labels, le: '+Inf' }, histogram.count, '_bucket');
    this.value(labels, histogram.sum, '_sum');
    this.value(labels, histogram.count, '_count');
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`;
  }
}
