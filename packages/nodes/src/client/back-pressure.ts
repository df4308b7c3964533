/**
 * Calls back whenever a client has room again. The client keeps who asked for that as long as it
 * lives, and worlds come and go: once stopped, this holds on to nothing.
 */
import type { Client } from '@megaplane/client/client';

export class BackPressure {
  #call: (() => void) | null;

  constructor(client: Pick<Client, 'onRoom'>, call: () => void) {
    this.#call = call;
    client.onRoom(() => this.#call?.());
  }

  stop(): void {
    this.#call = null;
  }
}
