/**
 * A client that changes nothing once the lease of its process is over. A process that slept past
 * its lease has timers and answers that come before the one that ends it, while another process
 * leads already.
 */
import { madeUpStatus } from '@megaplane/client/answer';
import {
  STATUS_NONE,
  type Client,
  type ClientRequest,
  type ClientResponse,
  type Method,
  type SendDone,
} from '@megaplane/client/client';
import { ClientLayer } from './client-layer.ts';

const WHY = 'the lease of this process is over: another one may lead';

export class LeadingClient extends ClientLayer {
  readonly #mayWrite: () => boolean;

  constructor(client: Client, mayWrite: () => boolean) {
    super(client);
    this.#mayWrite = mayWrite;
  }

  /** What is refused is answered later, as what finds no server is. */
  override send(
    method: Method,
    path: string,
    contentType: string,
    body: Uint8Array | string | null,
    done: SendDone,
    tag: number = 0,
    user?: string,
  ): boolean {
    if (method === 'GET' || this.#mayWrite()) {
      return super.send(method, path, contentType, body, done, tag, user);
    }
    const text = Buffer.from(WHY);
    this.timers.after(0, () => done(STATUS_NONE, text, 0, text.length, tag));
    return true;
  }

  override request(request: ClientRequest): Promise<ClientResponse> {
    if (request.method === 'GET' || this.#mayWrite()) return super.request(request);
    const status = madeUpStatus(STATUS_NONE, WHY);
    return new Promise((resolve) => {
      this.timers.after(0, () => resolve({ ok: false, code: STATUS_NONE, status }));
    });
  }
}
