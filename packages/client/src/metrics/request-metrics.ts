// data plane: counted for each answer
/**
 * What a client tells of its requests, under the names of client-go (`rest_client_*`), so that
 * dashboards and alerts carry over. Memory grows with methods and status codes alone.
 */
import { edgeText } from '@megaplane/base/text-format';

/** As client-go has them (component-base/metrics/prometheus/restclient). */
const SECONDS: readonly number[] = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const BYTES: readonly number[] = [
  64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
];
/** Codes beyond are no HTTP. */
const CODE_MAX = 599;

interface Amounts {
  readonly counts: Float64Array;
  sum: number;
}

interface OfMethod {
  readonly codes: Float64Array;
  readonly seconds: Amounts;
  readonly sentBytes: Amounts;
  readonly receivedBytes: Amounts;
}

export class RequestMetrics {
  readonly #methods: Map<string, OfMethod> = new Map();

  /** A request was answered by `code`; 0: by nobody. `method` is one of the client's six. */
  answered(method: string, code: number, seconds: number, sent: number, received: number): void {
    const of = this.#of(method);
    of.codes[Math.min(code, CODE_MAX)]!++;
    put(of.seconds, SECONDS, seconds);
    put(of.sentBytes, BYTES, sent);
    put(of.receivedBytes, BYTES, received);
  }

  /** A stream began. How long it lasts and what it carries tells nothing of the server. */
  streamed(code: number): void {
    this.#of('GET').codes[Math.min(code, CODE_MAX)]!++;
  }

  /** In Prometheus' text format; `host` is the server's. */
  text(host: string): string {
    const lines = [...head('requests_total', 'counter', 'HTTP requests by code, method and host.')];
    const methods = [...this.#methods].toSorted(([left], [right]) => (left < right ? -1 : 1));
    for (const [method, { codes }] of methods) {
      for (const [code, count] of codes.entries()) {
        if (count === 0) continue;
        const labels = `code="${code === 0 ? '<error>' : code}",host="${host}",method="${method}"`;
        lines.push(`rest_client_requests_total{${labels}} ${count}`);
      }
    }
    const histogram = (
      name: string,
      help: string,
      edges: readonly number[],
      of: (method: OfMethod) => Amounts,
    ): void => {
      lines.push(...head(name, 'histogram', help));
      for (const [verb, amounts] of methods) {
        const labels = `host="${host}",verb="${verb}"`;
        lines.push(...histogramLines(`rest_client_${name}`, labels, edges, of(amounts)));
      }
    };
    histogram('request_duration_seconds', 'Sent to answered.', SECONDS, ({ seconds }) => seconds);
    histogram('request_size_bytes', 'Bodies sent.', BYTES, ({ sentBytes }) => sentBytes);
    histogram('response_size_bytes', 'Answers.', BYTES, ({ receivedBytes }) => receivedBytes);
    return `${lines.join('\n')}\n`;
  }

  #of(method: string): OfMethod {
    const known = this.#methods.get(method);
    if (known !== undefined) return known;
    const made = {
      codes: new Float64Array(CODE_MAX + 1),
      seconds: { counts: new Float64Array(SECONDS.length + 1), sum: 0 },
      sentBytes: { counts: new Float64Array(BYTES.length + 1), sum: 0 },
      receivedBytes: { counts: new Float64Array(BYTES.length + 1), sum: 0 },
    };
    this.#methods.set(method, made);
    return made;
  }
}

function put(amounts: Amounts, edges: readonly number[], value: number): void {
  let at = 0;
  while (at < edges.length && value > edges[at]!) at++;
  amounts.counts[at]!++;
  amounts.sum += value;
}

function head(name: string, type: string, help: string): string[] {
  return [`# HELP rest_client_${name} ${help}`, `# TYPE rest_client_${name} ${type}`];
}

function histogramLines(
  metric: string,
  labels: string,
  edges: readonly number[],
  { counts, sum }: Amounts,
): string[] {
  let total = 0;
  const lines: string[] = [];
  for (const [at, count] of counts.entries()) {
    total += count;
    const edge = edges[at];
    const text = edge === undefined ? '+Inf' : edgeText(edge);
    lines.push(`${metric}_bucket{${labels},le="${text}"} ${total}`);
  }
  return [...lines, `${metric}_sum{${labels}} ${sum}`, `${metric}_count{${labels}} ${total}`];
}
