/** `/healthz`, `/livez`, `/readyz`: named checks, alone, together, or told one by one. */
import type { Call } from './call.ts';

/** A check says what is wrong, or nothing. */
export type HealthCheck = () => string | null;

/** What a check counts for: `readyz` alone, all but that, or everything. */
type Reach = 'all' | 'life' | 'readiness';

export class Health {
  readonly #checks = new Map<string, HealthCheck>();
  readonly #reaches = new Map<string, Reach>();

  add(name: string, check: HealthCheck, reach: Reach = 'all'): void {
    this.#checks.set(name, check);
    this.#reaches.set(name, reach);
  }

  /** Every path that is answered. */
  paths(): string[] {
    return ['healthz', 'livez', 'readyz'].flatMap((kind) => [
      `/${kind}`,
      ...this.#names(kind).map((name) => `/${kind}/${name}`),
    ]);
  }

  #names(kind: string): string[] {
    const other: Reach = kind === 'readyz' ? 'life' : 'readiness';
    return [...this.#checks.keys()].filter((one) => this.#reaches.get(one) !== other);
  }

  /** Answers `path`, which begins with one of the three. Null where there is no such check. */
  answer(call: Call, path: string): boolean {
    const [, kind = '', ...steps] = path.split('/');
    const name = steps.join('/');
    const names = this.#names(kind);
    if (name !== '') {
      if (!names.includes(name)) return false;
      const fault = this.#checks.get(name)?.() ?? null;
      if (fault === null) call.send(200, 'text/plain; charset=utf-8', 'ok');
      else this.#send(call, 500, `${name} failed`);
      return true;
    }
    const excluded = new Set(call.query.all('exclude'));
    const lines: string[] = [];
    let failures = 0;
    for (const one of names) {
      if (excluded.has(one)) {
        lines.push(`[+]${one} excluded: ok`);
      } else if ((this.#checks.get(one)?.() ?? null) === null) {
        lines.push(`[+]${one} ok`);
      } else {
        failures++;
        lines.push(`[-]${one} failed: reason withheld`);
      }
    }
    const verdict = `${kind} check ${failures === 0 ? 'passed' : 'failed'}`;
    const isTold = failures > 0 || call.query.has('verbose');
    this.#send(
      call,
      failures === 0 ? 200 : 500,
      isTold ? `${lines.join('\n')}\n${verdict}\n` : 'ok',
    );
    return true;
  }

  #send(call: Call, code: number, text: string): void {
    call.code = code;
    const headers = call.headers('x-content-type-options', 'nosniff');
    call.exchange.respond(code, 'text/plain; charset=utf-8', text, headers);
  }
}
