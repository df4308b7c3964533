/** Where parts of the server add what they count to the page of metrics. */
export interface MetricsRegistry {
  /** `source` appends its lines, in the text format of Prometheus, each time that it is asked. */
  addSource(source: (lines: string[]) => void): void;
}
