/** One event of the audit log: as a value, as its text in JSON, and as one line for people. */
import { isObject, type JsonObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';

const HEAD = '{"kind":"Event","apiVersion":"audit.k8s.io/v1",';
const TRUNCATED = 'audit.k8s.io/truncated';

export class AuditEvent {
  /** Nobody changes it any more. */
  readonly object: JsonObject;
  #text = '';

  constructor(object: JsonObject) {
    this.object = object;
  }

  /** JSON and a line break, as one event is encoded alone. */
  get text(): string {
    if (this.#text === '') this.#text = `${JSON.stringify(this.object)}\n`;
    return this.#text;
  }

  /** JSON as an item of a list, which does not say its kind. */
  get item(): string {
    const { text } = this;
    return text.startsWith(HEAD) ? `{${text.slice(HEAD.length, -1)}` : text.slice(0, -1);
  }

  get sizeBytes(): number {
    return Buffer.byteLength(this.text);
  }

  get hasObjects(): boolean {
    const { level } = this.object;
    return level === 'Request' || level === 'RequestResponse';
  }

  /** Without what was sent and answered (upstream's `truncate`). */
  truncated(): AuditEvent {
    const { requestObject: _sent, responseObject: _answered, ...rest } = this.object;
    const annotations = objectAt(rest, 'annotations') ?? {};
    return new AuditEvent({ ...rest, annotations: { ...annotations, [TRUNCATED]: 'true' } });
  }

  /** Upstream's `EventString`, which `--audit-log-format legacy` writes. */
  get line(): string {
    const { object } = this;
    const text = (...path: readonly string[]): string => stringAt(object, ...path);
    const username = text('user', 'username');
    const groups = listAt(object, 'user', 'groups').map((one) => JSON.stringify(one));
    const other = objectAt(object, 'impersonatedUser');
    const others = listAt(object, 'impersonatedUser', 'groups').map((one) => JSON.stringify(one));
    const status = object['responseStatus'];
    const fields = {
      id: text('auditID'),
      stage: text('stage'),
      ip: stringAt(listAt(object, 'sourceIPs')[0]) || '<unknown>',
      method: text('verb'),
      user: username || '<none>',
      groups: username === '' || groups.length === 0 ? '<none>' : groups.join(),
      as: other === undefined ? '<self>' : stringAt(other, 'username'),
      asgroups: others.length === 0 ? '<lookup>' : others.join(),
      'user-agent': text('userAgent'),
      namespace: text('objectRef', 'namespace') || '<none>',
      uri: text('requestURI'),
      response: isObject(status) ? String(numberAt(status, 'code')) : '<deferred>',
    };
    const shown = Object.entries(fields).map(([name, own]) => `${name}=${JSON.stringify(own)}`);
    const time = text('requestReceivedTimestamp').replace(/\.?0*Z$/, 'Z');
    return `${time} AUDIT: ${shown.join(' ')}`;
  }
}
