/** What every controller is given: the server, what is known of it, and where failures are told. */
import type { Client } from '@megaplane/client/client';
import type { SharedInformers } from './shared-informers.ts';

export interface ControllerContext {
  readonly client: Client;
  readonly informers: SharedInformers;
  readonly onError: (error: unknown) => void;
  /** Keys worked on at a time; default upstream's. */
  readonly workers?: number | undefined;
}
