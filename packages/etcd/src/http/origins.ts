/** Pages of other origins that may ask, etcd's `--cors`. */
import type { Exchange } from '@megaplane/wire/exchange';
import type { FieldList } from '@megaplane/wire/fields';

const NONE: FieldList = [];

export class Origins {
  readonly #listed: readonly string[];

  /** `*` is every origin. */
  constructor(listed: readonly string[]) {
    this.#listed = listed;
  }

  /** Fields for every answer to an exchange; null when a page asks whose origin is not listed. */
  fieldsFor(exchange: Exchange): FieldList | null {
    const isAll = this.#listed.includes('*');
    const origin = isAll ? '*' : exchange.header('origin');
    if (origin === undefined) return NONE;
    if (!isAll && !this.#listed.includes(origin)) return null;
    return [
      ...['access-control-allow-methods', 'POST, GET, OPTIONS, PUT, DELETE'],
      ...['access-control-allow-origin', origin],
      ...['access-control-allow-headers', 'accept, content-type, authorization'],
    ];
  }
}
