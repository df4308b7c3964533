/** What conversion webhooks take and how they fail, under upstream's names. */
import { LabelledHistogram, labelsText } from '../../metrics/labelled-metrics.ts';

const CALLS = 'apiserver_conversion_webhook';
const CALL_BOUNDS_S = [
  0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60,
] as const;
/** From a millisecond on, each twice the one before. */
const KIND_BOUNDS_S: readonly number[] = Array.from({ length: 15 }, (_, index) => 2 ** index / 1e3);

/** Why there are no converted objects. */
export type ConversionFault =
  | 'call'
  | 'malformed_response'
  | 'partial_response'
  | 'invalid_converted_object';

/** Of what, from which version and to which; versions without their group. */
export interface Conversion {
  readonly definition: string;
  readonly from: string;
  readonly to: string;
}

export class ConversionMetrics {
  readonly #calls = new LabelledHistogram(`${CALLS}_duration_seconds`, CALL_BOUNDS_S);
  readonly #kinds = new LabelledHistogram(
    'apiserver_crd_conversion_webhook_duration_seconds',
    KIND_BOUNDS_S,
  );

  /** Objects were converted, or not: `fault` says why. */
  count({ definition, from, to }: Conversion, fault: ConversionFault | null, tookMs: number): void {
    const failure = fault === null ? '' : `conversion_webhook_${fault}_failure`;
    const result = fault === null ? 'success' : 'failure';
    const seconds = tookMs / 1000;
    this.#calls.observe(labelsText({ failure_type: failure, result }), seconds);
    const succeeded = String(fault === null);
    const versions = { crd_name: definition, from_version: from, succeeded, to_version: to };
    this.#kinds.observe(labelsText(versions), seconds);
  }

  print(lines: string[]): void {
    this.#calls.printCounts(lines, `${CALLS}_request_total`);
    this.#calls.print(lines);
    this.#kinds.print(lines);
  }
}
