/** Reads collections too big for one answer, page by page, item by item, without parsing them. */
import type { Client } from './client.ts';
import type { Status } from '@megaplane/machinery/status';

export interface PagerOptions {
  readonly client: Client;
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly shardSelector?: string;
  /** Items per page; default 500. */
  readonly limit?: number;
  /** As in the list request; left out when empty (the most recent state). */
  readonly resourceVersion?: string;
  /** One object's JSON, valid only during the call. List items carry no kind and apiVersion. */
  onItem(bytes: Uint8Array, start: number, end: number): void;
}

export type PagerResult =
  | { readonly ok: true; readonly resourceVersion: string; readonly items: number }
  | { readonly ok: false; readonly status: Status };
